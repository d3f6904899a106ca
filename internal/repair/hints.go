package repair

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-memory/holdfast/internal/task"
)

// publishers is how many hints are published at a time: with a NATS that stalls each takes its bound of 250 ms, and
// 500 of them then 16 s.
const publishers = 8

// hints makes new hints for due tasks whose last one is older than age, as many as the limit leaves: with that many
// in NATS already, whoever pulls them finds work without ours.
func (r *Repairer) hints(ctx context.Context, res *Result, age time.Duration) error {
	limit := r.cfg.HintLimit - r.backlog(ctx)
	if limit <= 0 {
		return nil
	}
	found, raised, err := r.deps.Hints.Rehint(ctx, Rehint{MaxAttempts: r.cfg.MaxAttempts, Age: age, Limit: limit})
	res.add(Swept{Found: found, Fixed: len(raised)})
	r.publish(ctx, raised)
	return err
}

// backlog is how many hints wait in NATS. Not to know it is no reason to keep hints back.
func (r *Repairer) backlog(ctx context.Context) int {
	if r.deps.Backlog == nil {
		return 0
	}
	waiting := 0
	for _, priority := range []string{task.Interactive, task.Bulk} {
		if n, err := r.deps.Backlog.Waiting(ctx, priority); err == nil {
			waiting += int(min(n, maxHintLimit)) // #nosec G115 -- bounded
		}
	}
	return waiting
}

// publish publishes hints, several at a time. A hint that gets lost is made again when it has its age.
func (r *Repairer) publish(ctx context.Context, hints []task.Hint) {
	var wg sync.WaitGroup
	next := make(chan task.Hint)
	for range min(publishers, len(hints)) {
		wg.Go(func() {
			for hint := range next {
				r.deps.Publisher.Publish(ctx, hint)
			}
		})
	}
	for _, hint := range hints {
		next <- hint
	}
	close(next)
	wg.Wait()
}
