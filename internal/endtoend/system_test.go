package endtoend

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/localdev"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

// patience bounds every wait of these tests: the machines are shared, so it is far above what is normal.
const patience = 90 * time.Second

// system is one Holdfast with a stub model: a database, a NATS, an API and as many workers as a test starts.
type system struct {
	t    *testing.T
	url  string
	sql  *pgxpool.Pool
	nats *localdev.NATS
	stub *stubmodel.Server
	bin  string
	env  []string
	api  string
	key  string
	ws   uuid.UUID
}

// newSystem sets everything up but starts no process. Workers use the stub for extraction and for vectors, so that
// the canonical commit and the end of a task are two transactions.
func newSystem(t *testing.T, databaseURL string, env ...string) *system {
	t.Helper()
	s := &system{t: t, url: databaseURL, nats: testkit.NewNATS(t), stub: stubmodel.New(t), bin: testkit.Binaries(t)}
	s.sql = testkit.Pool(t, s.url)
	s.setUpWorkspace()
	s.env = append(append(testkit.DatabaseEnv(s.url),
		"HOLDFAST_NATS_URL="+s.nats.URL(), "HOLDFAST_ADMIN_LISTEN=off",
		"HOLDFAST_EXTRACTOR=openai", "HOLDFAST_EMBEDDER=openai", "HOLDFAST_OPENAI_BASE_URL="+s.stub.OpenAIURL(),
		"HOLDFAST_OPENAI_MODEL=stub", "HOLDFAST_OPENAI_EMBEDDING_MODEL=stub", "HOLDFAST_LEASE_TTL=2s",
		"HOLDFAST_WORKER_POLL=250ms", "HOLDFAST_RETRY_BASE=100ms",
		"HOLDFAST_RATE_LIMIT=0", // one workspace does what many would
	), env...)
	return s
}

func (s *system) setUpWorkspace() {
	s.t.Helper()
	ctx := s.t.Context()
	db, err := postgres.Open(ctx, postgres.Config{URL: s.url})
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	workspace, err := db.CreateWorkspace(ctx, "test", true)
	if err != nil {
		s.t.Fatal(err)
	}
	s.ws = workspace.ID
	key, err := db.CreateKey(ctx, s.ws, "test", access.Permissions(), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.key = key.Reveal()
	if _, err := db.Grant(ctx, s.ws, "start", 10_000); err != nil {
		s.t.Fatal(err)
	}
}

func (s *system) start(name string, env ...string) *testkit.Process {
	s.t.Helper()
	return testkit.StartProcess(s.t, testkit.ProcessConfig{
		Path: filepath.Join(s.bin, name), Env: s.environment(name, env...),
	})
}

// environment is that of a program of that name: it logs in at the database as its kind does, not as the owner.
func (s *system) environment(name string, more ...string) []string {
	s.t.Helper()
	login := localdev.WorkerLogin
	if name == "api" {
		login = localdev.APILogin
	}
	env := append(append([]string{}, s.env...), more...)
	for i, entry := range env {
		if variable, value, _ := strings.Cut(entry, "="); variable == "HOLDFAST_DATABASE_URL" || variable == "HOLDFAST_DATABASE_DIRECT_URL" {
			env[i] = variable + "=" + testkit.As(s.t, login, value)
		}
	}
	return env
}

// startAPI starts an API on a free port and waits until it answers.
func (s *system) startAPI(env ...string) *testkit.Process {
	s.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	s.api = "http://" + address
	p := s.start("api", append(env, "HOLDFAST_LISTEN="+address)...)
	s.until("the API answers", func() bool {
		select {
		case <-p.Exited():
			s.t.Fatal("the API ended")
		default:
		}
		response, err := http.Get(s.api + "/v1/openapi.json")
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	return p
}

func (s *system) startWorker(env ...string) *testkit.Process {
	s.t.Helper()
	p := s.start("worker", env...)
	p.WaitForOutput(`"message":"ready"`, patience)
	return p
}

// repairOnce runs one round of repair and returns what it printed.
func (s *system) repairOnce() string {
	s.t.Helper()
	p := testkit.StartProcess(s.t, testkit.ProcessConfig{
		Path: filepath.Join(s.bin, "repair"), Args: []string{"--once"}, Env: s.environment("repair", "HOLDFAST_HINT_AGE=1ms"),
	})
	if code := p.Wait(patience); code != 0 {
		s.t.Fatalf("repair ended with %d", code)
	}
	return p.Stdout()
}

// until polls what no signal tells, with a bound.
func (s *system) until(what string, done func() bool) {
	s.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			s.t.Fatalf("waited too long: %s", what)
		}
	}
}

// answer is an HTTP answer read whole.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal(a.body, v); err != nil {
		t.Fatalf("answer %d %s: %v", a.status, a.body, err)
	}
}

// try sends one request; the error is the transport's.
func (s *system) try(method, path, key string, body any) (answer, error) {
	var reader io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			s.t.Fatal(err)
		}
		reader = bytes.NewReader(encoded)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, s.api+path, reader)
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+s.key)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, read}, err
}

func (s *system) do(method, path, key string, body any) answer {
	s.t.Helper()
	a, err := s.try(method, path, key, body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

// conversation is the body of an add whose stub facts are the lines that start with FACT.
func conversation(user string, lines ...string) map[string]any {
	messages := make([]map[string]string, len(lines))
	for i, line := range lines {
		messages[i] = map[string]string{"role": "user", "content": line}
	}
	return map[string]any{"user_id": user, "messages": messages}
}

// add posts a conversation that must be accepted and returns the event's id.
func (s *system) add(key string, body map[string]any) string {
	s.t.Helper()
	a := s.do("POST", "/v1/memories", key, body)
	if a.status != http.StatusAccepted {
		s.t.Fatalf("add %s: %d %s", key, a.status, a.body)
	}
	var receipt struct {
		EventID string `json:"event_id"`
	}
	a.into(s.t, &receipt)
	return receipt.EventID
}

// event is what a client reads of an event.
type event struct {
	ID         string  `json:"id"`
	Status     string  `json:"status"`
	Outcome    *string `json:"outcome"`
	Attempts   int     `json:"attempts"`
	Generation int     `json:"generation"`
	Results    []struct {
		ID     string  `json:"id"`
		Event  string  `json:"event"`
		Memory *string `json:"memory"`
	} `json:"results"`
	Error *struct {
		Code      string `json:"code"`
		Class     string `json:"class"`
		Retryable bool   `json:"retryable"`
	} `json:"error"`
	Usage struct {
		Reserved, Settled, Released int64
		ProviderCalls               int `json:"provider_calls"`
	} `json:"usage"`
}

func (s *system) event(id string) event {
	s.t.Helper()
	a := s.do("GET", "/v1/events/"+id, "", nil)
	if a.status != http.StatusOK {
		s.t.Fatalf("event %s: %d %s", id, a.status, a.body)
	}
	var e event
	a.into(s.t, &e)
	return e
}

// ended waits by long-poll until the event has ended.
func (s *system) ended(id string) event {
	s.t.Helper()
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		a, err := s.try("GET", "/v1/events/"+id+"?wait=20", "", nil)
		if err != nil || a.status != http.StatusOK {
			continue // the API or its database may be down for a moment
		}
		var e event
		a.into(s.t, &e)
		if e.Status == "SUCCEEDED" || e.Status == "FAILED" {
			return e
		}
	}
	e := s.event(id)
	s.t.Fatalf("event %s has not ended: %+v", id, e)
	return e
}

func (s *system) succeeded(id string) event {
	s.t.Helper()
	e := s.ended(id)
	if e.Status != "SUCCEEDED" {
		s.t.Fatalf("event %s: %+v", id, e)
	}
	return e
}

func one[T any](s *system, sql string, args ...any) T {
	s.t.Helper()
	var v T
	if err := s.sql.QueryRow(context.Background(), sql, args...).Scan(&v); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// sound checks the books and that no task did its work twice; spent is what the workspace must have paid.
func (s *system) sound(spent int64) {
	s.t.Helper()
	available := one[int64](s, `SELECT available FROM credit_accounts WHERE workspace_id = $1`, s.ws)
	held := one[int64](s, `SELECT held FROM credit_accounts WHERE workspace_id = $1`, s.ws)
	if available != 10_000-spent || held != 0 {
		s.t.Errorf("%d available and %d held, want %d and 0", available, held, 10_000-spent)
	}
	for what, sql := range map[string]string{
		"open runs":                   `SELECT count(*) FROM task_runs WHERE outcome IS NULL`,
		"unfinished tasks":            `SELECT count(*) FROM tasks WHERE completed_at IS NULL`,
		"input left after success":    `SELECT count(*) FROM tasks WHERE status = 'succeeded' AND command IS NOT NULL`,
		"plan bodies left":            `SELECT count(*) FROM plans p JOIN tasks t ON t.id = p.task_id WHERE t.status = 'succeeded' AND p.body IS NOT NULL`,
		"records beside results":      `SELECT count(*) FROM memories m WHERE NOT EXISTS (SELECT FROM task_results r WHERE r.record_id = m.id AND r.event = 'ADD' AND r.task_id = m.task_id)`,
		"repeats":                     `SELECT count(*) FROM (SELECT 1 FROM memories GROUP BY workspace_id, lane, content_key HAVING count(*) > 1) x`,
		"claims without attempt rows": `SELECT count(*) FROM tasks t WHERE claims <> (SELECT count(*) FROM task_attempts a WHERE a.task_id = t.id)`,
	} {
		if n := one[int64](s, sql); n != 0 {
			s.t.Errorf("%s: %d", what, n)
		}
	}
}

// texts returns the texts of a user as stored, ended ones too, sorted.
func (s *system) texts(user string) string {
	s.t.Helper()
	return one[string](s, `SELECT coalesce(string_agg(text, '|' ORDER BY text), '') FROM memories WHERE user_id = $1`, user)
}

func point(name, action string) string { return fmt.Sprintf("HOLDFAST_FAILPOINT=%s=%s", name, action) }

// announced waits until the process has reached a crash point.
func announced(p *testkit.Process, name string) {
	p.WaitForOutput("failpoint "+name+" ", patience)
}
