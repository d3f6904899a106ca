package console_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/credits"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/events"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/memories"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/playground"
	"github.com/holdfast-memory/holdfast/internal/localdev"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model/offline"
	"github.com/holdfast-memory/holdfast/internal/operator"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/worker"
	"github.com/holdfast-memory/holdfast/internal/write"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

// canary is the text of every input here.
const canary = "the canary sings at noon"

// world is a console over a real database, to which it logs in as the API does.
type world struct {
	t       *testing.T
	sql     *pgxpool.Pool
	owner   *postgres.DB
	accept  *write.Accepter
	write   *write.Writer
	address string
}

// silent publishes nothing.
type silent struct{}

func (silent) Publish(context.Context, task.Hint)           {}
func (silent) Notify(context.Context, uuid.UUID, uuid.UUID) {}
func (silent) Subscribe(uuid.UUID, uuid.UUID) (<-chan struct{}, func()) {
	return nil, func() {}
}

func setup(t *testing.T) *world {
	t.Helper()
	databaseURL := testkit.NewDatabase(t)
	open := func(url string) *postgres.DB {
		db, err := postgres.Open(t.Context(), postgres.Config{URL: url})
		require.NoError(t, err)
		t.Cleanup(db.Close)
		return db
	}
	w := &world{t: t, sql: testkit.Pool(t, databaseURL), owner: open(databaseURL)}
	db := open(testkit.As(t, localdev.APILogin, databaseURL))
	prices := credit.DefaultPrices()
	health, err := recall.NewHealth(db, func() error { return nil })
	require.NoError(t, err)
	reader, err := recall.NewEvents(db.EventReader(5), silent{})
	require.NoError(t, err)
	lives, err := recall.NewLives(db)
	require.NoError(t, err)
	balances, err := recall.NewCredits(db)
	require.NoError(t, err)
	retrier, err := write.NewRetrier(db, silent{}, prices)
	require.NoError(t, err)
	canceller, err := write.NewCanceller(db, silent{}, silent{})
	require.NoError(t, err)
	w.accept, err = write.NewAccepter(db, silent{}, prices, []byte("{}"))
	require.NoError(t, err)
	mount, err := console.New(console.Deps{
		Store: db, Service: db, Health: health, Providers: db, Workspaces: db, Pulses: db, Credits: balances,
		Events: events.Deps{
			Reader: reader, Finder: db.EventReader(5), Lives: lives, Balances: balances, Retrier: retrier, Canceller: canceller, Prices: prices,
		},
		Memories: w.memories(db),
		Account:  credits.Deps{Accounts: balances, Finder: db.EventReader(5)},
		Keys:     db,
		Playground: playground.Deps{
			Accepter: w.accept, Writer: w.write, Searcher: w.memories(db).Searcher, Events: events.Deps{Reader: reader, Lives: lives}, Prices: prices,
		},
		Recovery: w.recovery(db, retrier, canceller, balances),
		Webhooks: w.webhooks(db),
		Settings: w.settings(db),
	})
	require.NoError(t, err)
	server, err := httpapi.New(deps(), httpapi.Config{Mounts: []httpapi.Mount{mount}})
	require.NoError(t, err)
	listening := httptest.NewServer(server.Handler())
	t.Cleanup(listening.Close)
	w.address = listening.URL
	return w
}

// tenant is a workspace with a key that may do so much.
type tenant struct {
	caller access.Caller
	id     uuid.UUID
	root   string
	key    access.Key
}

func (w *world) tenant(name string, permissions ...access.Permission) tenant {
	w.t.Helper()
	made, err := w.owner.CreateWorkspace(w.t.Context(), name, true)
	require.NoError(w.t, err)
	_, err = w.owner.Grant(w.t.Context(), made.ID, "start", 100)
	require.NoError(w.t, err)
	return w.keyOf(made, permissions...)
}

func (w *world) keyOf(made operator.Workspace, permissions ...access.Permission) tenant {
	w.t.Helper()
	if len(permissions) == 0 {
		permissions = access.Permissions()
	}
	key, err := w.owner.CreateKey(w.t.Context(), made.ID, "k", permissions, nil)
	require.NoError(w.t, err)
	caller, err := w.owner.Authenticate(w.t.Context(), key)
	require.NoError(w.t, err)
	return tenant{caller: caller, id: made.ID, root: "/console/w/ws_" + made.ID.String(), key: key}
}

// event accepts a conversation.
func (w *world) event(of tenant, key string) string {
	w.t.Helper()
	parsed, err := command.ParseKey([]string{key})
	require.NoError(w.t, err)
	add := command.Add{
		Scope: memory.Scope{UserID: "lea"}, Infer: true, Ordered: true, Messages: []command.Message{{Role: "user", Content: canary}},
	}
	receipt, err := w.accept.Accept(w.t.Context(), of.caller, *parsed, add)
	require.NoError(w.t, err)
	return "evt_" + receipt.EventID.String()
}

// fail ends an event as a worker would have.
func (w *world) fail(event string) {
	w.t.Helper()
	_, err := w.sql.Exec(w.t.Context(), `
WITH ended AS (
  UPDATE tasks SET status = 'failed', head = false, error_class = 'output_invalid', error_code = 'OUTPUT_INVALID', claims = 1,
         completed_at = clock_timestamp() WHERE id = $1::uuid RETURNING id, workspace_id
), attempt AS (
  INSERT INTO task_attempts (task_id, claim, workspace_id, generation, worker, claimed_at, ended_at, ending, class, provider_calls)
  SELECT id, 1, workspace_id, 1, 'host-17-abc', clock_timestamp(), clock_timestamp(), 'failed', 'output_invalid', 1 FROM ended
), run AS (
  UPDATE task_runs SET outcome = 'failed' WHERE task_id = $1::uuid RETURNING workspace_id, amount
), account AS (
  UPDATE credit_accounts a SET held = held - amount, available = available + amount FROM run WHERE a.workspace_id = run.workspace_id
)
INSERT INTO credit_closings (task_id, generation, workspace_id, outcome, amount, settled, released, closed_at)
SELECT $1::uuid, 1, workspace_id, 'failed', amount, 0, amount, clock_timestamp() FROM run`, strings.TrimPrefix(event, "evt_"))
	require.NoError(w.t, err)
}

func (w *world) status(event string) (status string, generation int) {
	w.t.Helper()
	require.NoError(w.t, w.sql.QueryRow(w.t.Context(), `SELECT status, generation FROM tasks WHERE id = $1::uuid`,
		strings.TrimPrefix(event, "evt_")).Scan(&status, &generation))
	return status, generation
}

// browser sends what a browser would, and follows nothing.
type browser struct {
	w       *world
	cookie  *http.Cookie
	csrf    string
	headers map[string]string
}

type reply struct {
	status int
	header http.Header
	body   string
	cookie *http.Cookie
}

func (w *world) browser(headers ...string) *browser {
	b := &browser{w: w, headers: map[string]string{"Sec-Fetch-Site": "same-origin"}}
	for i := 0; i < len(headers); i += 2 {
		b.headers[headers[i]] = headers[i+1]
	}
	return b
}

var hidden = regexp.MustCompile(`name="csrf" value="([0-9a-f]{32})"`)

func (b *browser) send(method, path string, form url.Values) reply {
	b.w.t.Helper()
	r, err := http.NewRequestWithContext(b.w.t.Context(), method, b.w.address+path, strings.NewReader(form.Encode()))
	require.NoError(b.w.t, err)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, value := range b.headers {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	if host := b.headers["Host"]; host != "" {
		r.Host = host
	}
	if b.cookie != nil {
		r.AddCookie(b.cookie)
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(b.w.t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(b.w.t, err)
	got := reply{status: response.StatusCode, header: response.Header, body: string(body)}
	for _, c := range response.Cookies() {
		got.cookie = c
	}
	if found := hidden.FindStringSubmatch(got.body); found != nil {
		b.csrf = found[1]
	}
	return got
}

func (b *browser) get(path string) reply {
	b.w.t.Helper()
	return b.send(http.MethodGet, path, nil)
}

// post sends a form of the session.
func (b *browser) post(path string, values ...string) reply {
	b.w.t.Helper()
	form := url.Values{"csrf": {b.csrf}}
	for i := 0; i < len(values); i += 2 {
		form.Set(values[i], values[i+1])
	}
	return b.send(http.MethodPost, path, form)
}

// signIn opens a session and keeps its cookie and its forms' word.
func (b *browser) signIn(secret string) reply {
	b.w.t.Helper()
	got := b.send(http.MethodPost, "/console/sign-in", url.Values{"secret": {secret}})
	require.Equal(b.w.t, http.StatusSeeOther, got.status, got.body)
	b.cookie = got.cookie
	home := b.get("/console")
	require.Equal(b.w.t, http.StatusSeeOther, home.status, home.body)
	require.Equal(b.w.t, http.StatusOK, b.get(home.header.Get("Location")).status)
	require.NotEmpty(b.w.t, b.csrf)
	return got
}

func (r reply) isSignIn() bool {
	return r.status == http.StatusSeeOther && strings.HasPrefix(r.header.Get("Location"), "/console/sign-in")
}

func (r reply) String() string { return fmt.Sprint(r.status, r.header, r.body) }

// deps are those of a server of which only the console is used.
func deps() httpapi.Deps {
	return httpapi.Deps{
		Authenticator: struct{ httpapi.Authenticator }{}, Log: zerolog.Nop(), Accepter: struct{ httpapi.Accepter }{},
		Searcher: struct{ httpapi.Searcher }{}, Writer: struct{ httpapi.Writer }{}, Changer: struct{ httpapi.Changer }{},
		Batcher: struct{ httpapi.Batcher }{}, Eraser: struct{ httpapi.Eraser }{}, Retrier: struct{ httpapi.Retrier }{},
		Canceller: struct{ httpapi.Canceller }{}, Events: struct{ httpapi.Events }{}, ItemEvents: struct{ httpapi.ItemEvents }{},
		Memories: struct{ httpapi.Memories }{}, Entities: struct{ httpapi.Entities }{}, Mover: struct{ httpapi.Mover }{},
		Exports: struct{ httpapi.Exports }{}, Credits: struct{ httpapi.Credits }{}, Health: struct{ httpapi.Health }{},
		Webhooks: struct{ httpapi.Webhooks }{}, WebhookReader: struct{ httpapi.WebhookReader }{}, Replayer: struct{ httpapi.Replayer }{},
		Streams: struct{ httpapi.Streams }{}, Policies: struct{ httpapi.Policies }{}, Feedbacks: struct{ httpapi.Feedbacks }{},
	}
}

// memories are the use cases of that section, with an eraser that erases while its caller waits.
func (w *world) memories(db *postgres.DB) memories.Deps {
	w.t.Helper()
	reader, err := recall.NewMemories(db)
	require.NoError(w.t, err)
	searcher, err := recall.NewSearcher(db, offline.NewEmbedder())
	require.NoError(w.t, err)
	entities, err := recall.NewEntities(db)
	require.NoError(w.t, err)
	inline, err := worker.NewInline(db, db, task.Erase, db.EraseJob(), silent{}, silent{}, time.Minute)
	require.NoError(w.t, err)
	eraser, err := write.NewEraser(db, inline, silent{})
	require.NoError(w.t, err)
	w.write, err = write.NewWriter(db, silent{}, offline.NewEmbedder(), credit.DefaultPrices())
	require.NoError(w.t, err)
	return memories.Deps{Reader: reader, Searcher: searcher, Entities: entities, Records: db, Finder: db.EventReader(5), Eraser: eraser}
}

// remember stores a text of a user as it is, and answers its record's id.
func (w *world) remember(of tenant, user, text string) string {
	w.t.Helper()
	stored, err := w.write.Write(w.t.Context(), of.caller, nil, command.Add{
		Scope: memory.Scope{UserID: user}, Messages: []command.Message{{Role: "user", Content: text}},
	})
	require.NoError(w.t, err)
	require.Len(w.t, stored.Results, 1)
	return "mem_" + stored.Results[0].RecordID.String()
}
