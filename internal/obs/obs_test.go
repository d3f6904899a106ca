package obs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/repair"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

func TestLogger(t *testing.T) {
	t.Parallel()

	t.Run("WritesOneLineOfJSONFromItsLevelOn", func(t *testing.T) {
		t.Parallel()
		var out bytes.Buffer
		log, err := NewLogger(&out, "warn", "api")
		if err != nil {
			t.Fatal(err)
		}
		log.Info().Msg("not this")
		log.Warn().Str("code", "X").Msg("this")
		var line map[string]any
		if err := json.Unmarshal(out.Bytes(), &line); err != nil || strings.Count(out.String(), "\n") != 1 {
			t.Fatalf("one line of JSON, not %q: %v", out.String(), err)
		}
		if line["message"] != "this" || line["process"] != "api" || line["code"] != "X" || line["time"] == nil {
			t.Fatalf("got %v", line)
		}
	})

	t.Run("RefusesAnUnknownLevel", func(t *testing.T) {
		t.Parallel()
		if _, err := NewLogger(io.Discard, "loud", "api"); err == nil {
			t.Fatal("it was taken")
		}
	})
}

func serveAdmin(t *testing.T, m *Metrics, check func(context.Context) error, settings ...func(*Admin)) *Admin {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	admin, err := NewAdmin(listener, m, check)
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range settings {
		set(admin)
	}
	if err := admin.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return admin
}

func get(t *testing.T, admin *Admin, path string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+admin.Addr()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestAdmin(t *testing.T) {
	t.Parallel()

	t.Run("IsReadyOnlyBetweenStartAndStopAndWithItsDependencies", func(t *testing.T) {
		t.Parallel()
		var broken atomic.Bool
		admin := serveAdmin(t, NewMetrics("test"), func(context.Context) error {
			if broken.Load() {
				return errors.New("the database does not answer")
			}
			return nil
		})
		if status, _ := get(t, admin, "/readyz"); status != http.StatusServiceUnavailable {
			t.Fatalf("before the start: %d", status)
		}
		admin.SetReady(true)
		if status, _ := get(t, admin, "/readyz"); status != http.StatusOK {
			t.Fatalf("ready: %d", status)
		}
		broken.Store(true)
		if status, body := get(t, admin, "/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, "database") {
			t.Fatalf("without the database: %d %s", status, body)
		}
		broken.Store(false)
		admin.SetReady(false)
		if status, _ := get(t, admin, "/readyz"); status != http.StatusServiceUnavailable {
			t.Fatalf("while stopping: %d", status)
		}
		if status, _ := get(t, admin, "/healthz"); status != http.StatusOK {
			t.Fatalf("it is alive all the time: %d", status)
		}
	})

	t.Run("ShowsProfilesOnlyWhenTold", func(t *testing.T) {
		t.Parallel()
		check := func(context.Context) error { return nil }
		if status, _ := get(t, serveAdmin(t, NewMetrics("test"), check), "/debug/pprof/goroutine?debug=1"); status != http.StatusNotFound {
			t.Fatalf("by default: %d", status)
		}
		admin := serveAdmin(t, NewMetrics("test"), check, (*Admin).ShowProfiles)
		if status, body := get(t, admin, "/debug/pprof/goroutine?debug=1"); status != http.StatusOK || !strings.Contains(body, "goroutine profile: total") {
			t.Fatalf("when told: %d %s", status, body)
		}
		// The command line can hold secrets.
		if status, _ := get(t, admin, "/debug/pprof/cmdline"); status != http.StatusNotFound {
			t.Fatalf("the command line: %d", status)
		}
	})

	t.Run("StopsTwiceAndBeforeStart", func(t *testing.T) {
		t.Parallel()
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		admin, err := NewAdmin(listener, NewMetrics("test"), func(context.Context) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(admin.Stop(t.Context()), admin.Stop(t.Context())); err != nil {
			t.Fatal(err)
		}
		if admin.Start(t.Context()) == nil {
			t.Fatal("a stopped server started")
		}
	})
}

func TestMetrics(t *testing.T) {
	t.Parallel()

	t.Run("CountWhatHappens", func(t *testing.T) {
		t.Parallel()
		m := NewMetrics("v1")
		m.Request("/v1/events/:id", "GET", 200, time.Millisecond)
		m.Accept("memory_infer", "accepted", "", time.Millisecond)
		one, two := m.Worker(16), m.Worker(16)
		one.Claimed(worker.ByHint)
		one.Busy(3)
		two.Busy(2)
		one.Busy(1)
		one.Ended(worker.Failed, task.ProviderTimeout, time.Second)
		one.Called("offline", "", time.Millisecond, model.Usage{TokensIn: 7, TokensOut: 5})
		one.Troubled(worker.AckFailed)
		m.WatchHints(func() Hints { return Hints{Published: 4, Failed: 3, Duplicates: 2} })
		m.WatchPool("main", func() Pool { return Pool{Open: 5, Waits: 6} })
		m.WatchRepair(func() map[string]repair.Result {
			return map[string]repair.Result{"hints": {Pass: "hints", Found: 9, Fixed: 8, Skipped: 1}}
		})
		_, text := get(t, serveAdmin(t, m, func(context.Context) error { return nil }), "/metrics")
		for _, want := range []string{
			`holdfast_build_info{goversion="`,
			`holdfast_http_requests_total{method="GET",route="/v1/events/:id",status="200"} 1`,
			`holdfast_accepts_total{code="",kind="memory_infer",result="accepted"} 1`,
			`holdfast_claims_total{source="hint"} 1`,
			`holdfast_worker_busy 3`, // one of the first worker, two of the second
			`holdfast_task_endings_total{class="provider_timeout",ending="failed"} 1`,
			`holdfast_model_tokens_total{direction="in",provider="offline"} 7`,
			`holdfast_worker_troubles_total{what="ack_failed"} 1`,
			`holdfast_hints_failed_total 3`, `holdfast_hints_duplicate_total 2`,
			`holdfast_pool_connections_open{pool="main"} 5`, `holdfast_pool_waits_total{pool="main"} 6`,
			`holdfast_repair_total{pass="hints",result="fixed"} 8`,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s is missing", want)
			}
		}
	})

	t.Run("QueueIsReadOnceForManyScrapes", func(t *testing.T) {
		t.Parallel()
		m := NewMetrics("test")
		var reads atomic.Int32
		m.WatchQueue(func(context.Context) (recall.Facts, error) {
			reads.Add(1)
			return recall.Facts{OldestDue: 90 * time.Second, PausedProvider: true}, nil
		})
		admin := serveAdmin(t, m, func(context.Context) error { return nil })
		for range 3 {
			_, text := get(t, admin, "/metrics")
			if !strings.Contains(text, "holdfast_queue_oldest_due_seconds 90") || !strings.Contains(text, "holdfast_queue_provider_paused 1") {
				t.Fatal("the gauges of the queue are missing")
			}
		}
		if reads.Load() != 1 {
			t.Fatalf("three scrapes read the database %d times", reads.Load())
		}
	})

	t.Run("UnreadableQueueSaysSoAndLeavesTheRest", func(t *testing.T) {
		t.Parallel()
		m := NewMetrics("test")
		m.WatchQueue(func(context.Context) (recall.Facts, error) { return recall.Facts{}, errors.New("down") })
		_, text := get(t, serveAdmin(t, m, func(context.Context) error { return nil }), "/metrics")
		if !strings.Contains(text, "holdfast_queue_readable 0") || strings.Contains(text, "holdfast_queue_oldest_due_seconds ") {
			t.Fatal("a queue that can't be read shows no numbers")
		}
		if !strings.Contains(text, "go_goroutines") {
			t.Fatal("the other metrics are missing")
		}
	})
}
