package endpoint

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/task"
)

const (
	// MaxEndpoints bounds the webhooks of a workspace: each end of a run becomes up to so many tasks.
	MaxEndpoints = 20
	// MaxName bounds a name, in characters.
	MaxName = 200
	// MaxURL bounds a URL, in bytes.
	MaxURL = 2_000
	// OldSecret is for how long the secret before the present one signs too, so that receivers can be moved without a gap.
	OldSecret = 24 * time.Hour
	// FailingFor is for how long deliveries may fail without one success until the webhook is disabled: longer than a
	// weekend with a holiday behind it.
	FailingFor = 5 * 24 * time.Hour
)

// Type names what a message tells.
type Type string

// The types.
const (
	Succeeded Type = "event.succeeded"
	Failed    Type = "event.failed"
	// Test is sent on request only.
	Test Type = "webhook.test"
)

// Types returns what a webhook can ask to be told.
func Types() []Type { return []Type{Succeeded, Failed} }

// Kinds returns the kinds of work that a webhook can ask to be told of: all but its own deliveries.
func Kinds() []task.Kind {
	return slices.DeleteFunc(task.Kinds(), func(k task.Kind) bool { return k == task.Webhook })
}

// Reason says why a webhook is disabled.
type Reason string

// The reasons.
const (
	Gone     Reason = "gone"      // it answered 410
	Failing  Reason = "failing"   // no delivery has succeeded for FailingFor
	ByCaller Reason = "by_caller" // somebody has set active to false
	// SecretLost is for a secret whose encryption key was given up: a rotation makes a new one.
	SecretLost Reason = "secret_lost"
)

// Endpoint is a webhook as it is stored. Secret and OldSecret are for signing and are shown only when they are made.
type Endpoint struct {
	ID           uuid.UUID
	WorkspaceID  uuid.UUID
	Name         string
	URL          string
	Types        []Type
	Kinds        []task.Kind // empty is all
	Active       bool
	Reason       Reason // empty while active
	FailingSince *time.Time
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

// Change is what a caller changes of an endpoint; nil stays as it is.
type Change struct {
	Name   *string
	URL    *string
	Types  *[]Type
	Kinds  *[]task.Kind
	Active *bool
}

// Check answers a fault INVALID_REQUEST for a member that breaks a rule. Whether the URL may be called at all is for
// whoever calls it to say.
func (c Change) Check() error {
	switch {
	case c.Name != nil && (utf8.RuneCountInString(*c.Name) > MaxName || strings.ContainsRune(*c.Name, 0)):
		return fault.At(fault.InvalidRequest, "/name", "at most 200 characters")
	case c.URL != nil && (*c.URL == "" || len(*c.URL) > MaxURL):
		return fault.At(fault.InvalidRequest, "/url", "1 to 2000 bytes")
	case c.Types != nil && !subset(*c.Types, Types()):
		return fault.At(fault.InvalidRequest, "/event_types", "one or both of event.succeeded and event.failed")
	case c.Kinds != nil && len(*c.Kinds) > 0 && !subset(*c.Kinds, Kinds()):
		return fault.At(fault.InvalidRequest, "/kinds", "kinds of work, without repeats")
	}
	return nil
}

// subset tells whether some is a part of all that isn't empty and has nothing twice.
func subset[T comparable](some, all []T) bool {
	seen := map[T]bool{}
	for _, one := range some {
		if seen[one] || !slices.Contains(all, one) {
			return false
		}
		seen[one] = true
	}
	return len(some) > 0
}

// Wants tells whether the endpoint is told of an entry of the feed, and as what.
func (e Endpoint) Wants(entry task.FeedEntry) (Type, bool) {
	var kind Type
	switch entry.Outcome {
	case task.FeedSucceeded:
		kind = Succeeded
	case task.FeedFailed:
		kind = Failed
	case task.FeedRetrying:
		return "", false
	}
	told := slices.Contains(e.Types, kind) && (len(e.Kinds) == 0 || slices.Contains(e.Kinds, entry.Kind))
	return kind, told && entry.Kind != task.Webhook
}
