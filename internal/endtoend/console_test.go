package endtoend

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

// TestConsole is a person on call: signs in, looks at Now, finds an event whose worker was killed in the middle, retries one
// that failed and cancels one that waits; then an operator looks at the whole service.
func TestConsole(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t), "HOLDFAST_OUTPUT_RETRIES=0", "HOLDFAST_MINUTE_INTERVAL=500ms", "HOLDFAST_MODEL_TIMEOUT=5m", "HOLDFAST_LEASE_TTL=6s")
	s.startAPI()
	doomed := s.startWorker(point("worker.after_inference", "kill"))
	killed := s.add("killed-in-the-middle", conversation("lea", "FACT: lea lives in Oslo", "FACT: lea has a dog called Kim", "small talk that is no fact"))
	announced(doomed, "worker.after_inference")
	if code := doomed.Wait(patience); code == 0 {
		t.Fatal("the worker ended by itself")
	}
	s.stub.Queue(stubmodel.With("nonsense"), stubmodel.Reply(stubmodel.Content(`{"no": "facts"}`)))
	s.startWorker()
	s.succeeded(killed)
	for i := range 6 {
		s.succeeded(s.add(fmt.Sprint("tea-", i), conversation(fmt.Sprint("user-", i), "FACT: likes tea")))
	}
	failed := s.add("fails-once", conversation("max", "FACT: nonsense"))
	if e := s.ended(failed); e.Status != "FAILED" {
		t.Fatalf("it should have failed: %+v", e)
	}
	hold := s.stub.HoldAll(stubmodel.With("patience"))
	waiting := s.add("waits", conversation("ann", "FACT: patience"))
	<-hold.Arrived()

	s.lastHour()
	b := newBrowser(t, s)
	root := "/console/w/ws_" + s.ws.String()
	b.open("/console")
	b.look("sign-in")
	b.signInFails("hfk_wrong")
	b.signIn(s.key, root+"/now")
	b.reads("#live", "Running\n1")
	b.reads("#live", "Failed\n1")
	b.look("now")

	b.do(chromedp.KeyEvent("g"), chromedp.KeyEvent("e"), chromedp.WaitVisible(chromedp.CSS("#q")))
	b.reads("tbody", "user lea")
	b.look("events")
	b.tellsOfTheCrash(root, killed)
	b.retries(root, failed)
	b.cancels(root, waiting)
	hold.Release()
	b.press(`form.who button`, "#secret")
	b.open(root + "/events")
	if b.text("h1") != "Sign in to Holdfast" {
		t.Errorf("after signing out: %q", b.text("main"))
	}

	db, err := postgres.Open(t.Context(), postgres.Config{URL: s.url})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	token, err := db.CreateOperator(t.Context(), "ann")
	if err != nil {
		t.Fatal(err)
	}
	b.open("/console")
	b.signIn(token.Reveal(), "/console/now")
	b.reads("#live", "worker-")
	b.reads("#live", "api-")
	b.look("service")
	b.do(chromedp.KeyEvent("g"), chromedp.KeyEvent("w"), chromedp.WaitVisible(chromedp.CSS("td a")))
	b.look("workspaces")
	b.press("td a", `a[data-key="e"]`)
	b.press(`a[data-key="e"]`, "#q")
	b.reads("tbody", "user lea")
	b.judge()
}

// lastHour writes rows of the minutes before the test, so that there is something to draw.
func (s *system) lastHour() {
	s.t.Helper()
	for _, sql := range []string{`
INSERT INTO process_minutes (at, process, span_ms, accepted, replayed, refused, accept_times, succeeded, retried, failed, given_back, hints_published,
                             hints_failed, hints_repaired, model_calls, model_times, model_errors, busy)
SELECT now() - n * interval '1 minute', 'worker-before', 60000, 40 + (n * 37) % 23, 0, 0, ARRAY[0, 0, 20, 15, 4 + n % 7, 1, 0, (n % 13 = 0)::int], 38 + (n * 31) % 19, 1,
       CASE WHEN n % 11 = 0 THEN 4 ELSE 0 END, 0, 42 + (n * 17) % 9, 0, CASE WHEN n % 17 = 0 THEN 3 ELSE 0 END, 45, ARRAY[0, 0, 0, 0, 0, 0, 0, 9, 20, 12, 3, n % 2],
       CASE WHEN n % 11 = 0 THEN '{"provider_timeout": 2}' ELSE '{}' END::jsonb, 6
  FROM generate_series(2, 58) n`, `
INSERT INTO service_minutes (minute, waiting, running, retrying, due, expired, oldest_ms, succeeded, failed, done_p50_ms, done_p99_ms)
SELECT date_trunc('minute', now()) - n * interval '1 minute', 8 + (n * 13) % 9, 6 + n % 5, n % 3, 4, 0, 400 + (n * 331) % 900, 40, 1, 900 + (n * 57) % 300,
       2400 + (n * 173) % 1800
  FROM generate_series(1, 58) n WHERE n NOT BETWEEN 30 AND 34
    ON CONFLICT (minute) DO NOTHING`} {
		if _, err := s.sql.Exec(s.t.Context(), sql); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (b *browser) signInFails(secret string) {
	b.t.Helper()
	b.fill("#secret", secret)
	b.seen.mu.Lock()
	before := len(b.seen.broken)
	b.seen.mu.Unlock()
	b.press(`button[type="submit"]`, "#problem")
	b.s.until("the refusal is told", func() bool {
		b.seen.mu.Lock()
		defer b.seen.mu.Unlock()
		for i, line := range b.seen.broken { // the browser logs the status of a refused form as an error of the network
			if i >= before && strings.Contains(line, "401") {
				b.seen.broken = append(b.seen.broken[:i:i], b.seen.broken[i+1:]...)
				return true
			}
		}
		return false
	})
}

func (b *browser) signIn(secret, home string) {
	b.t.Helper()
	b.fill("#secret", secret)
	b.press(`button[type="submit"]`, "header.top")
	if at := value[string](b, "location.pathname"); at != home {
		b.t.Fatalf("signed in and came to %s instead of %s", at, home)
	}
	if cookies := value[string](b, "document.cookie"); cookies != "" {
		b.t.Errorf("a script can read %q", cookies)
	}
}

// tellsOfTheCrash finds the event by its key and reads its life: the first attempt crashed, the second succeeded.
func (b *browser) tellsOfTheCrash(root, event string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent("/"))
	b.holds(`document.activeElement.id === "q"`)
	b.fill("#q", "killed-in-the-middle\r")
	b.do(chromedp.WaitVisible(chromedp.CSS(".timeline")))
	if at := value[string](b, "location.pathname"); at != root+"/events/"+event {
		b.t.Fatalf("the key led to %s", at)
	}
	life, rest := b.text(".timeline"), 0
	for _, words := range []string{
		"Accepted", "2 credits held", "Attempt 1 claimed", "by worker A", "Attempt 1 crashed", "worker A fell silent",
		"Attempt 2 claimed", "by worker B", "Model called", "2 calls", "Plan frozen", "Committed", "2 records are canonical", "Projected", "Settled", "2 credits charged",
	} {
		at := strings.Index(life[rest:], words)
		if at < 0 {
			b.t.Fatalf("%q does not come where it should in the life %q", words, life)
		}
		rest += at
	}
	if text := b.text("main"); !strings.Contains(text, "lea lives in Oslo") || strings.Contains(text, "small talk") {
		b.t.Errorf("the page says %q", text)
	}
	b.look("event")
}

// retries reads the cost, retries, and watches the event succeed without doing anything.
func (b *browser) retries(root, event string) {
	b.t.Helper()
	b.open(root + "/events/" + event)
	b.reads("#live", "OUTPUT_INVALID")
	b.look("failed")
	b.press(`a[href$="/retry"]`, `form.choices`)
	if text := b.text("main"); !strings.Contains(text, "A new run holds 2 credits") {
		b.t.Errorf("the question is %q", text)
	}
	b.look("retry")
	b.press(`form.choices button`, ".timeline")
	b.reads("#live .status", "succeeded")
	b.reads(".timeline", "Retried by hand, run 2")
}

func (b *browser) cancels(root, event string) {
	b.t.Helper()
	b.open(root + "/events/" + event)
	b.reads("#live .status", "running")
	b.reads(".timeline", "In work")
	b.look("running")
	b.follow(`a[href$="/cancel"]`, `form.choices`)
	b.press(`form.choices button`, ".timeline")
	b.reads("#live .status", "failed")
	b.reads("#live", "CANCELLED")
}
