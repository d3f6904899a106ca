package obs

import (
	"sync"
	"time"

	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// Worker returns an observer for one worker with so many slots; several workers of a process add up.
func (m *Metrics) Worker(slots int) worker.Observer {
	m.slots.Add(float64(slots))
	for _, what := range []worker.Trouble{worker.WebhookDisabled, worker.LeaseExpired} {
		m.troubles.WithLabelValues(string(what)) // from zero on, so that the first one is an increase
	}
	return &observer{metrics: m}
}

type observer struct {
	metrics *Metrics

	mu   sync.Mutex
	busy int
}

func (o *observer) Claimed(by worker.Source) { o.metrics.claims.WithLabelValues(string(by)).Inc() }

func (o *observer) Ended(how worker.End, class task.Class, took time.Duration) {
	o.metrics.endings.WithLabelValues(string(how), string(class)).Inc()
	o.metrics.runTime.WithLabelValues(string(how)).Observe(took.Seconds())
}

func (o *observer) Landed(kind task.Kind, took time.Duration) {
	o.metrics.eventTime.WithLabelValues(string(kind)).Observe(took.Seconds())
}

func (o *observer) Called(provider string, class task.Class, took time.Duration, usage model.Usage) {
	o.metrics.calls.WithLabelValues(provider, string(class)).Inc()
	o.metrics.callTime.WithLabelValues(provider).Observe(took.Seconds())
	o.metrics.callUnits.WithLabelValues(provider, "in").Add(float64(usage.TokensIn))
	o.metrics.callUnits.WithLabelValues(provider, "out").Add(float64(usage.TokensOut))
}

func (o *observer) Troubled(what worker.Trouble) {
	o.metrics.troubles.WithLabelValues(string(what)).Inc()
}

func (o *observer) Busy(tasks int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.metrics.busy.Add(float64(tasks - o.busy))
	o.busy = tasks
}
