package obs

import (
	"testing"
	"time"

	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

func TestMinutes(t *testing.T) {
	t.Parallel()
	hints, repaired := Hints{Published: 5}, int64(0)
	m := NewMinutes(func() Hints { return hints }, func() int64 { return repaired })
	one, two := m.Worker(NewMetrics("test").Worker(4)), m.Worker(NewMetrics("test").Worker(4))
	m.Accepted("accepted", time.Millisecond)
	m.Accepted("replayed", time.Millisecond)
	m.Accepted("refused", time.Millisecond)
	one.Ended(worker.Succeeded, "", time.Second)
	two.Ended(worker.Retried, task.ProviderTimeout, time.Second)
	two.Ended(worker.Lost, task.LeaseLost, time.Second)
	one.Called("p", "", time.Second, model.Usage{})
	one.Called("p", task.ProviderTimeout, time.Second, model.Usage{})
	one.Called("p", task.LeaseLost, time.Second, model.Usage{})
	one.Busy(3)
	two.Busy(2)
	two.Busy(1)
	taken := m.Take()
	if taken.Accepted != 1 || taken.Replayed != 1 || taken.Refused != 1 || taken.AcceptTimes.Count() != 2 || taken.Succeeded != 1 ||
		taken.Retried != 1 || taken.HintsPublished != 5 || taken.ModelCalls != 3 || len(taken.ModelErrors) != 1 || taken.Busy != 4 {
		t.Fatalf("taken %+v", taken)
	}
	// What could not be kept is in the next row, beside what came meanwhile.
	hints.Published, repaired = 7, 2
	m.Accepted("accepted", time.Millisecond)
	m.Return(taken)
	again := m.Take()
	if again.Accepted != 2 || again.HintsPublished != 7 || again.HintsFixed != 2 || again.ModelErrors["provider_timeout"] != 1 || again.Busy != 4 {
		t.Fatalf("taken again %+v", again)
	}
	if empty := m.Take(); empty.Accepted != 0 || empty.HintsPublished != 0 || empty.HintsFixed != 0 || empty.ModelErrors != nil || empty.Busy != 4 {
		t.Fatalf("after that %+v", empty)
	}
}
