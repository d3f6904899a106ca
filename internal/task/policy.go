package task

import (
	"errors"
	"fmt"
	"time"
)

// Policy holds the numbers of the retry rules. The zero value is not useful; start from DefaultPolicy.
type Policy struct {
	// MaxAttempts is how many crashes end a task before its canonical commit.
	MaxAttempts int
	// RetryBase is the first backoff of a provider that fails; it doubles up to RetryCap.
	RetryBase, RetryCap time.Duration
	// OutputRetries is how often an invalid answer is asked for again.
	OutputRetries int
	// PauseAfter is the number of provider failures in a row, over all tasks, that pauses the provider.
	PauseAfter int
}

// DefaultPolicy returns the numbers of DESIGN's table.
func DefaultPolicy() Policy {
	return Policy{MaxAttempts: 5, RetryBase: 2 * time.Second, RetryCap: 5 * time.Minute, OutputRetries: 1, PauseAfter: 5}
}

// Validate reports numbers that would make tasks fail at once or never end.
func (p Policy) Validate() error {
	switch {
	case p.MaxAttempts < 1 || p.MaxAttempts > 100:
		return fmt.Errorf("max attempts must be 1 to 100, not %d", p.MaxAttempts)
	case p.RetryBase < time.Millisecond || p.RetryBase > p.RetryCap:
		return fmt.Errorf("retry base must be between 1ms and the cap of %s, not %s", p.RetryCap, p.RetryBase)
	case p.OutputRetries < 0 || p.OutputRetries > 10:
		return fmt.Errorf("output retries must be 0 to 10, not %d", p.OutputRetries)
	case p.PauseAfter < 1:
		return errors.New("the pause threshold must be at least 1")
	}
	return nil
}

// Failure is one classified failure of a run. RetryAfter is the provider's own floor, zero when it gave none.
type Failure struct {
	Class      Class
	Code       ErrorCode
	RetryAfter time.Duration
}

// Spent counts the recorded failures of the current generation by class.
type Spent map[Class]int

// Decision is what a failure leads to.
type Decision struct {
	// Fail ends the run; otherwise the task waits for Delay and runs again.
	Fail  bool
	Delay time.Duration
	// Pause keeps the whole provider from being called for that long; zero pauses nothing.
	Pause time.Duration
	// CountOutage adds the failure to the provider's failures in a row, which may pause it.
	CountOutage bool
}

// endless is the budget of classes that are repeated without end.
const endless = int(^uint(0) >> 1)

// Decide returns what follows a failure: spent are the failures of its class before this one, committed tells
// that the canonical records exist (then a task never fails, I6), and random is a number in [0,1) for jitter.
func (p Policy) Decide(f Failure, spent int, committed bool, random float64) Decision {
	budget, low, high := p.budget(f.Class)
	if committed {
		budget = endless
	}
	if spent >= budget {
		return Decision{Fail: true, Pause: p.pause(f, random)}
	}
	d := Decision{Pause: p.pause(f, random)}
	if high > 0 {
		d.Delay = jitter(low, backoff(p.RetryBase, low, high, spent), random)
	}
	if f.Class == DeliveryFailed {
		d.Delay = max(p.delivery(spent, random), f.RetryAfter)
		return d
	}
	if f.RetryAfter > 0 {
		d.Delay = f.RetryAfter + time.Duration(random*float64(max(low, p.RetryBase)))
	}
	d.CountOutage = f.Class == ProviderTimeout || f.Class == ProviderUnavailable
	return d
}

// budget returns how many automatic retries a class has and the bounds of their delay.
func (p Policy) budget(class Class) (retries int, low, high time.Duration) {
	slow := min(10*time.Second, 5*p.RetryBase) // 10 s by default; a shortened base shortens it too
	long := min(10*time.Minute, 300*p.RetryBase)
	switch class {
	case ProviderTimeout, ProviderUnavailable:
		return 10, 0, p.RetryCap
	case ProviderRateLimited:
		return 20, 0, p.RetryCap
	case ProviderRejected, PayloadUnreadable: // the operator has to mend it
		return 20, min(30*time.Second, 15*p.RetryBase), long
	case OutputInvalid:
		return p.OutputRetries, 0, 0
	case ExtractionRejected, InputRejected, Cancelled, Crash, EndpointDisabled:
		return 0, 0, 0
	case DeliveryFailed:
		return len(deliverySchedule()), 0, 0
	case InternalFailure:
		return 3, slow, long
	case ProjectionFailed:
		return endless, slow, long
	case ProjectionRejected, LeaseLost, Shutdown:
		return endless, 0, 0
	}
	return 3, slow, long
}

// deliverySchedule is how long a receiver is left alone after each failure in a row: a little more than two days in all,
// so that a weekend passes (Standard Webhooks).
func deliverySchedule() []time.Duration {
	return []time.Duration{
		5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour,
		20 * time.Hour,
	}
}

// delivery returns the delay after a delivery that has failed spent times before, spread by a tenth to either side. A
// shortened retry base shortens it too.
func (p Policy) delivery(spent int, random float64) time.Duration {
	schedule := deliverySchedule()
	delay := schedule[min(spent, len(schedule)-1)]
	if base := DefaultPolicy().RetryBase; p.RetryBase < base {
		delay = time.Duration(float64(delay) * float64(p.RetryBase) / float64(base))
	}
	return jitter(delay*9/10, delay*11/10, random)
}

// pause returns how long the provider as a whole is left alone because of f. An outage pauses only after
// several failures in a row, which the store counts.
func (p Policy) pause(f Failure, random float64) time.Duration {
	switch f.Class {
	case ProviderRateLimited:
		if f.RetryAfter > 0 {
			return f.RetryAfter
		}
		return jitter(p.RetryBase, 2*p.RetryBase, random)
	case ProviderRejected:
		low, _, _ := p.rejectedDelay()
		return max(low, f.RetryAfter)
	case DeliveryFailed, EndpointDisabled: // a receiver is not a provider
		return 0
	case ProviderTimeout, ProviderUnavailable, OutputInvalid, ExtractionRejected, InputRejected, PayloadUnreadable, InternalFailure, ProjectionFailed,
		ProjectionRejected, LeaseLost, Shutdown, Crash, Cancelled:
		return f.RetryAfter
	}
	return 0
}

func (p Policy) rejectedDelay() (low, high time.Duration, retries int) {
	retries, low, high = p.budget(ProviderRejected)
	return low, high, retries
}

// OutagePause returns the pause after so many provider failures in a row, zero below the threshold.
func (p Policy) OutagePause(inARow int) time.Duration {
	if inARow < p.PauseAfter {
		return 0
	}
	return backoff(p.RetryBase, p.RetryBase, p.RetryCap/5, inARow-p.PauseAfter)
}

// backoff doubles from the larger of base and low, n times, up to high.
func backoff(base, low, high time.Duration, n int) time.Duration {
	d := max(base, low)
	for range min(n, 30) { // 30 doublings exceed every cap; more would overflow
		if d >= high {
			break
		}
		d *= 2
	}
	return min(d, high)
}

// jitter spreads a delay over [low, high): full jitter when low is zero.
func jitter(low, high time.Duration, random float64) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(random*float64(high-low))
}
