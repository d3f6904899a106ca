package endtoend

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/localdev"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

// TestRestore takes a base backup and the log of a system under load, brings back an earlier moment into another server
// with an empty NATS, and sees what docs/backup.md says: what is there is whole, what was under way goes on, and what came
// later has never been.
func TestRestore(t *testing.T) {
	t.Parallel()
	pg := testkit.PrivatePostgres(t, true)
	log := testkit.Archive(t, pg)
	s := newSystem(t, pg.URL())
	api, worker := s.startAPI(), s.startWorker()

	before := s.addMany("before", 10)
	s.allSucceeded(before)
	var load sync.WaitGroup
	var during []string
	load.Go(func() { during = s.addMany("during", 40) })
	copied := testkit.BaseBackup(t, pg)
	load.Wait()

	// Its worker is at the model, with a lease, at the moment that is brought back.
	hold := s.stub.Hold(stubmodel.With("caught"))
	defer hold.Release()
	caught := s.add("caught", conversation("caught", "FACT: caught"))
	<-hold.Arrived()
	one[string](s, `SELECT pg_create_restore_point('kept')::text`)

	late := s.add("late", conversation("late", "FACT: late"))
	s.succeeded(late)
	grant(t, pg, s.ws, "late", 500)
	api.Kill()
	worker.Kill()
	archived(t, s, log)
	testkit.RestartPostgres(t, pg, true) // whoever is still connected is not

	restored := testkit.RestorePostgres(t, pg, copied, map[string]string{
		"restore_command": "cp " + log + "/%f %p", "recovery_target_name": "kept", "recovery_target_action": "promote",
	})
	after := s.movedTo(restored)
	after.until("the restored server takes writes", func() bool {
		return !one[bool](after, `SELECT pg_is_in_recovery()`)
	})
	if left := one[int64](after, `SELECT count(*) FROM tasks WHERE status = 'running'`); left == 0 {
		t.Error("nothing was under way at the moment that was brought back")
	}
	hold.Release()
	after.repairOnce() // makes the stream
	after.strangers(5)
	after.startAPI()
	after.startWorker()

	after.allSucceeded(before)
	after.allSucceeded(during)
	if e := after.succeeded(caught); e.Attempts < 2 || after.texts("caught") != "caught" {
		t.Errorf("what was under way: %+v, records %q", e, after.texts("caught"))
	}
	if a := after.do("GET", "/v1/events/"+late, "", nil); a.status != http.StatusNotFound {
		t.Errorf("an event of later: %d %s", a.status, a.body)
	}
	again := after.add("late", conversation("late", "FACT: late"))
	if again == late {
		t.Error("a key that is gone still knows its event")
	}
	after.succeeded(again)
	after.unhinted()
	after.sound(2 * int64(len(before)+len(during)+2)) // the late grant is gone as well
	grant(t, restored, s.ws, "late", 500)             // its reference is as free as the key was
	after.audited()
}

// strangers puts hints of tasks that the database has never heard of into the stream, as it holds them when the database
// was taken back and NATS was not.
func (s *system) strangers(n int) {
	s.t.Helper()
	js := testkit.JetStream(s.t, s.nats)
	for range n {
		body := fmt.Sprintf(`{"task":%q,"workspace":%q,"seq":1}`, uuid.Must(uuid.NewV7()), s.ws)
		if _, err := js.Publish(s.t.Context(), "wake.interactive", []byte(body)); err != nil {
			s.t.Fatal(err)
		}
	}
}

// unhinted returns once every hint is taken.
func (s *system) unhinted() {
	s.t.Helper()
	js := testkit.JetStream(s.t, s.nats)
	s.until("no hint is left", func() bool {
		stream, err := js.Stream(s.t.Context(), "WAKE")
		return err == nil && stream.CachedInfo().State.Msgs == 0
	})
}

// movedTo is the same system with another database, an empty NATS, and no process yet.
func (s *system) movedTo(pg *localdev.Postgres) *system {
	s.t.Helper()
	moved := *s
	moved.url, moved.nats = pg.URL(), testkit.NewNATS(s.t)
	moved.sql = testkit.Pool(s.t, moved.url)
	moved.env = append(append([]string{}, s.env...), append(testkit.DatabaseEnv(moved.url), "HOLDFAST_NATS_URL="+moved.nats.URL())...)
	return &moved
}

// audited runs every check of the auditor over the database.
func (s *system) audited() {
	s.t.Helper()
	p := testkit.StartProcess(s.t, testkit.ProcessConfig{
		Path: filepath.Join(s.bin, "holdfast"), Args: []string{"audit"}, Env: testkit.DatabaseEnv(s.url),
	})
	if code := p.Wait(patience); code != 0 {
		s.t.Errorf("the audit ended with %d:\n%s%s", code, p.Stdout(), p.Stderr())
	}
}

func grant(t *testing.T, pg *localdev.Postgres, workspace uuid.UUID, reference string, amount int64) {
	t.Helper()
	db, err := postgres.Open(t.Context(), postgres.Config{URL: pg.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Grant(t.Context(), workspace, reference, amount); err != nil {
		t.Fatal(err)
	}
}

// archived returns once all of the server's log so far has been copied to dir.
func archived(t *testing.T, s *system, dir string) {
	t.Helper()
	file := one[string](s, `SELECT pg_walfile_name(pg_switch_wal())`)
	s.until("the log is archived", func() bool {
		_, err := os.Stat(filepath.Join(dir, file))
		return err == nil
	})
}
