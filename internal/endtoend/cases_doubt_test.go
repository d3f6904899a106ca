package endtoend

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

// crashBeforeAnswer kills an API around the commit of each kind of write. The same request to another API is answered
// at once: no claim outlives the process that made it.
func crashBeforeAnswer(s *system) {
	records := s.remember("crash", "changes in a transaction", "changes after it")
	s.remember("crash-erase", "goes")
	s.stub.Always(withMarker("crash-broken"), stubmodel.Reply(stubmodel.Content("broken")))
	failed := [2]string{}
	for i := range failed {
		failed[i] = s.add(fmt.Sprint("crash-failed-", i), conversation("crash-failed", "crash-broken"))
		s.ended(failed[i])
	}
	for _, c := range []struct {
		point, method, path string
		body                any
		committed           bool
	}{
		{"write.in_tx", "POST", "/v1/memories", map[string]any{"user_id": "crash-write", "content": "in", "infer": false}, false},
		{"write.committed", "POST", "/v1/memories", map[string]any{"user_id": "crash-write", "content": "out", "infer": false}, true},
		{"change.in_tx", "PUT", "/v1/memories/" + records[0], map[string]any{"content": "changed in"}, false},
		{"change.committed", "PUT", "/v1/memories/" + records[1], map[string]any{"content": "changed out"}, true},
		{"erase.committed", "DELETE", "/v1/memories?user_id=crash-erase", nil, true},
		{"retry.in_tx", "POST", "/v1/events/" + failed[0] + "/retry", nil, false},
		{"retry.committed", "POST", "/v1/events/" + failed[1] + "/retry", nil, true},
	} {
		doomed := s.of(s.t)
		process := doomed.startAPI(point(c.point, "kill"))
		if a, err := doomed.try(c.method, c.path, c.point, c.body); err == nil {
			s.t.Fatalf("%s: the API answered %d %s", c.point, a.status, a.body)
		}
		process.Wait(patience)
		a := s.do(c.method, c.path, c.point, c.body)
		if a.status > 299 || (a.header.Get("Idempotent-Replayed") == "true") != c.committed {
			s.t.Errorf("%s: the same request: %d %v %s", c.point, a.status, a.header, a.body)
		}
		s.replays(c.point, s.do(c.method, c.path, c.point, c.body))
	}
	s.until("everything has ended", func() bool {
		return one[int64](s, `SELECT count(*) FROM tasks WHERE user_id LIKE 'crash%' AND completed_at IS NULL`) == 0
	})
	for user, want := range map[string]string{"crash-write": "in|out", "crash": "changed in|changed out", "crash-erase": ""} {
		if got := s.texts(user); got != want {
			s.t.Errorf("records of %s %q, want %q", user, got, want)
		}
	}
	for i, id := range failed {
		if e := s.event(id); e.Generation != 2 || e.Usage.Released != 2 {
			s.t.Errorf("retry %d: %+v", i, e)
		}
	}
}

// commitAnswerLost cuts the answer to a COMMIT at the wire, before and after it was done, and once together with all that
// the API asks afterwards. The request under its key, sent to an API that reaches its database, finds one command.
func commitAnswerLost(s *system) {
	for i, c := range []struct{ done, dark bool }{{true, false}, {false, false}, {true, true}} {
		proxy := testkit.CommitCutProxy(s.t, s.url)
		cut := s.of(s.t)
		process := cut.startAPI("HOLDFAST_DATABASE_URL=" + proxy.URL())
		tag := proxy.CutNextCommit(c.done)
		if c.dark {
			go func() {
				<-tag
				proxy.Blackhole(true)
			}()
		}
		name := fmt.Sprint("lost-commit-", i)
		body := conversation("lost-commit", "FACT: "+name)
		a := cut.do("POST", "/v1/memories", name, body)
		switch {
		case a.status == http.StatusAccepted:
		case c.dark && a.status == http.StatusServiceUnavailable:
			s.want(a, http.StatusServiceUnavailable, "ACCEPTANCE_UNKNOWN", `"retryable":true`)
		default:
			s.t.Fatalf("%+v: %d %s", c, a.status, a.body)
		}
		id := s.add(name, body)
		if a.status == http.StatusAccepted && s.receipt(a) != id {
			s.t.Fatalf("%+v: the key has another event than %s", c, a.body)
		}
		s.succeeded(id)
		process.Kill()
	}
	if n := s.tasksOf("lost-commit"); n != 3 || s.texts("lost-commit") != "lost-commit-0|lost-commit-1|lost-commit-2" {
		s.t.Fatalf("%d commands, records %q", n, s.texts("lost-commit"))
	}
}

// failureNotRemembered lets the database refuse a command: the answer isn't kept under the key, and nothing is held.
func failureNotRemembered(s *system) {
	s.exec(`ALTER TABLE tasks ADD CONSTRAINT ours CHECK (user_id <> 'ours') NOT VALID`)
	body := conversation("ours", "FACT: ours")
	for range 2 {
		a := s.do("POST", "/v1/memories", "ours", body)
		if a.status < 500 || strings.Contains(string(a.body), "ours") {
			s.t.Fatalf("%d %s", a.status, a.body)
		}
	}
	s.exec(`ALTER TABLE tasks DROP CONSTRAINT ours`)
	a := s.do("POST", "/v1/memories", "ours", body)
	id := s.receipt(a)
	if s.succeeded(id); a.header.Get("Idempotent-Replayed") != "" || s.tasksOf("ours") != 1 {
		s.t.Fatalf("%v, %d commands", a.header, s.tasksOf("ours"))
	}
	s.movedAs(id, "1 hold 2, 1 settle 2")
}
