package worker

import (
	"context"
	"unicode/utf8"

	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
)

// Bounds of what one command may leave behind; what a long conversation says beyond them is not kept. They hold the
// plan's row and the commit's statements to a size that a database takes in one go.
const (
	maxPlanFacts = 1_000
	maxPlanRunes = 400_000
)

// read asks the model about the windows of a conversation, one after the other, each call under its own deadline and
// after its own heartbeat. The first call that fails ends it: a plan is made of the whole conversation or not at all.
func (r *run) read(ctx context.Context, request model.Request) ([]model.Fact, error) {
	extractor := r.w.deps.Extractor
	found := newFindings()
	for _, messages := range windowsOf(request.Messages, r.w.cfg.InputChars) {
		window := request
		window.Messages = messages
		var answer model.Extraction
		err := r.call(ctx, extractor.Provider(), extractor.Local(), func(ctx context.Context) (model.Usage, error) {
			var err error
			answer, err = extractor.Extract(ctx, window)
			return answer.Usage, err
		})
		if err != nil {
			return nil, err
		}
		found.add(answer.Facts)
	}
	return found.facts, nil
}

// findings collects the facts of windows. What a window repeats of the windows before it is dropped: they overlap.
type findings struct {
	facts  []model.Fact
	runes  int
	seen   map[memory.ContentKey]bool
	ending map[int]bool // known statements that a fact supersedes already
}

func newFindings() *findings {
	return &findings{seen: map[memory.ContentKey]bool{}, ending: map[int]bool{}}
}

// add takes the facts of one window. Of two facts that supersede the same statement the first one does, the other
// is an addition.
func (f *findings) add(window []model.Fact) {
	first := len(f.facts)
	for _, fact := range window {
		size := utf8.RuneCountInString(fact.Text)
		if f.seen[memory.KeyOf(fact.Text)] || len(f.facts) == maxPlanFacts || f.runes+size > maxPlanRunes {
			continue
		}
		if f.ending[fact.Supersedes] {
			fact.Supersedes = 0
		}
		if fact.Supersedes != 0 {
			f.ending[fact.Supersedes] = true
		}
		f.runes += size
		f.facts = append(f.facts, fact)
	}
	for _, fact := range f.facts[first:] { // a repeat inside one answer is the commit's to judge
		f.seen[memory.KeyOf(fact.Text)] = true
	}
}
