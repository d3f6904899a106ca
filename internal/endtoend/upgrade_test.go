package endtoend

import (
	"bytes"
	"encoding/json"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/localdev"
	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

// expansion is what a later release may do to the schema while this one's binaries run (docs/upgrade.md): columns that
// nobody of this release fills, an index, a table, a constraint, and a higher version.
func expansion() []string {
	return []string{
		"ALTER TABLE tasks ADD COLUMN of_the_next text",
		"ALTER TABLE tasks_archive ADD COLUMN of_the_next text",
		"ALTER TABLE memories ADD COLUMN of_the_next integer NOT NULL DEFAULT 0",
		"CREATE INDEX CONCURRENTLY of_the_next ON memories (of_the_next)",
		"ALTER TABLE tasks ADD CONSTRAINT of_the_next CHECK (of_the_next <> 'x') NOT VALID",
		"ALTER TABLE tasks VALIDATE CONSTRAINT of_the_next",
		"CREATE TABLE tables_of_the_next (id uuid PRIMARY KEY)",
		"INSERT INTO goose_db_version (version_id, is_applied) SELECT max(version_id) + 1, true FROM goose_db_version",
	}
}

// TestUpgrade runs the previous release's binaries while the schema grows under load, then those of this tree beside them,
// and takes the old ones away one by one: every write is accepted and ends once.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	old := previous(t)
	s := newSystemOf(t, old)
	s.startAPI()
	oldWorkers := []*testkit.Process{s.startWorker(), s.startWorker()}
	oldAPI := s.api

	stop, all := s.keepAdding("old")
	if out := s.command(testkit.Binaries(t), "migrate"); !strings.Contains(out, "applied") {
		t.Errorf("migrate said %s", out)
	}
	s.expand(expansion())
	finished := all(stop)
	s.allSucceeded(finished)

	// The old ones start on the grown schema, too: a machine may come back in the middle of it.
	s.bin = testkit.Binaries(t)
	s.startAPI()
	newAPI := s.api
	newWorker := s.startWorker()
	s.bin = old
	comeback := s.startWorker()
	stop, all = s.keepAdding("mixed") // accepted by the new API
	s.api = oldAPI
	more := s.addMany("beside", 10)
	for _, w := range append(oldWorkers, comeback) {
		w.Signal(syscall.SIGTERM)
		if code := w.Wait(patience); code != 0 {
			t.Errorf("an old worker ended with %d", code)
		}
	}
	s.api = newAPI
	finished = append(append(finished, more...), all(stop)...)
	s.allSucceeded(finished)
	newWorker.Signal(syscall.SIGTERM)
	if code := newWorker.Wait(patience); code != 0 {
		t.Errorf("the new worker ended with %d", code)
	}
	s.sound(2 * int64(len(finished)))
	s.audited()
}

// previous is a directory with the binaries of the newest release before this commit. Before the first one they are this
// tree's own, which then run on a schema that has grown beyond them.
func previous(t *testing.T) string {
	t.Helper()
	if exec.CommandContext(t.Context(), "git", "rev-parse", "HEAD").Run() != nil {
		return testkit.Binaries(t) // an archive of the sources knows of no releases
	}
	tags := git(t, "tag", "--list", "v[0-9]*", "--sort=-v:refname", "--no-contains", "HEAD", "--merged", "HEAD")
	tag, _, _ := strings.Cut(tags, "\n")
	if tag == "" {
		return testkit.Binaries(t)
	}
	source, bin := t.TempDir(), t.TempDir()
	archive := exec.CommandContext(t.Context(), "git", "-C", strings.TrimSpace(git(t, "rev-parse", "--show-toplevel")), "archive", tag)
	text, err := archive.Output()
	if err != nil {
		t.Fatalf("git archive %s: %v", tag, err)
	}
	unpack := exec.CommandContext(t.Context(), "tar", "-x", "-C", source)
	unpack.Stdin = bytes.NewReader(text)
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("unpack %s: %v\n%s", tag, err, out)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", bin, "./cmd/...")
	build.Dir = source
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", tag, err, out)
	}
	t.Logf("the previous release is %s", tag)
	return bin
}

func git(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", args...).Output()
	if err != nil {
		t.Fatalf("git %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

// newSystemOf is a system whose schema, workspace and key are made by the binaries in bin.
func newSystemOf(t *testing.T, bin string) *system {
	t.Helper()
	pg := testkit.PrivatePostgres(t, false)
	conn, err := pgx.Connect(t.Context(), pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "CREATE DATABASE upgraded"); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/upgraded"
	s := &system{t: t, url: u.String(), nats: testkit.NewNATS(t), stub: stubmodel.New(t), bin: bin}
	s.env = []string{
		"HOLDFAST_DATABASE_URL=" + s.url, "HOLDFAST_NATS_URL=" + s.nats.URL(), "HOLDFAST_ADMIN_LISTEN=off", "HOLDFAST_RATE_LIMIT=0",
		"HOLDFAST_EXTRACTOR=openai", "HOLDFAST_EMBEDDER=openai", "HOLDFAST_OPENAI_BASE_URL=" + s.stub.OpenAIURL(),
		"HOLDFAST_OPENAI_MODEL=stub", "HOLDFAST_OPENAI_EMBEDDING_MODEL=stub", "HOLDFAST_LEASE_TTL=2s", "HOLDFAST_WORKER_POLL=250ms",
	}
	s.command(bin, "migrate")
	if err := localdev.MakeLogins(t.Context(), s.url); err != nil {
		t.Fatal(err)
	}
	var workspace struct{ ID string }
	var key struct{ Key string }
	decode(t, s.command(bin, "workspace", "create", "test"), &workspace)
	decode(t, s.command(bin, "key", "create", "--workspace", "test"), &key)
	s.command(bin, "credits", "grant", "--workspace", "test", "--reference", "start", "10000")
	s.ws, s.key = uuid.MustParse(strings.TrimPrefix(workspace.ID, "ws_")), key.Key
	s.sql = testkit.Pool(t, s.url)
	return s
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// command runs an operator's command of the binaries in bin as the owner and returns the JSON that it prints.
func (s *system) command(bin string, args ...string) string {
	s.t.Helper()
	p := testkit.StartProcess(s.t, testkit.ProcessConfig{
		Path: filepath.Join(bin, "holdfast"), Args: append([]string{"--json"}, args...), Env: []string{"HOLDFAST_DATABASE_URL=" + s.url},
	})
	if code := p.Wait(patience); code != 0 {
		s.t.Fatalf("holdfast %s ended with %d: %s", strings.Join(args, " "), code, p.Stderr())
	}
	return p.Stdout()
}

// keepAdding writes from two callers until it is stopped; then it returns the events, five of each caller at least.
func (s *system) keepAdding(prefix string) (stop chan struct{}, all func(chan struct{}) []string) {
	s.t.Helper()
	const callers, least, most = 2, 5, 300 // the bound is for a slow expansion on a quick machine; the credits last for it
	stop = make(chan struct{})
	to := *s // goes on with its API when the test goes on with another
	ids := make([][]string, callers)
	var running sync.WaitGroup
	for i := range callers {
		running.Go(func() {
			pace := time.NewTicker(20 * time.Millisecond)
			defer pace.Stop()
			for n := 0; n < most; n++ {
				name := strings.Join([]string{prefix, string(rune('a' + i)), uuid.NewString()}, "-")
				ids[i] = append(ids[i], to.add(name, conversation(name, "FACT: "+name)))
				select {
				case <-pace.C:
				case <-stop:
					if n >= least {
						return
					}
				}
			}
		})
	}
	return stop, func(stop chan struct{}) []string {
		close(stop)
		running.Wait()
		var found []string
		for _, own := range ids {
			found = append(found, own...)
		}
		return found
	}
}

// expand runs statements as migrations do: each by itself, again when it did not get its lock in time.
func (s *system) expand(statements []string) {
	s.t.Helper()
	conn, err := pgx.Connect(s.t.Context(), s.url)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close(s.t.Context())
	for _, statement := range statements {
		bound := "2s" // for which everybody else waits, too
		if strings.Contains(statement, "CONCURRENTLY") {
			bound = "0" // nobody waits for it, and broken off it leaves an index behind that is of no use
		}
		if _, err := conn.Exec(s.t.Context(), "SET lock_timeout = '"+bound+"'"); err != nil {
			s.t.Fatal(err)
		}
		s.until(statement, func() bool {
			_, err := conn.Exec(s.t.Context(), statement, pgx.QueryExecModeSimpleProtocol)
			if err != nil && !strings.Contains(err.Error(), "55P03") { // lock_not_available
				s.t.Fatalf("%s: %v", statement, err)
			}
			return err == nil
		})
	}
}
