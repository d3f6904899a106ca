package httpapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/fault"
)

// slow limits the caller of that name: its workspace and its key.
func (w *world) slow(name string, workspace, key int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := w.keys[name].ID()
	caller := w.callers[id]
	caller.Workspace.RateLimit, caller.RateLimit = workspace, key
	w.callers[id] = caller
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	t.Run("RefusesBeyondTheBurstInJSONAndTellsWhen", func(t *testing.T) {
		t.Parallel()
		var shed []string
		w := setup(t, func(c *Config) { c.Shed = func(why string) { shed = append(shed, why) } })
		w.slow("all", 20, 0)
		for left := 1; left >= 0; left-- {
			got := w.do(t, "all", "GET", "/v1/credits", "")
			if got.want(t, 200, ""); got.Header().Get("RateLimit-Policy") != `"workspace";q=20;w=60` ||
				!strings.HasPrefix(got.Header().Get("RateLimit"), fmt.Sprintf(`"workspace";r=%d;t=`, left)) {
				t.Errorf("headers %v", got.Header())
			}
		}
		got := w.do(t, "all", "POST", "/v1/memories", `{"content":"a","user_id":"u"}`, header("Idempotency-Key", "k"))
		got.want(t, 429, fault.RateLimited)
		wait, err := strconv.Atoi(got.Header().Get("Retry-After"))
		if err != nil || wait < 1 || wait > 3 || !strings.HasPrefix(got.Header().Get("RateLimit"), `"workspace";r=0;t=`) {
			t.Errorf("headers %v", got.Header())
		}
		if len(w.adds) != 0 || len(w.keyed) != 0 {
			t.Error("a refused request was looked at")
		}
		if fmt.Sprint(shed) != "[workspace_rate]" {
			t.Errorf("counted %v", shed)
		}
		for range 5 { // others go on
			w.do(t, "other", "GET", "/v1/credits", "").want(t, 200, "")
		}
	})
	t.Run("TheTighterOfWorkspaceAndKeyCounts", func(t *testing.T) {
		t.Parallel()
		w := setup(t, func(c *Config) { c.RateLimit = 6_000 })
		w.slow("all", 0, 10)
		got := w.do(t, "all", "GET", "/v1/credits", "")
		if got.want(t, 200, ""); got.Header().Get("RateLimit-Policy") != `"key";q=10;w=60` {
			t.Errorf("headers %v", got.Header())
		}
		w.do(t, "all", "GET", "/v1/credits", "").want(t, 429, fault.RateLimited)
		if got := w.do(t, "other", "GET", "/v1/credits", ""); got.Header().Get("RateLimit-Policy") != `"workspace";q=6000;w=60` {
			t.Errorf("headers %v", got.Header())
		}
	})
	t.Run("WithoutALimitThereIsNoHeader", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		if got := w.do(t, "all", "GET", "/v1/credits", ""); got.Header().Get("RateLimit") != "" {
			t.Errorf("headers %v", got.Header())
		}
	})
	t.Run("AStrangerTakesNothing", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.slow("all", 10, 0)
		for range 5 {
			w.do(t, "", "GET", "/v1/credits", "").want(t, 401, fault.InvalidAPIKey)
		}
		w.do(t, "all", "GET", "/v1/credits", "").want(t, 200, "")
	})
	t.Run("HoldsForMountsToo", func(t *testing.T) {
		t.Parallel()
		w := setup(t, func(c *Config) {
			c.Mounts = []Mount{{Path: "/mounted", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusNoContent)
			})}}
		})
		w.slow("all", 10, 0)
		for _, want := range []int{204, 429} {
			request := w.do(t, "all", "GET", "/v1/health", "") // public: takes nothing
			request.want(t, 200, "")
			if got := w.raw(t, "all", "/mounted"); got != want {
				t.Errorf("status %d, want %d", got, want)
			}
		}
	})
	t.Run("ANegativeLimitIsRefused", func(t *testing.T) {
		t.Parallel()
		if _, err := (Config{RateLimit: -1}).withDefaults(); err == nil {
			t.Error("it was taken")
		}
	})
}

// TestPaces holds the buckets against times of the test's own.
func TestPaces(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	caller := func(workspace, key int) access.Caller {
		return access.Caller{KeyID: uuid.NewString(), Workspace: access.Workspace{ID: uuid.New(), RateLimit: workspace}, RateLimit: key}
	}
	t.Run("AMinutesRequestsAndOneBurstFitInAMinute", func(t *testing.T) {
		t.Parallel()
		p, c := newPaces(0), caller(600, 0)
		taken := 0
		for at := time.Duration(0); at < time.Minute; at += 10 * time.Millisecond {
			if p.take(c, now.Add(at)).wait == 0 {
				taken++
			}
		}
		if taken < 659 || taken > 661 {
			t.Errorf("%d were taken", taken)
		}
	})
	t.Run("TheWaitIsEnoughAndNoLongerThanNeeded", func(t *testing.T) {
		t.Parallel()
		p, c := newPaces(0), caller(7, 0)
		p.take(c, now)
		wait := p.take(c, now).wait
		if early := p.take(c, now.Add(wait-time.Millisecond)).wait; early == 0 {
			t.Error("it was taken before")
		}
		if late := p.take(c, now.Add(wait+time.Microsecond)).wait; late != 0 {
			t.Errorf("it waits for %s more", late)
		}
	})
	t.Run("ARefusalByOneBucketTakesNothingOfTheOther", func(t *testing.T) {
		t.Parallel()
		p, c := newPaces(0), caller(100, 10)
		p.take(c, now)
		for range 50 {
			if p.take(c, now).wait == 0 {
				t.Fatal("the key has one request")
			}
		}
		other := c
		other.KeyID, other.RateLimit = "other", 0
		if left := p.take(other, now); left.wait != 0 || left.left != 8 {
			t.Errorf("the workspace has %+v", left)
		}
	})
	t.Run("ANewLimitHoldsAtOnce", func(t *testing.T) {
		t.Parallel()
		p, c := newPaces(0), caller(6_000, 0)
		p.take(c, now)
		c.Workspace.RateLimit = 10
		if left := p.take(c, now); left.limit != 10 || left.left != 0 {
			t.Errorf("%+v", left)
		}
	})
	t.Run("OnlyFullBucketsAreForgotten", func(t *testing.T) {
		t.Parallel()
		p := newPaces(0)
		p.most = 100
		empty := caller(10, 0)
		p.take(empty, now)
		for range 1_000 {
			p.take(caller(600, 0), now.Add(time.Second))
			if p.take(empty, now.Add(time.Second)).wait == 0 {
				t.Fatal("an empty bucket was forgotten")
			}
		}
		if len(p.buckets) > 100 || len(p.buckets) != p.seen.Len() {
			t.Errorf("%d buckets, %d in order", len(p.buckets), p.seen.Len())
		}
		for range 200 {
			p.take(empty, now.Add(time.Hour))
		}
		if len(p.buckets) > 1 {
			t.Errorf("%d full buckets are kept", len(p.buckets))
		}
	})
	t.Run("ManyAtOnceGetNoMoreThanThereIs", func(t *testing.T) {
		t.Parallel()
		p, c := newPaces(0), caller(1_000, 0)
		var mu sync.Mutex
		var all sync.WaitGroup
		taken := 0
		for range 50 {
			all.Go(func() {
				for range 20 {
					if p.take(c, now).wait == 0 {
						mu.Lock()
						taken++
						mu.Unlock()
					}
				}
			})
		}
		all.Wait()
		if taken != 100 {
			t.Errorf("%d were taken", taken)
		}
	})
}

// raw asks for a path that the document doesn't have.
func (w *world) raw(t *testing.T, name, path string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+w.keys[name].Reveal())
	answer := httptest.NewRecorder()
	w.server.Handler().ServeHTTP(answer, request)
	return answer.Code
}
