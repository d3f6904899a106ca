package endtoend

import (
	"context"
	"net/url"
	"syscall"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/testkit/collector"
)

// TestCanaries sends a word of its own through every place where input enters, in all dialects and to all ends, and then
// looks for each in everything that comes out: the tables, the logs of all processes and of PostgreSQL, what NATS sends and
// stores, metrics, spans, refusals, webhooks, the stream, pages, and the log of acts.
func TestCanaries(t *testing.T) {
	t.Parallel()
	pg := testkit.PrivatePostgres(t, false)
	s := newSystem(t, pg.URL(), "HOLDFAST_LOG_LEVEL=debug", "HOLDFAST_OUTPUT_RETRIES=0", "HOLDFAST_WEBHOOK_ALLOW_HTTP=true",
		"HOLDFAST_WEBHOOK_ALLOW_NETWORKS=127.0.0.0/8", "HOLDFAST_LEASE_TTL=1s")
	y := newSpy(s)
	y.credentials(pg.URL())
	spans := collector.New(t)
	s.env = append(s.env, spans.Env()...)
	api := s.startAPI("HOLDFAST_ADMIN_LISTEN=127.0.0.1:0")
	y.listens()
	y.follows()
	empty := s.purse(0)

	y.accepts(empty)
	y.finds("while it waits", func(tr trace) string { return tr.waiting })
	workers := y.works()
	y.ends()
	y.finds("when it has ended", func(tr trace) string { return tr.done })
	if kinds := one[string](s, `SELECT coalesce(string_agg(DISTINCT kind, ' '), '') FROM tasks WHERE trace IS NULL AND kind <> 'webhook_delivery'`); kinds != "" {
		t.Errorf("tasks of %s don't know their request", kinds)
	}
	y.isRefused()
	y.finds("after refusals", func(tr trace) string { return tr.done })
	y.commands()
	y.erases()
	y.finds("after the erase", func(tr trace) string { return tr.erased })
	y.pages()
	for _, p := range append(workers, api) {
		y.admins(p)
	}
	y.deletes(empty)
	y.finds("after the workspace is deleted", func(tr trace) string { return tr.deleted })
	y.calls()
	y.reads("store of NATS", s.nats.StoreDir())

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := pg.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	y.withoutDatabase()
	for _, p := range append(workers, api) {
		p.Signal(syscall.SIGTERM)
		p.Wait(patience)
	}
	for _, p := range workers {
		y.hears("logs of workers", []byte(p.Stdout()+p.Stderr()))
	}
	y.hears("spans", spans.Raw())
	y.hears("logs of the API", []byte(api.Stdout()+api.Stderr()))
	y.reads("log of PostgreSQL", pg.LogPath())
	y.silent()
}

// credentials puts words into every secret that the processes are given, and knows those that they make.
func (y *spy) credentials(database string) {
	s := y.s
	s.t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		s.t.Fatal(err)
	}
	if password, has := u.User.Password(); has && password != "" {
		y.knows("password of the database", password)
	} else {
		u.User = url.UserPassword(u.User.Username(), y.word("password of the database"))
	}
	bus, err := url.Parse(s.nats.URL())
	if err != nil {
		s.t.Fatal(err)
	}
	bus.User = url.UserPassword("holdfast", y.word("password of nats"))
	s.env = append(s.env, "HOLDFAST_DATABASE_URL="+u.String(), "HOLDFAST_NATS_URL="+bus.String(), "HOLDFAST_OPENAI_API_KEY="+y.word("key of the model"))
	y.knows("secret of a key", secretOf(s.key))
	y.token = s.operate(0, "operator", "create", y.word("name of an operator"))
	y.knows("secret of an operator", secretOf(y.token))
	s.operate(0, "key", "create", "--workspace", "test", "--name", y.word("name of a key"))
}

// knows adds a word that somebody else has made.
func (y *spy) knows(place, word string) {
	y.s.t.Helper()
	if len(word) < 20 {
		y.s.t.Fatalf("the word of %q is too short to be found for certain", place)
	}
	y.words[place] = word
}

// secretOf is the part of a key or a token that nobody else knows.
func secretOf(key string) string { return key[len("hfk_123456789012_") : len("hfk_123456789012_")+43] }
