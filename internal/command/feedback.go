package command

import (
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
)

// MaxReason is the greatest length of the reason of a feedback in characters.
const MaxReason = 5_000

// Verdict is what a reader thinks of a memory.
type Verdict string

// The verdicts, by their names in the API.
const (
	Positive     Verdict = "POSITIVE"
	Negative     Verdict = "NEGATIVE"
	VeryNegative Verdict = "VERY_NEGATIVE"
)

// Known tells whether it is one of the verdicts.
func (v Verdict) Known() bool { return v == Positive || v == Negative || v == VeryNegative }

// Feedback is what a reader says of one live record. Without a verdict it takes back what was said before.
type Feedback struct {
	Memory  uuid.UUID
	Verdict *Verdict
	Reason  *string
}

// NewFeedback returns the feedback that was asked for; a reason without anything visible is none, and so is one
// without a verdict. Faults: INVALID_REQUEST with pointer and rule.
func NewFeedback(memory uuid.UUID, verdict, reason *string) (Feedback, error) {
	f := Feedback{Memory: memory}
	if reason != nil && (utf8.RuneCountInString(*reason) > MaxReason || !storable(*reason)) {
		return Feedback{}, fault.At(fault.InvalidRequest, "/reason", "at most 5000 characters of valid UTF-8 without NUL")
	}
	if verdict == nil {
		return f, nil
	}
	said := Verdict(*verdict)
	if !said.Known() {
		return Feedback{}, fault.At(fault.InvalidRequest, "/feedback", "one of POSITIVE, NEGATIVE, VERY_NEGATIVE, or null")
	}
	f.Verdict = &said
	if reason != nil && !Blank(*reason) {
		f.Reason = reason
	}
	return f, nil
}
