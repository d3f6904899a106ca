package endtoend

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/testkit"
)

// TestBehindPgBouncer runs every process behind a PgBouncer with three server connections: a worker is killed, another
// one finishes, an erase and a restart of the pooler itself come on top. `make test-pgbouncer` runs the whole suites so.
func TestBehindPgBouncer(t *testing.T) {
	t.Parallel()
	direct := testkit.Direct(testkit.NewDatabase(t))
	pooler := testkit.NewPooler(t, direct, 3)
	s := newSystem(t, direct,
		"HOLDFAST_DATABASE_URL="+pooler.URL(direct), "HOLDFAST_DATABASE_POOLER=transaction", "HOLDFAST_DATABASE_DIRECT_URL="+direct)
	if said := s.holdfast(0, "migrate"); strings.Contains(said, "pooler") {
		t.Errorf("migrate says %s", said)
	}
	s.startAPI()
	doomed := s.startWorker(point("worker.after_inference", "kill"))
	id := s.add("k", conversation("u", "FACT: one"))
	announced(doomed, "worker.after_inference")
	doomed.Wait(patience)
	heir := s.startWorker()
	s.succeeded(id)
	s.allSucceeded(s.addMany("many", 20))

	a := s.do("DELETE", "/v1/memories?user_id=u", "erase", nil)
	if a.status != http.StatusOK || s.texts("u") != "" {
		t.Errorf("erase: %d %s, left is %q", a.status, a.body, s.texts("u"))
	}

	// RECONNECT closes each server connection as soon as its transaction ends.
	ids := s.addMany("meanwhile", 10)
	s.console(pooler, direct, "RECONNECT")
	s.allSucceeded(ids)
	s.repairOnce()
	heir.Signal(syscall.SIGTERM)
	if code := heir.Wait(patience); code != 0 {
		t.Errorf("the worker ended with %d", code)
	}
	s.sound(62)
	if said := s.doctor(); !strings.Contains(said, "it gives connections out by the transaction") {
		t.Errorf("doctor says %s", said)
	}
}

// doctor returns what doctor says; that it calls a database for tests unsafe is no failure here.
func (s *system) doctor() string {
	s.t.Helper()
	p := testkit.StartProcess(s.t, testkit.ProcessConfig{Path: filepath.Join(s.bin, "holdfast"), Args: []string{"doctor"}, Env: s.env})
	p.Wait(patience)
	return p.Stdout()
}

// console runs one command on the pooler's own console.
func (s *system) console(pooler *testkit.Pooler, databaseURL, command string) {
	s.t.Helper()
	conn, err := pgx.Connect(s.t.Context(), pooler.Admin(databaseURL))
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(s.t.Context(), command); err != nil {
		s.t.Fatalf("%s: %v", command, err)
	}
}
