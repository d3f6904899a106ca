package worker

import (
	"context"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// TestCommittedTaskNeverFails spends a budget that has an end, over and over, after the canonical commit.
func TestCommittedTaskNeverFails(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		r.deps.Embedder = &embedder{rig: r}
		r.live = []LiveRecord{{Version: 1, Text: "said"}}
		r.embed = func(context.Context, []string) (model.Embedding, error) { panic(canary) }
		r.begin()
		r.hint(func(l *Lease) {
			l.Stage, l.Payload, l.Spent = task.Committed, nil, task.Spent{task.InternalFailure: 1000}
		})
		r.elapse(0)
		if len(r.fails) != 0 || len(r.laters) != 1 || r.laters[0].Class != task.InternalFailure {
			t.Errorf("it went %v, %+v", r.order, r.laters)
		}
		r.end()
	})
}
