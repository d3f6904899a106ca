package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Result is what one measurement has seen.
type Result struct {
	Elapsed time.Duration
	times   []time.Duration // sorted
}

// Count is how many operations ended within the measurement.
func (r Result) Count() int { return len(r.times) }

// Rate is operations a second.
func (r Result) Rate() float64 { return float64(len(r.times)) / r.Elapsed.Seconds() }

// Quantile is the time that a part q of the operations, 0 to 1, did not exceed; 0 without any.
func (r Result) Quantile(q float64) time.Duration {
	if len(r.times) == 0 {
		return 0
	}
	return r.times[min(len(r.times)-1, int(q*float64(len(r.times))))]
}

// Operation is one piece of work of one of the callers.
type Operation func(ctx context.Context, caller int) error

// maxErrors ends a measurement: a system that refuses most of the work would look fast.
const maxErrors = 3

// Closed lets callers repeat do, each without a pause, for warm and then for spell, and measures what ended within
// spell. Its error is the first that an operation answered.
func Closed(ctx context.Context, callers int, warm, spell time.Duration, do Operation) (Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begin := time.Now().Add(warm)
	end := begin.Add(spell)
	times := make([][]time.Duration, callers)
	var failures atomic.Int32
	var first error
	var once sync.Once
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for {
				started := time.Now()
				if started.After(end) || ctx.Err() != nil {
					return
				}
				if err := do(ctx, caller); err != nil {
					once.Do(func() { first = err })
					if failures.Add(1) >= maxErrors {
						cancel()
						return
					}
					continue
				}
				if ended := time.Now(); ended.After(begin) && !ended.After(end) {
					times[caller] = append(times[caller], ended.Sub(started))
				}
			}
		})
	}
	all.Wait()
	return finish(times, spell, first)
}

// Open starts do at a fixed rate for warm and then for spell, at most most at once, and measures those that began
// within spell, from when they should have begun. An arrival that finds no place waits, and its wait counts.
func Open(ctx context.Context, rate float64, most int, warm, spell time.Duration, do Operation) (Result, error) {
	begin := time.Now()
	arrivals := int((warm + spell).Seconds() * rate)
	times := make([][]time.Duration, most)
	var next atomic.Int64
	var first error
	var once sync.Once
	var all sync.WaitGroup
	for caller := range most {
		all.Go(func() {
			for ctx.Err() == nil {
				n := int(next.Add(1)) - 1
				if n >= arrivals {
					return
				}
				due := begin.Add(time.Duration(float64(n) / rate * float64(time.Second)))
				if err := pause(ctx, time.Until(due)); err != nil {
					return
				}
				if err := do(ctx, caller); err != nil {
					once.Do(func() { first = err })
					return
				}
				if due.Sub(begin) >= warm {
					times[caller] = append(times[caller], time.Since(due))
				}
			}
		})
	}
	all.Wait()
	return finish(times, max(spell, time.Since(begin)-warm), first)
}

// Fixed lets callers do n operations between them, for what is counted and not timed. Its error is the first that an
// operation answered, and ends it.
func Fixed(ctx context.Context, callers, n int, do Operation) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var next atomic.Int64
	var first error
	var once sync.Once
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for ctx.Err() == nil && next.Add(1) <= int64(n) {
				if err := do(ctx, caller); err != nil {
					once.Do(func() { first = err })
					cancel()
				}
			}
		})
	}
	all.Wait()
	if first == nil && next.Load() <= int64(n) {
		first = ctx.Err()
	}
	return first
}

func pause(ctx context.Context, wait time.Duration) error {
	if wait <= 0 {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func finish(times [][]time.Duration, elapsed time.Duration, err error) (Result, error) {
	r := Result{Elapsed: elapsed, times: slices.Concat(times...)}
	slices.Sort(r.times)
	switch {
	case err != nil:
		return r, fmt.Errorf("under load: %w", err)
	case len(r.times) == 0:
		return r, errors.New("under load: nothing ended within the measurement")
	}
	return r, nil
}
