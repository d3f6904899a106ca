package obs

import (
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const namespace = "holdfast"

// Metrics are the counters of one process. Every label has a small fixed set of values.
type Metrics struct {
	registry *prometheus.Registry

	requests    *prometheus.CounterVec
	requestTime *prometheus.HistogramVec
	accepts     *prometheus.CounterVec
	acceptTime  *prometheus.HistogramVec
	shed        *prometheus.CounterVec

	claims    *prometheus.CounterVec
	endings   *prometheus.CounterVec
	runTime   *prometheus.HistogramVec
	calls     *prometheus.CounterVec
	callTime  *prometheus.HistogramVec
	callUnits *prometheus.CounterVec
	troubles  *prometheus.CounterVec
	busy      prometheus.Gauge
	slots     prometheus.Gauge
	eventTime *prometheus.HistogramVec

	groupSize *prometheus.HistogramVec
	groupWait *prometheus.HistogramVec

	watching sync.Once // the queue
}

// NewMetrics returns metrics in a registry of their own, with those of the Go runtime and the process.
func NewMetrics(version string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: counters("http_requests_total", "Requests answered, by route pattern.", "route", "method", "status"),
		// Long-polls last up to a minute; everything else is milliseconds.
		requestTime: histograms("http_request_seconds", "Time to answer a request.",
			[]float64{.002, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 30, 60}, "route"),
		shed:    counters("shed_total", "Requests refused to keep the load down, by what was exhausted.", "by"),
		accepts: counters("accepts_total", "Commands decided: accepted, replayed or refused, by code.", "kind", "result", "code"),
		acceptTime: histograms("accept_seconds", "Time of the transaction that decides a command, its wait for a connection and for a group included.",
			[]float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}, "kind", "result"),
		claims:  counters("claims_total", "Leases taken, by where the task was found.", "source"),
		endings: counters("task_endings_total", "Claims ended, by how and by the class of the failure.", "ending", "class"),
		runTime: histograms("task_seconds", "Time from a claim to its end.",
			[]float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}, "ending"),
		calls: counters("model_calls_total", "Calls of model providers; class is empty for a success.", "provider", "class"),
		callTime: histograms("model_call_seconds", "Time of a call of a model provider.",
			[]float64{.005, .025, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}, "provider"),
		callUnits: counters("model_tokens_total", "Tokens that providers say they counted.", "provider", "direction"),
		troubles:  counters("worker_troubles_total", "What went wrong in a worker and was got over.", "what"),
		eventTime: histograms("event_seconds", "Time from a command's acceptance to its success, by the database's clock; commands retried by hand are left out.",
			[]float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200}, "kind"),
		slots: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: namespace, Name: "worker_slots", Help: "Tasks that the workers of this process run at once at most.",
		}),
		groupSize: histograms("group_items", "Items that shared a commit.", []float64{1, 2, 4, 8, 16, 32, 64, 128}, "group"),
		groupWait: histograms("group_wait_seconds", "Time that the first item of a group waited to be taken.",
			[]float64{.0001, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5}, "group"),
		busy: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: namespace, Name: "worker_busy", Help: "Tasks in hand.",
		}),
	}
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: namespace, Name: "build_info", Help: "Always 1; the labels tell the version and that of Go.",
	}, []string{"version", "goversion"})
	info.WithLabelValues(version, runtime.Version()).Set(1)
	m.registry.MustRegister(
		m.requests, m.requestTime, m.accepts, m.acceptTime, m.shed, m.claims, m.endings, m.runTime, m.calls, m.callTime, m.callUnits, m.troubles,
		m.busy, m.slots, m.eventTime, m.groupSize, m.groupWait, info,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Name: name, Help: help, Buckets: buckets,
	}, labels)
}

// Handler answers the metrics in the format that Prometheus reads.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: 4, // scrapers are few; each asks the database for the gauges of the queue
		Timeout:             scrapeBound,
	})
}

// scrapeBound is below the 10 s that Prometheus gives a scrape by default.
const scrapeBound = 8 * time.Second

// Request counts one answered request. Route is a pattern, never a path.
func (m *Metrics) Request(route, method string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, method, strconv.Itoa(status)).Inc()
	m.requestTime.WithLabelValues(route).Observe(took.Seconds())
}

// Shed counts one request that was refused to keep the load down: by workspace_rate, key_rate, pending or in_flight.
func (m *Metrics) Shed(by string) { m.shed.WithLabelValues(by).Inc() }

// Accept counts one decided command: result is accepted, replayed or refused, code the public code of a refusal.
func (m *Metrics) Accept(kind, result, code string, took time.Duration) {
	m.accepts.WithLabelValues(kind, result, code).Inc()
	m.acceptTime.WithLabelValues(kind, result).Observe(took.Seconds())
}

// Group counts a group of the store that begins: of accept, commit, settle or claim.
func (m *Metrics) Group(what string, items int, waited time.Duration) {
	m.groupSize.WithLabelValues(what).Observe(float64(items))
	m.groupWait.WithLabelValues(what).Observe(waited.Seconds())
}
