package endtoend

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

// told is one message of a stream.
type told struct {
	id, name string
	event    event
}

// reader follows the stream and remembers the last id that it has received whole, as every client must.
type reader struct {
	s    *system
	last string
	got  []told
	told map[string]int // how often something was told, by what it is
	open chan struct{}  // gets a value for each stream that has begun
}

// follow reads until enough says so, within ends or the stream does. Then it hangs up without a word.
func (r *reader) follow(api string, within time.Duration, enough func(read int) bool) error {
	ctx, cancel := context.WithTimeout(r.s.t.Context(), within)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, api+"/v1/events/stream", nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+r.s.key)
	if r.last != "" {
		request.Header.Set("Last-Event-ID", r.last)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", response.StatusCode)
	}
	r.open <- struct{}{}
	var m told
	read := 0
	lines := bufio.NewScanner(response.Body)
	for !enough(read) && lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			m.id = value
		case "event":
			m.name = value
		case "data":
			if err := json.Unmarshal([]byte(value), &m.event); err != nil {
				return fmt.Errorf("data %q: %w", value, err)
			}
		case "":
			if lines.Text() != "" { // a comment
				continue
			}
			if m.id != "" {
				r.last = m.id
			}
			if m.name != "" {
				read++
				r.got = append(r.got, m)
				r.told[m.name+" "+m.event.ID]++
			}
			m = told{}
		}
	}
	return lines.Err()
}

// late ends a made-up run in a transaction that commits long after others that began later.
func (s *system) late(random *rand.Rand) error {
	ctx := s.t.Context()
	tx, err := s.sql.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	id := uuid.New()
	for _, sql := range []string{
		`INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, priority, payload_format, outcome, accepted_at,
		                    updated_at, completed_at)
		 SELECT $1, $2, 'memory_infer', 'succeeded', 'projected', t, t, 'interactive', 1, 'STORED', t, t, t FROM clock_timestamp() t`,
		`INSERT INTO task_runs (task_id, generation, workspace_id, amount, outcome, opened_at)
		 VALUES ($1, 1, $2, 0, 'succeeded', clock_timestamp())`,
		`INSERT INTO credit_closings (task_id, generation, workspace_id, outcome, amount, settled, released, closed_at)
		 VALUES ($1, 1, $2, 'succeeded', 0, 0, 0, clock_timestamp())`,
	} {
		if _, err := tx.Exec(ctx, sql, id, s.ws); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(ctx, `SELECT pg_sleep($1)`, 0.05+random.Float64()*0.3); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// write lets several writers work at once until all that they have begun has ended.
func (s *system) write() {
	var group sync.WaitGroup
	for n := range 4 {
		group.Go(func() {
			for i := range 30 {
				name := fmt.Sprintf("w%d-%d", n, i)
				body := conversation(name, "FACT: "+name)
				switch i % 6 {
				case 1:
					body["infer"] = false
				case 2:
					body = conversation(name, "nonsense "+name)
				}
				if a, err := s.try("POST", "/v1/memories", name, body); err != nil || a.status >= 300 {
					s.t.Errorf("add %s: %d %v", name, a.status, err)
				}
			}
		})
	}
	for n := range 2 {
		group.Go(func() {
			random := rand.New(rand.NewPCG(uint64(n), 11))
			for range 20 {
				if err := s.late(random); err != nil {
					s.t.Error(err)
				}
			}
		})
	}
	group.Wait()
	s.until("everything has ended", func() bool { return one[int64](s, `SELECT count(*) FROM tasks WHERE completed_at IS NULL`) == 0 })
}

// happened lists what a stream must have told, by the database.
func (s *system) happened() map[string]int {
	rows, err := s.sql.Query(s.t.Context(), `
SELECT 'event.' || outcome || ' evt_' || task_id, count(*) FROM credit_closings WHERE workspace_id = $1 GROUP BY 1
UNION ALL
SELECT 'event.retrying evt_' || task_id, count(*) FROM task_attempts
 WHERE workspace_id = $1 AND ending IN ('retry', 'crashed') GROUP BY 1`, s.ws)
	if err != nil {
		s.t.Fatal(err)
	}
	defer rows.Close()
	all := map[string]int{}
	for rows.Next() {
		var what string
		var n int
		if err := rows.Scan(&what, &n); err != nil {
			s.t.Fatal(err)
		}
		all[what] = n
	}
	if rows.Err() != nil {
		s.t.Fatal(rows.Err())
	}
	return all
}

// TestStreamResumed kills the reader of a stream fifty times while writers, failing ones and ones that commit late among
// them, work on two APIs and two workers, of which one API stops in the middle. Nothing is missed, and nothing that was
// received whole comes again.
func TestStreamResumed(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t), "HOLDFAST_OUTPUT_RETRIES=1")
	s.stub.Always(stubmodel.With("nonsense"), stubmodel.Reply(stubmodel.Content(`{"no": "facts"}`)))
	stopping := s.startAPI()
	apis := []string{s.api}
	s.startAPI()
	apis = append(apis, s.api) // the writers use this one
	s.startWorker()
	s.startWorker()

	r := &reader{s: s, told: map[string]int{}, open: make(chan struct{}, 100)}
	if err := r.follow(apis[0], patience, func(int) bool { return r.last != "" }); err != nil || r.last == "" {
		t.Fatalf("begin: %v", err)
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		s.write()
	}()
	random := rand.New(rand.NewPCG(4, 50))
	for kill := range 50 {
		if kill == 25 { // a stream that is open ends with its server
			for len(r.open) > 0 {
				<-r.open
			}
			ended := make(chan error, 1)
			go func() { ended <- r.follow(apis[0], patience, func(int) bool { return false }) }()
			<-r.open
			stopping.Signal(syscall.SIGTERM)
			if err := <-ended; err != nil {
				t.Errorf("the stream of a server that stops: %v", err)
			}
			if code := stopping.Wait(patience); code != 0 {
				t.Fatalf("the API ended with %d", code)
			}
			apis = apis[1:]
		}
		most := 1 + random.IntN(5)
		err := r.follow(apis[kill%len(apis)], time.Duration(20+random.IntN(400))*time.Millisecond, func(read int) bool { return read >= most })
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("kill %d: %v", kill, err)
		}
	}
	select {
	case <-written:
	case <-time.After(patience):
		t.Fatal("the writers don't end")
	}
	want := s.happened()
	missing := func() (n int) {
		for what := range want {
			if r.told[what] == 0 {
				n++
			}
		}
		return n
	}
	if err := r.follow(apis[0], patience, func(int) bool { return missing() == 0 }); err != nil {
		t.Fatal(err)
	}
	for what, n := range want {
		if r.told[what] != n {
			t.Errorf("%s: told %d times, want %d", what, r.told[what], n)
		}
	}
	if len(r.told) != len(want) || len(want) < 160 {
		t.Errorf("told of %d things, %d have happened", len(r.told), len(want))
	}
	for _, m := range r.got {
		if m.name == "event.succeeded" && m.event.Status != "SUCCEEDED" || m.name == "event.failed" && m.event.Status != "FAILED" {
			t.Errorf("%s shows %s", m.name, m.event.Status)
		}
	}
}
