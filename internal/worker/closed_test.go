package worker

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-memory/holdfast/internal/seal"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// TestClosed holds what becomes of a payload that can't be opened: no model reads it, and its run ends or waits.
func TestClosed(t *testing.T) {
	t.Parallel()

	t.Run("WhatWasChangedFailsAtOnceWithoutACall", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.begin()
			r.hint(func(l *Lease) { l.Closed = seal.ErrUnreadable })
			r.elapse(0)
			if len(r.fails) != 1 || r.extractions != 0 || r.fails[0].Class != task.PayloadUnreadable || r.fails[0].Code != task.CodePayloadUnreadable {
				t.Errorf("after %d calls it recorded %+v", r.extractions, r.fails)
			}
			r.end()
		})
	})

	t.Run("WhatLacksItsKeyWaitsForTheOperator", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.begin()
			r.hint(func(l *Lease) { l.Closed = fmt.Errorf("open: %w", seal.ErrNoKey) })
			r.elapse(0)
			if len(r.fails) != 0 || r.extractions != 0 || len(r.laters) != 1 || r.laters[0].Class != task.PayloadUnreadable || r.laters[0].Delay < 30*time.Second {
				t.Errorf("after %d calls: failed %+v, later %+v", r.extractions, r.fails, r.laters)
			}
			r.end()
		})
	})

	t.Run("AfterTheCommitAConversationNeedsItNoMore", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.begin()
			r.hint(func(l *Lease) { l.Closed, l.Stage = seal.ErrUnreadable, task.Committed })
			r.elapse(0)
			if len(r.fails) != 0 || len(r.settles) != 1 {
				t.Errorf("failed %+v, settled %d", r.fails, len(r.settles))
			}
			r.end()
		})
	})

	t.Run("APieceThatIsClosedFailsItsTask", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			job := &refusing{cause: fmt.Errorf("read: %w", seal.ErrUnreadable)}
			r.deps.Jobs = map[task.Kind]Job{task.Import: job}
			r.begin()
			r.hint(func(l *Lease) { l.Kind = task.Import })
			r.elapse(0)
			if len(r.fails) != 1 || r.fails[0].Class != task.PayloadUnreadable || job.reads != 1 {
				t.Errorf("recorded %+v after %d reads", r.fails, job.reads)
			}
			r.hint(func(l *Lease) { l.Kind, l.Closed = task.Import, seal.ErrUnreadable })
			r.elapse(0)
			if len(r.fails) != 2 || job.reads != 1 {
				t.Errorf("a closed payload was given to the job: %+v after %d reads", r.fails, job.reads)
			}
			r.end()
		})
	})
}
