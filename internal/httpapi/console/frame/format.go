package frame

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// functions are what templates may call.
func (f *Frame) functions() template.FuncMap {
	return template.FuncMap{
		"asset": f.asset, "clock": Clock, "stamp": stamp, "machine": machine, "span": Span, "num": Number,
		"event": EventID, "workspace": workspaceText, "tail": tail, "tone": tone, "words": words, "lower": strings.ToLower,
	}
}

// Clock is the time of day in UTC.
func Clock(at time.Time) string { return at.UTC().Format("15:04:05") }

// stamp is a day and a time in UTC.
func stamp(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05") }

// machine is a time for programs.
func machine(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

// Span is how long something took, as a person says it: 340 ms, 1.2 s, 3 m 04 s, 2 h 05 m, 3 d 4 h.
func Span(d time.Duration) string {
	switch {
	case d < 0:
		return "−" + Span(-d)
	case d < time.Millisecond && d > 0:
		return "<1 ms"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < 10*time.Second:
		return strings.TrimSuffix(strconv.FormatFloat(math.Floor(d.Seconds()*10)/10, 'f', 1, 64), ".0") + " s"
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + " s"
	case d < time.Hour:
		return fmt.Sprintf("%d m %02d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h %02d m", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d d %d h", int(d.Hours())/24, int(d.Hours())%24)
}

// Number is a count with its thousands apart.
func Number(n any) string {
	text, sign := fmt.Sprint(n), ""
	if strings.HasPrefix(text, "-") {
		sign, text = "−", text[1:]
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return sign + text
}

// EventID is an event's id as the API writes it.
func EventID(id uuid.UUID) string { return "evt_" + id.String() }

// tail is the end of an id, which tells ids of the same second apart.
func tail(id uuid.UUID) string {
	text := id.String()
	return text[len(text)-12:]
}

// tone is the class that a status is shown with.
func tone(status task.EventStatus) string {
	switch status {
	case task.EventSucceeded:
		return "good"
	case task.EventFailed:
		return "bad"
	case task.EventRetrying:
		return "warn"
	case task.EventRunning:
		return "busy"
	case task.EventPending:
	}
	return "calm"
}

// words is a name of the protocol as a person reads it: provider_timeout is provider timeout.
func words(name any) string { return strings.ReplaceAll(fmt.Sprint(name), "_", " ") }

// Told is a refusal as a person reads it: which rule was broken, else what is wrong.
func Told(f *fault.Error) string {
	if f.Rule != "" {
		return strings.TrimPrefix(f.Pointer+": "+f.Rule, ": ")
	}
	return fault.Describe(f.Code).Message
}
