package endtoend

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/testkit"
)

// receiver is somebody's webhook. Until it is opened nobody listens at its address.
type receiver struct {
	s       *system
	address string
	id      string
	verify  *standardwebhooks.Webhook
	check   func(body []byte, header http.Header) error // instead of verify

	mu     sync.Mutex
	answer func(call int) int
	calls  []received
	busy   int
	most   int // calls at one time
}

type received struct {
	message, body string
	status        int
}

// newReceiver reserves an address and makes a webhook for it.
func newReceiver(s *system, types ...string) *receiver {
	s.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	r := &receiver{s: s, address: listener.Addr().String(), answer: func(int) int { return http.StatusOK }}
	_ = listener.Close()
	if len(types) == 0 {
		types = []string{"event.succeeded", "event.failed"}
	}
	a := s.do("POST", "/v1/webhooks", "", map[string]any{"name": "test", "url": "http://" + r.address + "/in", "event_types": types})
	if a.status != http.StatusCreated {
		s.t.Fatalf("create webhook: %d %s", a.status, a.body)
	}
	var made struct{ ID, Secret string }
	a.into(s.t, &made)
	if r.verify, err = standardwebhooks.NewWebhook(made.Secret); err != nil {
		s.t.Fatal(err)
	}
	r.id = made.ID
	return r
}

// open begins to listen; answer says what each call is answered, counted from 1.
func (r *receiver) open(answer func(call int) int) {
	r.s.t.Helper()
	if answer != nil {
		r.answer = answer
	}
	listener, err := net.Listen("tcp", r.address)
	if err != nil {
		r.s.t.Fatal(err)
	}
	server := &http.Server{Handler: r, ReadHeaderTimeout: patience}
	go func() { _ = server.Serve(listener) }()
	r.s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = server.Shutdown(ctx)
		_ = server.Close()
	})
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	check := r.check
	if check == nil {
		check = r.verify.Verify
	}
	if err := check(body, request.Header); err != nil {
		r.s.t.Errorf("the signature is wrong: %v", err)
	}
	r.mu.Lock()
	call := len(r.calls)
	r.calls = append(r.calls, received{request.Header.Get("webhook-id"), string(body), 0})
	r.busy++
	r.most = max(r.most, r.busy)
	answer := r.answer
	r.mu.Unlock()
	status := answer(call + 1)
	r.mu.Lock()
	r.busy--
	r.calls[call].status = status
	r.mu.Unlock()
	w.WriteHeader(status)
}

func (r *receiver) seen() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]received{}, r.calls...)
}

// delivery is what a client reads of a delivery.
type delivery struct {
	ID            string
	MessageID     string  `json:"message_id"`
	EventID       *string `json:"event_id"`
	Type, Status  string
	Attempts      int
	ErrorCode     *string `json:"error_code"`
	LastStatus    *int    `json:"last_status"`
	LastError     *string `json:"last_error"`
	NextAttemptAt *string `json:"next_attempt_at"`
}

func (r *receiver) deliveries() []delivery {
	r.s.t.Helper()
	a := r.s.do("GET", "/v1/webhooks/"+r.id+"/deliveries", "", nil)
	if a.status != http.StatusOK {
		r.s.t.Fatalf("deliveries: %d %s", a.status, a.body)
	}
	var page struct{ Results []delivery }
	a.into(r.s.t, &page)
	return page.Results
}

// delivered waits until the webhook has n deliveries that have all ended.
func (r *receiver) delivered(n int) []delivery {
	r.s.t.Helper()
	var all []delivery
	r.s.until("all deliveries have ended", func() bool {
		all = r.deliveries()
		for _, d := range all {
			if d.Status != "SUCCEEDED" && d.Status != "FAILED" {
				return false
			}
		}
		return len(all) == n
	})
	return all
}

// webhooks is what these tests start with: receivers are on this machine, and two days of retries take minutes.
func webhooks(t *testing.T) *system {
	s := newSystem(t, testkit.NewDatabase(t), "HOLDFAST_WEBHOOK_ALLOW_HTTP=true", "HOLDFAST_WEBHOOK_ALLOW_NETWORKS=127.0.0.0/8",
		"HOLDFAST_RETRY_BASE=2ms")
	s.startAPI()
	return s
}

func TestWebhook(t *testing.T) {
	t.Parallel()

	t.Run("AReceiverThatWasDownTakesItOnce", func(t *testing.T) {
		t.Parallel()
		s := webhooks(t)
		r := newReceiver(s)
		s.startWorker()
		event := s.add("k", conversation("u", "FACT: likes tea"))
		s.succeeded(event)
		s.until("an attempt has failed", func() bool {
			all := r.deliveries()
			return len(all) == 1 && all[0].LastError != nil && *all[0].LastError == "NOT_CONNECTED" && all[0].LastStatus == nil
		})
		r.open(func(call int) int {
			if call <= 2 {
				return http.StatusInternalServerError
			}
			return http.StatusOK
		})
		d := r.delivered(1)[0]
		calls := r.seen()
		accepted := 0
		for _, c := range calls {
			if c.status == http.StatusOK {
				accepted++
			}
			if c.message != d.MessageID || c.body != calls[0].body {
				t.Errorf("%+v is another message than %+v", c, calls[0])
			}
		}
		if accepted != 1 || len(calls) != 3 || d.Status != "SUCCEEDED" || *d.EventID != event || d.Attempts < 4 {
			t.Fatalf("accepted %d times in %d calls: %+v", accepted, len(calls), d)
		}
		if !strings.Contains(calls[0].body, event) || strings.Contains(calls[0].body, "tea") || strings.Contains(calls[0].body, "user") {
			t.Fatalf("the body is %s", calls[0].body)
		}
		s.sound(2)
	})

	t.Run("GoneDisablesUntilItIsEnabled", func(t *testing.T) {
		t.Parallel()
		s := webhooks(t)
		r := newReceiver(s)
		r.open(func(call int) int {
			if call == 1 {
				return http.StatusGone
			}
			return http.StatusNoContent
		})
		s.startWorker()
		s.succeeded(s.add("a", conversation("u", "FACT: likes tea")))
		d := r.delivered(1)[0]
		if d.Status != "FAILED" || *d.ErrorCode != "WEBHOOK_DISABLED" || *d.LastStatus != 410 || d.Attempts != 1 {
			t.Fatalf("%+v", d)
		}
		var hook struct {
			Active bool
			Reason *string `json:"disabled_reason"`
		}
		s.do("GET", "/v1/webhooks/"+r.id, "", nil).into(t, &hook)
		if hook.Active || *hook.Reason != "gone" {
			t.Fatalf("%+v", hook)
		}
		s.succeeded(s.add("b", conversation("u", "FACT: likes coffee")))
		s.do("PUT", "/v1/webhooks/"+r.id, "", map[string]any{"active": true}).into(t, &hook)
		if !hook.Active || hook.Reason != nil {
			t.Fatalf("%+v", hook)
		}
		r.delivered(2) // what ended meanwhile
		a := s.do("POST", "/v1/webhooks/"+r.id+"/replay", "", map[string]any{"failed_only": true})
		var replay struct{ Replayed int }
		if a.into(t, &replay); a.status != http.StatusAccepted || replay.Replayed != 1 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		s.until("the first message was sent again", func() bool { return len(r.seen()) == 3 })
		again := r.delivered(2)
		calls := r.seen()
		if calls[2].message != calls[0].message || calls[2].body != calls[0].body || again[1].Status != "SUCCEEDED" {
			t.Fatalf("%+v %+v", calls, again)
		}
	})

	for _, c := range []struct {
		point    string
		accepted int // calls that the receiver has taken, the killed worker's included
	}{
		{"dispatch.in_tx", 1},
		{"dispatch.committed", 1},
		{"worker.before_delivery", 1},
		{"worker.after_delivery", 2}, // nobody knows that it was taken: it comes again, under the same id
		{"delivered.in_tx", 2},
		{"delivered.committed", 1},
	} {
		t.Run("WorkerKilledAt/"+c.point, func(t *testing.T) {
			t.Parallel()
			s := webhooks(t)
			r := newReceiver(s)
			r.open(nil)
			doomed := s.startWorker(point(c.point, "kill"))
			event := s.add("k", conversation("u", "FACT: likes tea"))
			announced(doomed, c.point)
			doomed.Wait(patience)
			s.startWorker()
			s.succeeded(event)
			d := r.delivered(1)[0]
			calls := r.seen()
			for _, call := range calls {
				if call.message != d.MessageID || call.status != http.StatusOK || call.body != calls[0].body {
					t.Errorf("%+v", call)
				}
			}
			if d.Status != "SUCCEEDED" || len(calls) != c.accepted {
				t.Fatalf("%d calls: %+v", len(calls), d)
			}
			s.sound(2)
		})
	}

	t.Run("ASlowReceiverKeepsNoMemoryWorkFromRunning", func(t *testing.T) {
		t.Parallel()
		s := webhooks(t)
		r := newReceiver(s)
		free := make(chan struct{})
		r.open(func(int) int {
			select {
			case <-free:
			case <-time.After(patience):
			}
			return http.StatusOK
		})
		s.startWorker("HOLDFAST_WORKER_SLOTS=8")
		s.succeeded(s.add("first", conversation("u0", "FACT: likes tea")))
		s.until("the receiver is busy", func() bool { return len(r.seen()) > 0 })
		for i := range 20 {
			name := "u" + string(rune('a'+i))
			s.succeeded(s.add(name, conversation(name, "FACT: likes "+name)))
		}
		r.mu.Lock()
		most := r.most
		r.mu.Unlock()
		if most > 4 {
			t.Errorf("%d deliveries at once to one receiver", most)
		}
		close(free)
		r.delivered(21)
	})

	t.Run("ManagedOverHTTP", func(t *testing.T) {
		t.Parallel()
		s := webhooks(t)
		r := newReceiver(s)
		path := "/v1/webhooks/" + r.id
		var rotated struct{ Secret string }
		if a := s.do("POST", path+"/rotate-secret", "", nil); a.status != http.StatusOK {
			t.Fatalf("%d %s", a.status, a.body)
		} else {
			a.into(t, &rotated)
		}
		second, err := standardwebhooks.NewWebhook(rotated.Secret)
		if err != nil {
			t.Fatal(err)
		}
		first := r.verify
		r.check = func(body []byte, header http.Header) error {
			return errors.Join(first.Verify(body, header), second.Verify(body, header))
		}
		r.open(nil)
		s.startWorker()
		a := s.do("POST", path+"/test", "", nil)
		var test delivery
		if a.into(t, &test); a.status != http.StatusAccepted || test.Type != "webhook.test" || test.EventID != nil {
			t.Fatalf("%d %s", a.status, a.body)
		}
		s.succeeded(test.ID)
		s.succeeded(s.add("k", conversation("u", "FACT: likes tea")))
		r.delivered(2)
		var page struct {
			Results []delivery
			Next    *string `json:"next_cursor"`
		}
		s.do("GET", path+"/deliveries?limit=1", "", nil).into(t, &page)
		if len(page.Results) != 1 || page.Next == nil || page.Results[0].Type != "event.succeeded" {
			t.Fatalf("%+v", page)
		}
		s.do("GET", path+"/deliveries?limit=1&cursor="+*page.Next, "", nil).into(t, &page)
		if len(page.Results) != 1 || page.Results[0].ID != test.ID {
			t.Fatalf("%+v", page)
		}
		for what, c := range map[string]struct {
			method, path string
			body         any
			status       int
		}{
			"replay of nothing":    {"POST", path + "/replay", map[string]any{}, 400},
			"unknown member":       {"PUT", path, map[string]any{"secret": "x"}, 400},
			"unknown type":         {"PUT", path, map[string]any{"event_types": []string{"memory_add"}}, 400},
			"refused URL":          {"PUT", path, map[string]any{"url": "https://10.0.0.1/"}, 400},
			"another webhook":      {"GET", "/v1/webhooks/whk_01920000-0000-7000-8000-000000000000", nil, 404},
			"no id":                {"GET", "/v1/webhooks/x", nil, 404},
			"the cursor elsewhere": {"GET", path + "/deliveries?cursor=abc", nil, 400},
		} {
			if a := s.do(c.method, c.path, "", c.body); a.status != c.status {
				t.Errorf("%s: %d %s", what, a.status, a.body)
			}
		}
		if a := s.do("DELETE", path, "", nil); a.status != http.StatusOK {
			t.Fatalf("%d %s", a.status, a.body)
		}
		s.succeeded(s.add("after", conversation("u", "FACT: likes coffee")))
		if a := s.do("GET", path, "", nil); a.status != http.StatusNotFound {
			t.Fatalf("%d %s", a.status, a.body)
		}
		if n := len(r.seen()); n != 2 {
			t.Fatalf("%d calls", n)
		}
		s.key = s.keyWith(access.MemoryWrite)
		if a := s.do("GET", "/v1/webhooks", "", nil); a.status != http.StatusForbidden {
			t.Fatalf("%d %s", a.status, a.body)
		}
	})

	t.Run("RepairMakesDeliveriesToo", func(t *testing.T) {
		t.Parallel()
		s := webhooks(t)
		r := newReceiver(s, "event.succeeded")
		a := s.do("POST", "/v1/memories", "k", map[string]any{"user_id": "u", "content": "likes tea", "infer": false})
		if a.status != http.StatusOK {
			t.Fatalf("%d %s", a.status, a.body)
		}
		worker := s.startWorker("HOLDFAST_FAILPOINT=dispatch.in_tx=hang")
		announced(worker, "dispatch.in_tx")
		worker.Kill()
		s.until("repair has made the delivery", func() bool {
			s.repairOnce()
			return len(r.deliveries()) == 1
		})
	})

	t.Run("AddressesOfOursAreRefused", func(t *testing.T) {
		t.Parallel()
		s := newSystem(t, testkit.NewDatabase(t))
		s.startAPI()
		for _, url := range []string{
			"http://hooks.example.com/", "https://127.0.0.1/", "https://[::1]/", "https://169.254.169.254/", "https://10.0.0.1/",
			"https://2130706433/", "https://localhost/", "https://user:pw@hooks.example.com/", "https://hooks.example.com/#x",
		} {
			a := s.do("POST", "/v1/webhooks", "", map[string]any{"url": url, "event_types": []string{"event.failed"}})
			if a.status != http.StatusBadRequest || !strings.Contains(string(a.body), `"WEBHOOK_URL_REFUSED"`) || strings.Contains(string(a.body), url) {
				t.Errorf("%s: %d %s", url, a.status, a.body)
			}
		}
		a := s.do("POST", "/v1/webhooks", "", map[string]any{"url": "https://hooks.example.com/", "event_types": []string{"event.failed"}})
		if a.status != http.StatusCreated {
			t.Fatalf("%d %s", a.status, a.body)
		}
		if a := s.do("GET", "/v1/webhooks", "", nil); a.status != http.StatusOK || strings.Contains(string(a.body), "whsec_") {
			t.Fatalf("%d %s", a.status, a.body)
		}
	})
}
