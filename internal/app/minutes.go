package app

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	randv2 "math/rand/v2"
	"time"

	"github.com/holdfast-memory/holdfast/internal/obs"
	"github.com/holdfast-memory/holdfast/internal/operator"
	"github.com/holdfast-memory/holdfast/internal/repair"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/write"
)

const (
	// minuteBound is how long keeping one row may take: the next one is due soon.
	minuteBound = 10 * time.Second
	// minuteStop is short: a row that is under way may be lost.
	minuteStop = 2 * time.Second
)

// minuteStore keeps what the console draws.
type minuteStore interface {
	AddMinute(ctx context.Context, m operator.ProcessMinute) error
	KeepStanding(ctx context.Context) error
}

// addMinutes keeps a row a minute of what the process does.
func (p *process) addMinutes(name string) {
	every := p.core.settings.MinuteInterval
	p.add("minutes", &loop{run: func(ctx context.Context) {
		p.core.keepMinutes(ctx, p.core.watched, processName(name), every)
	}}, minuteStop)
}

// processName tells this start of a process from all others, without naming its host.
func processName(kind string) string {
	var random [3]byte
	_, _ = rand.Read(random[:]) // never fails
	return kind + "-" + hex.EncodeToString(random[:])
}

// keepMinutes keeps a row each interval until ctx ends. A tenth of the interval is left to chance, so that processes don't
// meet. What can't be kept is in the next row; the log tells when that begins and ends.
func (c *core) keepMinutes(ctx context.Context, store minuteStore, name string, every time.Duration) {
	failing := false
	for {
		pause := time.NewTimer(every - time.Duration(randv2.Float64()*float64(every)/10)) // #nosec G404 -- jitter
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return
		}
		err := c.keepMinute(ctx, store, name)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !failing {
			c.log.Warn().Err(err).Msg("the numbers of the last minute could not be kept")
		}
		failing = err != nil
	}
}

func (c *core) keepMinute(ctx context.Context, store minuteStore, name string) error {
	ctx, cancel := context.WithTimeout(ctx, minuteBound)
	defer cancel()
	taken := c.minutes.Take()
	taken.Process = name
	if err := store.AddMinute(ctx, taken); err != nil {
		c.minutes.Return(taken)
		return fmt.Errorf("keep minute: %w", err)
	}
	if err := store.KeepStanding(ctx); err != nil {
		return fmt.Errorf("keep standing: %w", err)
	}
	return nil
}

// newMinutes counts for the core. What repair has hinted again is known once there is a repairer.
func (c *core) newMinutes() *obs.Minutes {
	return obs.NewMinutes(func() obs.Hints {
		if c.wakeups.client == nil {
			return obs.Hints{}
		}
		return c.wakeups.counts()
	}, func() int64 {
		if totals := c.repairTotals; totals != nil {
			return int64(totals()[repair.PassHints].Fixed)
		}
		return 0
	})
}

// minuteAccepts counts what the store decides about commands, and how long it took.
type minuteAccepts struct {
	store   write.AcceptStore
	minutes *obs.Minutes
}

// Accept implements write.AcceptStore.
func (s minuteAccepts) Accept(ctx context.Context, items []write.Acceptance) []write.Accepted {
	began := time.Now()
	answers := s.store.Accept(ctx, items)
	for _, a := range answers {
		s.minutes.Accepted(verdict(a.Replayed, a.Refused), time.Since(began))
	}
	return answers
}

// minuteWrites does the same for verbatim adds.
type minuteWrites struct {
	store   write.NowStore
	minutes *obs.Minutes
}

// WriteNow implements write.NowStore.
func (s minuteWrites) WriteNow(ctx context.Context, w write.Written) (write.Stored, *task.Hint, error) {
	began := time.Now()
	stored, hint, err := s.store.WriteNow(ctx, w)
	s.minutes.Accepted(verdict(stored.Replayed, err), time.Since(began))
	return stored, hint, err
}
