package now

import (
	"cmp"
	"html/template"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-memory/holdfast/internal/httpapi/console/frame"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/plot"
	"github.com/holdfast-memory/holdfast/internal/operator"
)

// slots are the minutes of an hour.
const slots = int(window / time.Minute)

// drawing is one plot with what is written beside it.
type drawing struct {
	Title string
	// Figure is of the hour or the newest minute, Note says of what.
	Figure string
	Note   string
	// Peak is the highest point.
	Peak   string
	Legend []string
	Plot   template.HTML
}

// errorCount is how many model calls failed in a class.
type errorCount struct {
	Class string
	Count int64
}

// Hour is the last hour of the service.
type Hour struct {
	Drawings []drawing
	// All is the hour added up.
	All    operator.ProcessMinute
	Errors []errorCount
}

// hourOf adds up the rows of the processes minute by minute and draws them.
func hourOf(now time.Time, minutes []operator.ProcessMinute, standings []operator.ServiceMinute) Hour {
	var h Hour
	each := make([]operator.ProcessMinute, slots)
	for _, m := range minutes {
		h.All.Merge(m)
		if i, ok := slot(now, m.At); ok {
			each[i].Merge(m)
		}
	}
	service := make([]*operator.ServiceMinute, slots)
	for i := range standings {
		if at, ok := slot(now, standings[i].Minute); ok {
			service[at] = &standings[i]
		}
	}
	for _, class := range slices.Sorted(maps.Keys(h.All.ModelErrors)) {
		h.Errors = append(h.Errors, errorCount{class, h.All.ModelErrors[class]})
	}
	slices.SortStableFunc(h.Errors, func(a, b errorCount) int { return cmp.Compare(b.Count, a.Count) })
	h.draw(each, service)
	return h
}

// slot is the place of a time among the minutes of the hour that ends now.
func slot(now, at time.Time) (int, bool) {
	ago := int(now.Sub(at) / time.Minute)
	return slots - 1 - ago, ago >= 0 && ago < slots || at.After(now) && ago == 0
}

func (h *Hour) draw(each []operator.ProcessMinute, service []*operator.ServiceMinute) {
	process := func(of func(operator.ProcessMinute) float64) []float64 {
		values := make([]float64, slots)
		for i, m := range each {
			values[i] = of(m)
		}
		return values
	}
	standing := func(of func(*operator.ServiceMinute) float64) []float64 {
		values := make([]float64, slots)
		for i, m := range service {
			values[i] = math.NaN()
			if m != nil {
				values[i] = of(m)
			}
		}
		return values
	}
	times := func(of func(operator.ProcessMinute) operator.Times, q float64) []float64 {
		return process(func(m operator.ProcessMinute) float64 {
			if of(m).Count() == 0 {
				return math.NaN()
			}
			return milliseconds(of(m).Quantile(q))
		})
	}
	accept := func(m operator.ProcessMinute) operator.Times { return m.AcceptTimes }
	model := func(m operator.ProcessMinute) operator.Times { return m.ModelTimes }
	accepted := process(func(m operator.ProcessMinute) float64 { return float64(m.Accepted) })
	succeeded := process(func(m operator.ProcessMinute) float64 { return float64(m.Succeeded) })
	failed := process(func(m operator.ProcessMinute) float64 { return float64(m.Failed) })
	published := process(func(m operator.ProcessMinute) float64 { return float64(m.HintsPublished) })
	repaired := process(func(m operator.ProcessMinute) float64 { return float64(m.HintsFixed) })
	doneAt := func(q func(*operator.ServiceMinute) time.Duration) []float64 {
		return standing(func(m *operator.ServiceMinute) float64 {
			if m.Succeeded == 0 {
				return math.NaN()
			}
			return milliseconds(q(m))
		})
	}
	newest := func(of func(*operator.ServiceMinute) string) string {
		for _, m := range slices.Backward(service) {
			if m != nil {
				return of(m)
			}
		}
		return ""
	}
	h.Drawings = []drawing{
		bars("Accepted", count(h.All.Accepted), "in the last hour", accepted, nil),
		bars("Ended by workers", count(h.All.Succeeded), "succeeded, "+count(h.All.Failed)+" failed", succeeded, failed),
		timeLines("Accept", percentiles(h.All.AcceptTimes), times(accept, .99), times(accept, .5)),
		timeLines("Accept to succeeded", done(service), doneAt(func(m *operator.ServiceMinute) time.Duration { return m.DoneP99 }),
			doneAt(func(m *operator.ServiceMinute) time.Duration { return m.DoneP50 })),
		timeLines("Oldest due", nil, standing(func(m *operator.ServiceMinute) float64 { return milliseconds(m.OldestDue) }), nil),
		lines("Open", []string{
			newest(func(m *operator.ServiceMinute) string { return "waiting " + count(int64(m.Waiting+m.Retrying)) }),
			newest(func(m *operator.ServiceMinute) string { return "running " + count(int64(m.Running)) }),
		}, standing(func(m *operator.ServiceMinute) float64 { return float64(m.Waiting + m.Retrying) }),
			standing(func(m *operator.ServiceMinute) float64 { return float64(m.Running) })),
		timeLines("Model calls", percentiles(h.All.ModelTimes), times(model, .99), times(model, .5)),
		bars("Hints", count(h.All.HintsPublished), "published, "+count(h.All.HintsFixed)+" repaired", published, repaired),
	}
}

func count(n int64) string { return frame.Number(n) }

func bars(title, figure, note string, counts, over []float64) drawing {
	peak := 0.0
	for i, n := range counts {
		if i < len(over) {
			n += over[i]
		}
		peak = max(peak, n)
	}
	return drawing{
		Title: title, Figure: figure, Note: note, Peak: "at most " + frame.Number(int64(peak)) + " a minute",
		Plot: plot.Bars(title+", each minute of the last hour", counts, over),
	}
}

func lines(title string, legend []string, values, second []float64) drawing {
	return drawing{
		Title: title, Legend: legend, Peak: "at most " + frame.Number(int64(highest(values, second))),
		Plot: plot.Lines(title+", each minute of the last hour", values, second),
	}
}

// timeLines is lines of milliseconds.
func timeLines(title string, legend []string, values, second []float64) drawing {
	d := lines(title, legend, values, second)
	d.Peak = ""
	if high := highest(values, second); high > 0 {
		d.Peak = "at most " + frame.Span(time.Duration(high*float64(time.Millisecond)))
	}
	return d
}

func highest(all ...[]float64) (high float64) {
	for _, values := range all {
		for _, n := range values {
			if !math.IsNaN(n) {
				high = max(high, n)
			}
		}
	}
	return high
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// percentiles are the 99th and the median in words.
func percentiles(t operator.Times) []string {
	if t.Count() == 0 {
		return []string{"p99", "p50"}
	}
	return []string{"p99 " + frame.Span(t.Quantile(.99)), "p50 " + frame.Span(t.Quantile(.5))}
}

// done are those of the newest minute in which something succeeded.
func done(service []*operator.ServiceMinute) []string {
	for _, m := range slices.Backward(service) {
		if m != nil && m.Succeeded > 0 {
			return []string{"p99 " + frame.Span(m.DoneP99), "p50 " + frame.Span(m.DoneP50)}
		}
	}
	return percentiles(nil)
}

// saying is what a screen reader is told.
func saying(running, retrying, failed int) string {
	text := strconv.Itoa(running) + " running, " + strconv.Itoa(retrying) + " retrying"
	if failed > 0 {
		text += ", " + strconv.Itoa(failed) + " failed"
	}
	return text
}
