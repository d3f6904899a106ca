package obs

import (
	"sync"
	"time"

	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/operator"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// Minutes counts what a process does between two rows of it. It is safe for concurrent use.
type Minutes struct {
	hints    func() Hints
	repaired func() int64

	mu     sync.Mutex
	began  time.Time
	busy   map[*minuteObserver]int
	now    operator.ProcessMinute
	told   Hints // what was taken before
	before int64
}

// NewMinutes returns empty counts. Hints and repaired answer totals since the process started; nil is none.
func NewMinutes(hints func() Hints, repaired func() int64) *Minutes {
	if hints == nil {
		hints = func() Hints { return Hints{} }
	}
	if repaired == nil {
		repaired = func() int64 { return 0 }
	}
	return &Minutes{hints: hints, repaired: repaired, began: time.Now(), busy: map[*minuteObserver]int{}}
}

// Accepted counts one decided command: result is accepted, replayed or refused.
func (m *Minutes) Accepted(result string, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch result {
	case "accepted":
		m.now.Accepted++
	case "replayed":
		m.now.Replayed++
	default:
		m.now.Refused++
		return
	}
	m.now.AcceptTimes.Add(took)
}

// Take answers what was counted since the last Take, and begins anew.
func (m *Minutes) Take() operator.ProcessMinute {
	hints, repaired := m.hints(), m.repaired()
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := m.now
	taken.Span = time.Since(m.began)
	taken.HintsPublished += since(hints.Published, m.told.Published)
	taken.HintsFailed += since(hints.Failed, m.told.Failed)
	taken.HintsFixed += max(0, repaired-m.before)
	taken.Busy = 0
	for _, n := range m.busy {
		taken.Busy += n
	}
	m.now, m.began, m.told, m.before = operator.ProcessMinute{}, time.Now(), hints, repaired
	return taken
}

// Return puts back what could not be kept, so that the next row has it.
func (m *Minutes) Return(taken operator.ProcessMinute) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now.Merge(taken)
	m.began = m.began.Add(-taken.Span)
}

func since(now, before uint64) int64 {
	if now < before {
		return 0
	}
	return int64(now - before) // #nosec G115 -- a count of one minute
}

// Worker returns an observer that counts here what it is told, and tells next.
func (m *Minutes) Worker(next worker.Observer) worker.Observer {
	return &minuteObserver{Observer: next, minutes: m}
}

type minuteObserver struct {
	worker.Observer
	minutes *Minutes
}

// Ended implements worker.Observer.
func (o *minuteObserver) Ended(how worker.End, class task.Class, took time.Duration) {
	o.Observer.Ended(how, class, took)
	o.minutes.mu.Lock()
	defer o.minutes.mu.Unlock()
	switch now := &o.minutes.now; how {
	case worker.Succeeded:
		now.Succeeded++
	case worker.Retried:
		now.Retried++
	case worker.Failed:
		now.Failed++
	case worker.GivenBack:
		now.GivenBack++
	case worker.Lost, worker.Unseen, worker.Unsaved, worker.Abandoned: // told by whoever ended the task
	}
}

// Called implements worker.Observer.
func (o *minuteObserver) Called(provider string, class task.Class, took time.Duration, usage model.Usage) {
	o.Observer.Called(provider, class, took, usage)
	o.minutes.mu.Lock()
	defer o.minutes.mu.Unlock()
	now := &o.minutes.now
	now.ModelCalls++
	now.ModelTimes.Add(took)
	switch class {
	case "", task.LeaseLost, task.Shutdown, task.Cancelled: // a call that was broken off says nothing of the provider
	default:
		if now.ModelErrors == nil {
			now.ModelErrors = map[string]int64{}
		}
		now.ModelErrors[string(class)]++
	}
}

// Busy implements worker.Observer.
func (o *minuteObserver) Busy(tasks int) {
	o.Observer.Busy(tasks)
	o.minutes.mu.Lock()
	defer o.minutes.mu.Unlock()
	o.minutes.busy[o] = tasks
}
