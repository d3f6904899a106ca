package endtoend

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/testkit"
)

// TestPace sends more than a workspace may, and the refused request again under its key when it was told to.
func TestPace(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t))
	s.holdfast(0, "workspace", "limit", "test", "--rate-limit", "60", "--max-pending", "50")
	var listed []struct {
		RateLimit  int `json:"rate_limit"`
		MaxPending int `json:"max_pending"`
	}
	if err := json.Unmarshal([]byte(s.holdfast(0, "workspace", "list", "--json")), &listed); err != nil || len(listed) != 1 ||
		listed[0].RateLimit != 60 || listed[0].MaxPending != 50 {
		t.Fatalf("workspaces %+v: %v", listed, err)
	}
	s.holdfast(2, "workspace", "limit", "test")
	s.holdfast(2, "workspace", "limit", "test", "--rate-limit=-1")
	s.startAPI()
	var refused answer
	taken := 0
	for refused.status == 0 && taken < 100 {
		if a := s.do("POST", "/v1/memories", fmt.Sprint("k", taken), conversation("u", "FACT a")); a.status == http.StatusAccepted {
			taken++
		} else {
			refused = a
		}
	}
	wait, err := strconv.Atoi(refused.header.Get("Retry-After"))
	if refused.status != http.StatusTooManyRequests || !strings.Contains(string(refused.body), `"code":"RATE_LIMITED"`) || err != nil || wait < 1 ||
		refused.header.Get("RateLimit-Policy") != `"workspace";q=60;w=60` || !strings.HasPrefix(refused.header.Get("RateLimit"), `"workspace";r=0;t=`) {
		t.Fatalf("%d %v %s", refused.status, refused.header, refused.body)
	}
	if taken < 6 || one[int](s, `SELECT count(*) FROM idempotency_keys`) != taken {
		t.Errorf("%d were taken", taken)
	}
	s.until("the bucket has a token again", func() bool {
		return s.do("POST", "/v1/memories", fmt.Sprint("k", taken), conversation("u", "FACT a")).status == http.StatusAccepted
	})

	var made struct {
		Key string `json:"key"`
	}
	if err := json.Unmarshal([]byte(s.holdfast(0, "key", "create", "--workspace", "test", "--rate-limit", "10", "--json")), &made); err != nil {
		t.Fatal(err)
	}
	s.holdfast(0, "workspace", "limit", "test", "--rate-limit", "0")
	s.key = made.Key
	if a := s.do("GET", "/v1/credits", "", nil); a.status != http.StatusOK || a.header.Get("RateLimit-Policy") != `"key";q=10;w=60` {
		t.Errorf("%d %v", a.status, a.header)
	}
	if a := s.do("GET", "/v1/credits", "", nil); a.status != http.StatusTooManyRequests {
		t.Errorf("the key's second request: %d", a.status)
	}
}

// TestFlood has five hundred clients add at once, with nobody working: whatever is answered with 202 is there, and
// everything else says to come again.
func TestFlood(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t), "HOLDFAST_MAX_PENDING=100")
	s.startAPI()
	statuses := make([]int, 500)
	events := make([]string, len(statuses))
	var all sync.WaitGroup
	for i := range statuses {
		all.Go(func() {
			a, err := s.try("POST", "/v1/memories", fmt.Sprint("k", i), conversation(fmt.Sprint("u", i), "FACT a"))
			if err != nil {
				t.Error(err)
				return
			}
			statuses[i] = a.status
			var receipt struct {
				EventID string `json:"event_id"`
			}
			switch a.status {
			case http.StatusAccepted:
				if err := json.Unmarshal(a.body, &receipt); err != nil {
					t.Error(err)
				}
				events[i] = receipt.EventID
			case http.StatusTooManyRequests, http.StatusServiceUnavailable:
				if a.header.Get("Retry-After") == "" || strings.Contains(string(a.body), "ACCEPTANCE_UNKNOWN") {
					t.Errorf("%d %s", a.status, a.body)
				}
			default:
				t.Errorf("%d %s", a.status, a.body)
			}
		})
	}
	all.Wait()
	taken := 0
	for i, id := range events {
		if statuses[i] != http.StatusAccepted {
			continue
		}
		taken++
		s.want(s.do("GET", "/v1/events/"+id, "", nil), http.StatusOK, `"PENDING"`)
	}
	if n := one[int](s, `SELECT count(*) FROM tasks`); n != taken || n < 50 || n > 100+2*16 {
		t.Errorf("%d tasks, %d answers of 202", n, taken)
	}
	again := s.do("POST", "/v1/memories", "one-more", conversation("u", "FACT a"))
	if taken >= 100 && again.status != http.StatusTooManyRequests {
		t.Errorf("a full workspace answers %d", again.status)
	}
	s.startWorker()
	s.until("there is room again", func() bool {
		return s.do("POST", "/v1/memories", "one-more", conversation("u", "FACT a")).status == http.StatusAccepted
	})
}
