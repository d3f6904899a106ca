//go:build cluster

package cluster

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/localdev"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

// patience bounds every wait.
const patience = 2 * time.Minute

// settled is how many receipts have to come before a fault counts as got over.
const settled = 40

// grant is far more than the callers can spend in the time.
const grant = 1_000_000

// Its parts run one after the other: times are what they measure.
func TestCluster(t *testing.T) {
	t.Run("SynchronousReplicationLosesNothing", func(t *testing.T) {
		s := newSystem(t, true)
		s.killServersInTurn()
		s.failOver()
		if lost := s.end(); lost != 0 {
			t.Errorf("%d receipts name events that are not there", lost)
		}
	})

	t.Run("WithoutItWhatIsLostHasNeverBeen", func(t *testing.T) {
		s := newSystem(t, false)
		s.failOver()
		t.Logf("without synchronous replication %d receipts of those moments were lost", s.end())
	})
}

type system struct {
	t       *testing.T
	nats    *servers
	primary *localdev.Postgres
	replica *localdev.Postgres
	key     string
	apis    []string
	callers *callers
	began   time.Time
}

// newSystem starts everything: three NATS servers, two PostgreSQL servers, two APIs, three workers, repair, and callers.
func newSystem(t *testing.T, synchronous bool) *system {
	t.Helper()
	s := &system{t: t, nats: newServers(t), primary: testkit.PrivatePostgres(t, true)}
	s.replica = testkit.Replica(t, s.primary, synchronous)
	s.setUp()
	stub, bin := stubmodel.New(t), testkit.Binaries(t)
	start := func(name string, more ...string) {
		login := localdev.WorkerLogin
		if name == "api" {
			login = localdev.APILogin
		}
		env := append(s.nats.env(name), "HOLDFAST_DATABASE_URL="+s.both(testkit.As(t, login, s.primary.URL())),
			"HOLDFAST_ADMIN_LISTEN=off", "HOLDFAST_RATE_LIMIT=0", "HOLDFAST_EXTRACTOR=openai", "HOLDFAST_EMBEDDER=openai",
			"HOLDFAST_OPENAI_BASE_URL="+stub.OpenAIURL(), "HOLDFAST_OPENAI_MODEL=stub", "HOLDFAST_OPENAI_EMBEDDING_MODEL=stub",
			"HOLDFAST_LEASE_TTL=5s", "HOLDFAST_WORKSPACE_LEASES=0", "HOLDFAST_REPAIR_INTERVAL=2s")
		p := testkit.StartProcess(t, testkit.ProcessConfig{Path: filepath.Join(bin, name), Env: append(env, more...)})
		p.WaitForOutput(`"message":"ready"`, patience)
	}
	start("repair")
	s.nats.whole()
	for range 3 {
		start("worker")
	}
	for range 2 {
		address := free(t)
		start("api", "HOLDFAST_LISTEN="+address)
		s.apis = append(s.apis, "http://"+address)
	}
	s.began = time.Now()
	s.callers = startCallers(t, s.key, s.apis...)
	s.callers.acceptedAfter(settled)
	return s
}

func (s *system) setUp() {
	s.t.Helper()
	db, err := postgres.Open(s.t.Context(), postgres.Config{URL: s.primary.URL()})
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	workspace, err := db.CreateWorkspace(s.t.Context(), "cluster", true)
	if err != nil {
		s.t.Fatal(err)
	}
	key, err := db.CreateKey(s.t.Context(), workspace.ID, "cluster", access.Permissions(), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.key = key.Reveal()
	if _, err := db.Grant(s.t.Context(), workspace.ID, "cluster", grant); err != nil {
		s.t.Fatal(err)
	}
}

// both is a URL of the primary with the replica beside it: whoever connects takes the one that can be written to.
func (s *system) both(url string) string {
	own := fmt.Sprintf("127.0.0.1:%d", s.primary.Port())
	return strings.Replace(url, own, fmt.Sprintf("%s,127.0.0.1:%d", own, s.replica.Port()), 1) + "&target_session_attrs=read-write"
}

// felt breaks something and reports how long callers and work felt it.
func (s *system) felt(what string, fault func()) {
	s.t.Helper()
	retries := s.callers.retries.Load()
	at := time.Now()
	fault()
	done := time.Since(at)
	first := s.callers.acceptedAfter(settled)
	s.succeeded(first.event)
	s.t.Logf("%-34s took %5d ms, next receipt after %5d ms, known to have ended after %5d ms, %d answers asked for again", what, done.Milliseconds(),
		first.accepted.Sub(at).Milliseconds(), time.Since(at).Milliseconds(), s.callers.retries.Load()-retries)
}

// killServersInTurn kills the stream's leader and then each server, with a whole cluster in between.
func (s *system) killServersInTurn() {
	s.t.Helper()
	for _, n := range append([]*node{s.nats.whole()}, s.nats.nodes...) {
		s.felt("killed "+n.name, n.process.Kill)
		s.nats.start(n)
		s.nats.whole()
	}
	for _, n := range s.nats.nodes {
		n.process.Kill()
	}
	s.felt("no NATS server at all", func() {})
	for _, n := range s.nats.nodes {
		s.nats.start(n)
	}
	s.nats.whole()
	s.felt("all of them are back", func() {})
}

// failOver kills the primary as a machine dies and promotes the replica.
func (s *system) failOver() {
	s.t.Helper()
	s.felt("killed the primary, promoted", func() {
		if err := syscall.Kill(s.primary.PID(), syscall.SIGKILL); err != nil {
			s.t.Fatal(err)
		}
		<-s.primary.Done()
		pool, err := pgxpool.New(s.t.Context(), s.replica.URL())
		if err != nil {
			s.t.Fatal(err)
		}
		defer pool.Close()
		var promoted bool
		if err := pool.QueryRow(s.t.Context(), `SELECT pg_promote(true, 60)`).Scan(&promoted); err != nil || !promoted {
			s.t.Fatalf("promote: %t %v", promoted, err)
		}
	})
}

// end stops the callers, waits for every event, compares, and returns how many receipts name no event.
func (s *system) end() (lost int) {
	s.t.Helper()
	told := s.callers.end()
	for _, w := range told {
		if !s.succeeded(w.event) {
			lost++
		}
		again, err := s.callers.post(w.key, s.apis[0])
		if err != nil {
			s.t.Errorf("%s again: %v", w.key, err)
		}
		if gone := !s.succeeded(w.event); (again != w.event) != gone { // lost: the key is free, and a new event is made
			s.t.Errorf("%s is %s, and again %s", w.key, w.event, again)
		}
		s.succeeded(again)
	}
	pool := testkit.Pool(s.t, s.replica.URL())
	for what, sql := range map[string]string{
		"records beside one a key": `SELECT abs((SELECT count(*) FROM memories) - (SELECT count(*) FROM idempotency_keys))`,
		"texts stored twice":       `SELECT count(*) FROM (SELECT FROM memories GROUP BY user_id HAVING count(*) > 1) twice`,
		"credits beside two a key": `SELECT abs(available + held - 1000000 + 2 * (SELECT count(*) FROM idempotency_keys)) FROM credit_accounts`,
		"unfinished tasks":         `SELECT count(*) FROM tasks WHERE completed_at IS NULL`,
	} {
		var n int64
		if err := pool.QueryRow(s.t.Context(), sql).Scan(&n); err != nil || n != 0 {
			s.t.Errorf("%s: %d %v", what, n, err)
		}
	}
	audit := testkit.StartProcess(s.t, testkit.ProcessConfig{
		Path: filepath.Join(testkit.Binaries(s.t), "holdfast"), Args: []string{"audit"}, Env: []string{"HOLDFAST_DATABASE_URL=" + s.replica.URL()},
	})
	if code := audit.Wait(patience); code != 0 {
		s.t.Errorf("the audit ended with %d:\n%s", code, audit.Stdout())
	}
	s.t.Logf("accepted=%d lost=%d repeats=%d in %s", len(told), lost, s.callers.retries.Load(), time.Since(s.began).Round(time.Second))
	return lost
}

// succeeded waits for an event's end and tells whether it is there at all.
func (s *system) succeeded(id string) bool {
	s.t.Helper()
	deadline := time.Now().Add(patience)
	for attempt := 0; time.Now().Before(deadline); attempt++ {
		ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second)
		var event struct{ Status string }
		status, err := call(ctx, http.MethodGet, s.apis[attempt%len(s.apis)]+"/v1/events/"+id+"?wait=20", s.key, "", nil, &event)
		cancel()
		switch {
		case err == nil && status == http.StatusNotFound:
			return false
		case err == nil && status == http.StatusOK && event.Status == "SUCCEEDED":
			return true
		case err == nil && status == http.StatusOK && event.Status == "FAILED":
			s.t.Fatalf("event %s failed", id)
		}
	}
	s.t.Fatalf("event %s has not ended: %s", id, s.row(id))
	return false
}

// row is what the database that is left says of a task, without its input.
func (s *system) row(event string) string {
	s.t.Helper()
	var row string
	err := testkit.Pool(s.t, s.replica.URL()).QueryRow(s.t.Context(), `SELECT (to_jsonb(t) - 'command' || jsonb_build_object('now', now()))::text
		FROM tasks t WHERE id = $1`, strings.TrimPrefix(event, "evt_")).Scan(&row)
	if err != nil {
		return err.Error()
	}
	return row
}
