package endtoend

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

func limitCases() map[string]func(*system) {
	return map[string]func(*system){
		"BurstIsRefusedInJSONInEveryDialect": burstInEveryDialect,
		"AcceptsWhileTheModelIsStalled":      acceptsWhileStalled,
		"OutOfCreditsIsSaidInEveryDialect":   outOfCreditsInEveryDialect,
	}
}

// paced makes a key that may send so many requests a minute.
func (s *system) paced(limit int) string {
	s.t.Helper()
	var made struct {
		Key string `json:"key"`
	}
	said := s.holdfast(0, "key", "create", "--workspace", "test", "--rate-limit", fmt.Sprint(limit), "--json")
	if err := json.Unmarshal([]byte(said), &made); err != nil {
		s.t.Fatalf("%s: %v", said, err)
	}
	return made.Key
}

// burstInEveryDialect sends more than a key may: each dialect refuses in JSON, says when to come again, and takes the
// same request then. Each request costs one, whatever it does.
func burstInEveryDialect(s *system) {
	for dialect, send := range map[string]func(s *system, name string) answer{
		"native": func(s *system, name string) answer {
			return s.do("POST", "/v1/memories", name, conversation(name, "FACT: "+name))
		},
		"items": func(s *system, name string) answer {
			return s.twin("add", "", `{"items":[{"id":"`+name+`","text":"FACT: `+name+`"}]}`)
		},
		"mem0": func(s *system, name string) answer {
			return s.mem0("POST", "/v3/memories/add/", `{"messages":"FACT: `+name+`","user_id":"`+name+`","idempotency_key":"`+name+`"}`)
		},
		"tools": func(s *system, name string) answer {
			return s.post(s.header(s.key, "User", name), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add_memory","arguments":{"text":"FACT: `+
				name+`","idempotency_key":"`+name+`"}}}`)
		},
	} {
		mine := s.of(s.t)
		mine.key = s.paced(60)
		name, taken, a := "", 0, answer{}
		for ; taken < 100; taken++ {
			name = fmt.Sprintf("burst-%s-%d", dialect, taken)
			if a = send(mine, name); a.status > 299 {
				break
			}
			if a.header.Get("RateLimit-Policy") != `"key";q=60;w=60` || !strings.HasPrefix(a.header.Get("RateLimit"), `"key";r=`) {
				s.t.Fatalf("%s: %v", dialect, a.header)
			}
		}
		wait, err := strconv.Atoi(a.header.Get("Retry-After"))
		if a.status != http.StatusTooManyRequests || err != nil || wait < 1 || taken < 6 {
			s.t.Fatalf("%s: after %d %d %v %s", dialect, taken, a.status, a.header, a.body)
		}
		var said map[string]any
		if a.into(s.t, &said); !strings.Contains(a.header.Get("Content-Type"), "json") || said["code"] != "RATE_LIMITED" {
			s.t.Errorf("%s: %v %s", dialect, a.header, a.body)
		}
		if n := one[int64](s, `SELECT count(*) FROM tasks WHERE position($1 IN coalesce(user_id, '')) > 0`, name); n != 0 {
			s.t.Errorf("%s: a refused request has left %d commands", dialect, n)
		}
		s.until("the same request is taken", func() bool { return send(mine, name).status < 300 })
	}
}

// acceptsWhileStalled stalls the model, and gets a receipt for every add before it has said a word.
func acceptsWhileStalled(s *system) {
	hold := s.stub.HoldAll(withMarker("stalled"))
	ids := []string{s.add("stalled-first", conversation("stalled-first", "FACT: stalled first"))}
	<-hold.Arrived()
	for i := range 10 {
		name := fmt.Sprint("stalled-", i)
		ids = append(ids, s.add(name, conversation(name, "FACT: stalled "+name)))
	}
	ids = append(ids, s.receipt(s.mem0("POST", "/v3/memories/add/", `{"messages":"FACT: stalled mem0","user_id":"stalled-mem0"}`)))
	ids = append(ids, s.keep("", `{"items":[{"id":"stalled","text":"FACT: stalled item"}]}`).Items[0].EventID)
	ids = append(ids, s.agent("User", "stalled-tools").call("", "add_memory", object{"text": "FACT: stalled tools"}).EventID)
	for _, id := range ids {
		if e := s.event(id); e.Status == "SUCCEEDED" || e.Status == "FAILED" {
			s.t.Errorf("event %+v", e)
		}
	}
	hold.Release()
	s.allSucceeded(ids)
}

// outOfCreditsInEveryDialect asks for what a workspace can't pay: each dialect says so and how much is missing, and to
// whom it can be told.
func outOfCreditsInEveryDialect(s *system) {
	poor := s.purse(1)
	native := poor.do("POST", "/v1/memories", "out-of-credits", conversation("out", "FACT: out"))
	s.want(native, http.StatusPaymentRequired, `"code":"INSUFFICIENT_CREDITS"`, `"required":2`, `"available":1`, `"retryable":`, `"message":"`, `"detail":"`)
	s.want(poor.twin("add", "", `{"items":[{"text":"FACT: out"}]}`), http.StatusPaymentRequired, `"code":"INSUFFICIENT_CREDITS"`, `"message":"`)
	s.want(poor.mem0("POST", "/v3/memories/add/", `{"messages":"FACT: out","user_id":"out"}`), http.StatusPaymentRequired,
		`"code":"INSUFFICIENT_CREDITS"`, `"detail":"`, `"error":"`, `"message":"`)
	said := poor.agentOf(poor.key, "User", "out").call("INSUFFICIENT_CREDITS", "add_memory", object{"text": "FACT: out"})
	if said.Error.Details["required"] != 2.0 || said.Error.Details["available"] != 1.0 || said.Error.IdempotencyKey == "" {
		s.t.Errorf("tool %+v", said.Error)
	}
	poor.balance(1, 0)
	if n := s.stub.Count(stubmodel.Match{Endpoint: stubmodel.Chat, Marker: "FACT: out"}); n != 0 {
		s.t.Errorf("%d extractions", n)
	}
}
