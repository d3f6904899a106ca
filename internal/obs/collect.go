package obs

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/repair"
)

// Hints are counts of one NATS connection since the process started.
type Hints struct {
	Published, Failed, Duplicates, Malformed, Notices, Reconnects uint64
}

// WatchHints adds the counts that read answers at each scrape.
func (m *Metrics) WatchHints(read func() Hints) {
	add := func(name, help string, of func(Hints) uint64) {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Namespace: namespace, Name: name, Help: help,
		}, func() float64 { return float64(of(read())) }))
	}
	add("hints_published_total", "Hints that the stream took or knew already.", func(h Hints) uint64 { return h.Published })
	add("hints_failed_total", "Hints that could not be published; polling finds their tasks.", func(h Hints) uint64 { return h.Failed })
	add("hints_duplicate_total", "Published hints whose id the stream knew already.", func(h Hints) uint64 { return h.Duplicates })
	add("hints_malformed_total", "Received messages that were no hint.", func(h Hints) uint64 { return h.Malformed })
	add("notices_total", "Completion notices received.", func(h Hints) uint64 { return h.Notices })
	add("nats_reconnects_total", "Times that the connection to NATS came back.", func(h Hints) uint64 { return h.Reconnects })
}

const (
	// factsAge is how long the facts of the queue are repeated: a scraper of many replicas must not be a load.
	factsAge = 5 * time.Second
	// factsBound leaves a scrape time for the rest.
	factsBound = 3 * time.Second
)

// WatchQueue adds the gauges of the queue, which are those of the whole database, read at a scrape and at most every 5 s.
// While they cannot be read the gauge holdfast_queue_readable is 0 and the others are left out. A second call adds nothing.
func (m *Metrics) WatchQueue(facts func(context.Context) (recall.Facts, error)) {
	m.watching.Do(func() { m.registry.MustRegister(newQueue(facts)) })
}

func newQueue(facts func(context.Context) (recall.Facts, error)) *queue {
	return &queue{
		facts:    facts,
		count:    description("queue_due_tasks", "Tasks that are due, of the first 10,000 that wait."),
		leased:   description("queue_leased_tasks", "Tasks in hand, up to 10,000."),
		readable: description("queue_readable", "1 when the gauges of the queue could be read from the database."),
		due:      description("queue_oldest_due_seconds", "How long the oldest due task has been due."),
		expired:  description("queue_expired_leases", "Expired leases that nobody has moved on yet, up to 1,000."),
		failures: description("queue_recent_failures", "Tasks that failed in the last ten minutes for our reasons, up to 1,000."),
		skipped:  description("queue_skipped_vectors", "Texts that the embedder refused for good, up to 1,000."),
		paused:   description("queue_provider_paused", "1 while a provider is left alone."),
	}
}

// WatchRepair adds the totals of the passes of repair, as they are at each scrape.
func (m *Metrics) WatchRepair(totals func() map[string]repair.Result) {
	m.registry.MustRegister(repairs{totals, prometheus.NewDesc(
		prometheus.BuildFQName(namespace, "", "repair_total"), "What repair came upon, by pass.", []string{"pass", "result"}, nil)})
}

// repairs reads the totals at a scrape.
type repairs struct {
	totals func() map[string]repair.Result
	desc   *prometheus.Desc
}

func (r repairs) Describe(to chan<- *prometheus.Desc) { to <- r.desc }

func (r repairs) Collect(to chan<- prometheus.Metric) {
	for pass, total := range r.totals() {
		for result, n := range map[string]int{
			"found": total.Found, "fixed": total.Fixed, "skipped": total.Skipped, "failed": total.Failed,
		} {
			to <- prometheus.MustNewConstMetric(r.desc, prometheus.CounterValue, float64(n), pass, result)
		}
	}
}

// WatchShed adds how many callers got no connection to the database in time, as read answers at each scrape.
func (m *Metrics) WatchShed(read func() uint64) {
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Namespace: namespace, Name: "pool_shed_total", Help: "Calls that got no database connection in time.",
	}, func() float64 { return float64(read()) }))
}

// WatchStreams adds how many streams of events are open.
func (m *Metrics) WatchStreams(read func() int) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: namespace, Name: "streams_open", Help: "Open streams of events.",
	}, func() float64 { return float64(read()) }))
}

// Spans are counts of a process's spans since it started.
type Spans struct{ Ended, Exported, Lost uint64 }

// WatchSpans adds what became of spans: ended, exported, or lost because their exporter failed.
func (m *Metrics) WatchSpans(read func() Spans) {
	for name, of := range map[string]func(Spans) uint64{
		"ended": func(s Spans) uint64 { return s.Ended }, "exported": func(s Spans) uint64 { return s.Exported },
		"lost": func(s Spans) uint64 { return s.Lost },
	} {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Namespace: namespace, Name: "spans_total", Help: "Spans of traces, by what became of them.",
			ConstLabels: prometheus.Labels{"result": name},
		}, func() float64 { return float64(of(read())) }))
	}
}

// Pool is the state of a connection pool.
type Pool struct {
	Open, Idle, InUse, Max int32
	Waits                  int64
	Waited                 time.Duration
}

// WatchPool adds what is known of the pool of connections that is for this use: main or api.
func (m *Metrics) WatchPool(use string, read func() Pool) {
	of := prometheus.Labels{"pool": use}
	gauge := func(name, help string, value func(Pool) float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: namespace, Name: name, Help: help, ConstLabels: of,
		}, func() float64 { return value(read()) }))
	}
	gauge("pool_connections_open", "Connections to the database.", func(p Pool) float64 { return float64(p.Open) })
	gauge("pool_connections_idle", "Connections that nobody uses.", func(p Pool) float64 { return float64(p.Idle) })
	gauge("pool_connections_in_use", "Connections in use.", func(p Pool) float64 { return float64(p.InUse) })
	gauge("pool_connections_max", "Connections at most.", func(p Pool) float64 { return float64(p.Max) })
	m.registry.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Namespace: namespace, Name: "pool_waits_total", Help: "Times that a connection had to be waited for.", ConstLabels: of,
		}, func() float64 { return float64(read().Waits) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Namespace: namespace, Name: "pool_wait_seconds_total", Help: "Time spent waiting for connections.", ConstLabels: of,
		}, func() float64 { return read().Waited.Seconds() }),
	)
}

func description(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, nil, nil)
}

// queue reads the facts once for all its gauges.
type queue struct {
	facts                                                            func(context.Context) (recall.Facts, error)
	readable, due, count, leased, expired, failures, skipped, paused *prometheus.Desc

	mu   sync.Mutex
	last recall.Facts
	err  error
	at   time.Time
}

func (q *queue) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{q.readable, q.due, q.count, q.leased, q.expired, q.failures, q.skipped, q.paused} {
		to <- d
	}
}

func (q *queue) Collect(to chan<- prometheus.Metric) {
	facts, err := q.read()
	gauge := func(d *prometheus.Desc, v float64) { to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v) }
	if err != nil {
		gauge(q.readable, 0)
		return
	}
	gauge(q.readable, 1)
	gauge(q.due, facts.OldestDue.Seconds())
	gauge(q.count, float64(facts.Due))
	gauge(q.leased, float64(facts.Leased))
	gauge(q.expired, float64(facts.ExpiredLeases))
	gauge(q.failures, float64(facts.RecentFailures))
	gauge(q.skipped, float64(facts.SkippedVectors))
	paused := 0.0
	if facts.PausedProvider {
		paused = 1
	}
	gauge(q.paused, paused)
}

func (q *queue) read() (recall.Facts, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.at.IsZero() && time.Since(q.at) < factsAge {
		return q.last, q.err
	}
	ctx, cancel := context.WithTimeout(context.Background(), factsBound)
	defer cancel()
	q.last, q.err = q.facts(ctx)
	q.at = time.Now()
	return q.last, q.err
}
