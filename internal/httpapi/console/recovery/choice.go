package recovery

import (
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// asked is a choice as its form says it.
type asked struct {
	Act, Code, Since, Until       string
	UserID, AgentID, RunID, AppID string
}

func askedOf(form url.Values) asked {
	text := func(name string) string { return strings.TrimSpace(form.Get(name)) }
	return asked{
		Act: text("act"), Code: text("code"), Since: text("since"), Until: text("until"),
		UserID: text("user_id"), AgentID: text("agent_id"), RunID: text("run_id"), AppID: text("app_id"),
	}
}

// values are the choice for an address.
func (a asked) values() url.Values {
	all := url.Values{}
	for _, f := range a.Fields() {
		if f.Value != "" {
			all.Set(f.Name, f.Value)
		}
	}
	return all
}

// field is one of a form.
type field struct{ Name, Label, Value string }

// Fields are the whole choice.
func (a asked) Fields() []field {
	return append([]field{
		{"act", "Act", a.Act}, {"code", "Code", a.Code}, {"since", "Since", a.Since}, {"until", "Until", a.Until},
	}, a.Scopes()...)
}

// Scopes are the part of it that names a scope.
func (a asked) Scopes() []field {
	return []field{{"user_id", "User", a.UserID}, {"agent_id", "Agent", a.AgentID}, {"run_id", "Run", a.RunID}, {"app_id", "App", a.AppID}}
}

// option is one of a list.
type option struct {
	Value, Label string
	Chosen       bool
}

// Codes are the failures that can be chosen.
func (a asked) Codes() []option {
	var all []option
	for _, code := range codes() {
		name := strings.ToLower(string(code))
		all = append(all, option{Value: name, Label: strings.ReplaceAll(name, "_", " "), Chosen: strings.EqualFold(a.Code, name)})
	}
	return all
}

// codes are those of an event's failures. Deliveries are no events here: webhooks have a replay of their own.
func codes() []task.ErrorCode {
	return slices.DeleteFunc(task.ErrorCodes(), func(c task.ErrorCode) bool {
		return c == task.CodeWebhookUndelivered || c == task.CodeWebhookDisabled
	})
}

// maxScope is above the longest value of a scope.
const maxScope = 1000

// choice is what is meant. Whatever of it is wrong is refused: a choice without it would mean more.
func (a asked) choice() (write.BulkChoice, error) {
	choice := write.BulkChoice{
		Act: write.BulkAct(a.Act), Code: a.Code, Scope: memory.Scope{UserID: a.UserID, AgentID: a.AgentID, RunID: a.RunID, AppID: a.AppID},
	}
	if a.Code != "" && !slices.Contains(codes(), task.ErrorCode(choice.Public())) {
		return choice, fault.At(fault.InvalidRequest, "/code", "one of the list")
	}
	for _, f := range a.Scopes() {
		if len(f.Value) > maxScope || !utf8.ValidString(f.Value) || strings.ContainsRune(f.Value, 0) {
			return choice, fault.At(fault.InvalidRequest, "/"+f.Name, "the value of a scope")
		}
	}
	var err error
	if choice.Since, err = timeOf("/since", a.Since); err == nil {
		choice.Until, err = timeOf("/until", a.Until)
	}
	return choice, err
}

// SinceField and UntilField are the times as a browser's field for day and time takes them.
func (a asked) SinceField() string { return fieldOf(a.Since) }

// UntilField is the end, as SinceField is the beginning.
func (a asked) UntilField() string { return fieldOf(a.Until) }

func fieldOf(text string) string {
	at, err := timeOf("", text)
	if err != nil || at.IsZero() {
		return text
	}
	return at.Format("2006-01-02T15:04:05.999")
}

// timeForms are what browsers send of a field with day and time, which are UTC here, and what a preview says.
func timeForms() []string {
	return []string{"2006-01-02T15:04", "2006-01-02T15:04:05", time.RFC3339Nano}
}

func timeOf(pointer, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, form := range timeForms() {
		if at, err := time.Parse(form, text); err == nil && at.Year() >= 2000 && at.Year() < 10000 { // what the database can hold, too
			return at.UTC(), nil
		}
	}
	return time.Time{}, fault.At(fault.InvalidRequest, pointer, "a day and a time")
}
