package holdfast

import (
	"context"
	"time"
)

// WithClock replaces the clock, so that a test doesn't sleep.
func WithClock(now func() time.Time, sleep func(context.Context, time.Duration) error) Option {
	return func(s *settings) { s.clock = clock{now: now, sleep: sleep} }
}
