package operator

import (
	"math"
	"math/bits"
	"time"
)

// classes is how many classes of times there are: class n holds what took less than 2^n ms, the last one all the rest, so
// that the last bound is above the longest model call.
const classes = 20

// Times counts durations in classes that double, so that those of several processes and minutes add up.
type Times []int64

// Add counts one.
func (t *Times) Add(took time.Duration) {
	if len(*t) < classes {
		*t = append(*t, make([]int64, classes-len(*t))...)
	}
	ms := max(0, took.Milliseconds())
	(*t)[min(bits.Len64(uint64(ms)), classes-1)]++
}

// Merge adds what other has counted.
func (t *Times) Merge(other Times) {
	if len(*t) < len(other) {
		*t = append(*t, make([]int64, len(other)-len(*t))...)
	}
	for i, n := range other {
		(*t)[i] += n
	}
}

// Count is how many were counted.
func (t Times) Count() (n int64) {
	for _, c := range t {
		n += c
	}
	return n
}

// Quantile answers about how long the share q of all took at most, zero for none. Within a class it is interpolated.
func (t Times) Quantile(q float64) time.Duration {
	all := t.Count()
	if all == 0 {
		return 0
	}
	rank, seen := q*float64(all), 0.0
	for i, n := range t {
		if n == 0 || seen+float64(n) < rank {
			seen += float64(n)
			continue
		}
		low, high := 0.0, 1.0
		if i > 0 {
			low, high = math.Exp2(float64(i-1)), math.Exp2(float64(i))
		}
		within := max(0, rank-seen) / float64(n)
		return time.Duration((low + (high-low)*within) * float64(time.Millisecond))
	}
	return 0
}

// ProcessMinute is what one process did since its row before.
type ProcessMinute struct {
	At      time.Time
	Process string
	Span    time.Duration

	Accepted, Replayed, Refused             int64
	AcceptTimes                             Times
	Succeeded, Retried, Failed, GivenBack   int64
	HintsPublished, HintsFailed, HintsFixed int64
	ModelCalls                              int64
	ModelTimes                              Times
	// ModelErrors counts failed calls by their class.
	ModelErrors map[string]int64
	// Busy is how many tasks were in hand at its end.
	Busy int
}

// Merge adds what another minute counted; Busy is that of both.
func (m *ProcessMinute) Merge(o ProcessMinute) {
	m.Accepted, m.Replayed, m.Refused = m.Accepted+o.Accepted, m.Replayed+o.Replayed, m.Refused+o.Refused
	m.Succeeded, m.Retried = m.Succeeded+o.Succeeded, m.Retried+o.Retried
	m.Failed, m.GivenBack = m.Failed+o.Failed, m.GivenBack+o.GivenBack
	m.HintsPublished, m.HintsFailed = m.HintsPublished+o.HintsPublished, m.HintsFailed+o.HintsFailed
	m.HintsFixed, m.ModelCalls, m.Busy = m.HintsFixed+o.HintsFixed, m.ModelCalls+o.ModelCalls, m.Busy+o.Busy
	m.AcceptTimes.Merge(o.AcceptTimes)
	m.ModelTimes.Merge(o.ModelTimes)
	for class, n := range o.ModelErrors {
		if m.ModelErrors == nil {
			m.ModelErrors = map[string]int64{}
		}
		m.ModelErrors[class] += n
	}
}

// Standing is how the whole service stands. Its counts of open work are of the first events.
type Standing struct {
	Waiting, Running, Retrying, Due, Expired int
	// OldestDue is how long the event that is due for longest has been due.
	OldestDue time.Duration
	// Succeeded and Failed are of the last minute, up to 5,000 of both; DoneP50 and DoneP99 are the times from acceptance
	// to success of those that succeeded.
	Succeeded, Failed int
	DoneP50, DoneP99  time.Duration
}

// ServiceMinute is how the service stood in one minute.
type ServiceMinute struct {
	Minute time.Time
	Standing
}
