package worker

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
)

const (
	// maxKnown is how many known statements the model is shown. Forty, cut to 400 characters each, leave most of a
	// small model's context to the conversation.
	maxKnown = 40
	// maxKnownTerms bounds the terms by which they are found: the words of a page, or 250 Chinese characters.
	maxKnownTerms = 500
)

// known reads what the lane knows already about the matter of the conversation, oldest first. No transaction is
// open when it returns.
func (r *run) known(ctx context.Context, messages []model.Message) ([]KnownRecord, error) {
	if r.w.deps.Known == nil {
		return nil, nil
	}
	terms := termsOf(messages)
	var found []KnownRecord
	read := r.step(ctx, func(ctx context.Context) Done {
		var err error
		found, err = r.w.deps.Known.Known(ctx, r.lease, terms, maxKnown)
		return Done{Err: err}
	})
	if read.Err != nil {
		return nil, fmt.Errorf("read what is known: %w", read.Err)
	}
	return found[:min(len(found), maxKnown)], nil
}

// termsOf cuts a conversation into terms: what people say comes before what an assistant says, in case that there
// are too many.
func termsOf(messages []model.Message) []string {
	var people, assistants strings.Builder
	for _, m := range messages {
		text := &people
		if m.Role == "assistant" {
			text = &assistants
		}
		text.WriteString(m.Name + " " + m.Content + "\n")
	}
	terms := memory.TermsOf(people.String() + assistants.String()).Terms
	return terms[:min(len(terms), maxKnownTerms)]
}

// numbered gives the known records the short numbers under which the model may name them: ids are none of its
// business.
func numbered(known []KnownRecord) []model.Known {
	if len(known) == 0 {
		return nil
	}
	shown := make([]model.Known, len(known))
	for i, k := range known {
		shown[i] = model.Known{Number: i + 1, Text: k.Text, Said: k.SaidAt}
	}
	return shown
}

// target returns the record that a fact supersedes, nil if it names none, or if it only says again what that record
// says.
func target(known []KnownRecord, f model.Fact) *memory.Target {
	if f.Supersedes < 1 || f.Supersedes > len(known) {
		return nil
	}
	k := known[f.Supersedes-1]
	if memory.KeyOf(k.Text) == memory.KeyOf(f.Text) {
		return nil
	}
	return &memory.Target{ID: k.ID, Version: k.Version}
}
