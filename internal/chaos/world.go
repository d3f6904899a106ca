package chaos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-memory/holdfast/internal/localdev"
	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

const (
	apiCount     = 2
	spaceCount   = 6
	modelTimeout = 3 * time.Second
	leaseTTL     = 2 * time.Second
	readyBound   = 2 * time.Minute
)

// world is the whole system under test.
type world struct {
	t    testing.TB
	cfg  Config
	bin  string // the programs
	dir  string // logs, NATS's store and what is built; the place to look after a failure
	log  *journal
	mind *mind

	pg      *localdev.Postgres
	pgOp    sync.Mutex // one fault of PostgreSQL at a time
	sql     *pgxpool.Pool
	disk    *disk
	cuts    []*testkit.CommitProxy
	net     *network
	hints   *hintProxy
	nats    *process
	store   string
	apis    []*process
	others  []*process // workers and repair
	urls    []string
	admins  []string // addresses of /metrics
	spaces  []*space
	token   string   // of the operator
	secrets []string // nothing but an answer shows them
	hooks   []*hook

	receivers *receivers

	http http.Client        // for looking at processes
	stop context.CancelFunc // ends every supervisor
}

// programs are the API, the workers and repair.
func (w *world) programs() []*process { return append(append([]*process{}, w.apis...), w.others...) }

// newWorld starts everything and returns when the APIs answer. It ends with the test.
func newWorld(t testing.TB, cfg Config, dir string) (*world, error) {
	w := &world{t: t, cfg: cfg, dir: dir, mind: newMind(cfg), net: newNetwork(), http: http.Client{Timeout: tryBound}, store: filepath.Join(dir, "nats")}
	bin := testkit.Binaries(t)
	w.bin = bin
	shifted := filepath.Join(bin, "worker")
	if cfg.has(faultClock) {
		root, err := moduleRoot(t.Context())
		if err != nil {
			return nil, err
		}
		if shifted, err = shiftedWorker(t.Context(), root, dir); err != nil {
			return nil, err
		}
	}
	var err error
	if w.log, err = newJournal(filepath.Join(dir, "faults.log")); err != nil {
		return nil, err
	}
	if err := w.servers(t); err != nil {
		return nil, err
	}
	if err := w.workspaces(t.Context()); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	w.stop = stop
	if err := w.launch(ctx, bin, shifted); err != nil {
		stop()
		return nil, err
	}
	t.Cleanup(w.end)
	return w, w.ready(t.Context())
}

func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	mod := strings.TrimSpace(string(out))
	if err != nil || mod == "" || mod == os.DevNull {
		return "", errors.Join(errors.New("not inside the module"), err)
	}
	return filepath.Dir(mod), nil
}

// servers starts PostgreSQL with its slow disk, the proxies before it and before NATS, and the model.
func (w *world) servers(t testing.TB) error {
	ctx, cancel := context.WithTimeout(t.Context(), readyBound)
	defer cancel()
	var err error
	if w.disk, err = newDisk(ctx, w.dir); err != nil {
		return err
	}
	w.pg, err = localdev.StartPostgres(ctx, localdev.PostgresConfig{
		DataDir: filepath.Join(w.dir, "postgres"), Fsync: true, Env: w.disk.environment(),
		Settings: map[string]string{"max_connections": "200"},
	})
	if err != nil {
		return err
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := w.pg.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	if err := testkit.Migrate(ctx, w.pg.URL()); err != nil {
		return err
	}
	if err := localdev.MakeLogins(ctx, w.pg.URL()); err != nil {
		return err
	}
	w.sql = testkit.Pool(t, w.pg.URL())
	for range 2 { // one for the APIs, one for the others
		w.cuts = append(w.cuts, testkit.CommitCutProxy(t, w.pg.URL()))
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	if w.nats, err = newProcess(w.dir, "nats", self, []string{fmt.Sprintf("%s=%d:%s", natsRole, port, w.store)}); err != nil {
		return err
	}
	w.hints, err = newHintProxy(fmt.Sprintf("127.0.0.1:%d", port), w.cfg.stream("hints"))
	if err != nil {
		return err
	}
	t.Cleanup(w.hints.close)
	t.Cleanup(w.net.close)
	return nil
}

// launch puts every process under its supervisor.
func (w *world) launch(ctx context.Context, bin, shifted string) error {
	stub, err := stubmodel.Start("")
	if err != nil {
		return err
	}
	w.t.Cleanup(func() { _ = stub.Close() })
	stub.Always(stubmodel.Match{Endpoint: stubmodel.Everything}, w.mind.answer)
	for i := range apiCount {
		port, err := freePort()
		if err != nil {
			return err
		}
		address := fmt.Sprintf("127.0.0.1:%d", port)
		p, err := w.program(fmt.Sprintf("api-%d", i), filepath.Join(bin, "api"), w.cuts[0], stub, "HOLDFAST_LISTEN="+address)
		if err != nil {
			return err
		}
		w.apis, w.urls = append(w.apis, p), append(w.urls, "http://"+address)
	}
	for i := range w.cfg.Workers {
		path, env := filepath.Join(bin, "worker"), []string{}
		if i == w.cfg.Workers-1 && w.cfg.has(faultClock) {
			path, env = shifted, []string{clockEnv + "=" + clockShift.String()}
		}
		p, err := w.program(fmt.Sprintf("worker-%d", i), path, w.cuts[1], stub, env...)
		if err != nil {
			return err
		}
		w.others = append(w.others, p)
	}
	p, err := w.program("repair", filepath.Join(bin, "repair"), w.cuts[1], stub)
	if err != nil {
		return err
	}
	w.others = append(w.others, p)
	for _, p := range append(w.programs(), w.nats) {
		p.frozen = w.thaw
		go p.supervise(ctx)
	}
	return nil
}

// program prepares one process with links of its own to every service.
func (w *world) program(name, path string, cut *testkit.CommitProxy, stub *stubmodel.Server, env ...string) (*process, error) {
	login := localdev.WorkerLogin
	if cut == w.cuts[0] {
		login = localdev.APILogin
	}
	own, err := localdev.LoginURL(cut.URL(), login)
	if err != nil {
		return nil, err
	}
	database, err := w.through(name, "postgres", own)
	if err != nil {
		return nil, err
	}
	nats, err := w.net.connect(name, "nats", w.hints.address())
	if err != nil {
		return nil, err
	}
	model, err := w.through(name, "model", stub.OpenAIURL())
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	admin := fmt.Sprintf("127.0.0.1:%d", port)
	w.admins = append(w.admins, "http://"+admin)
	return newProcess(w.dir, name, path, append([]string{
		w.cfg.encryption(),
		"HOLDFAST_DATABASE_URL=" + database, "HOLDFAST_NATS_URL=nats://" + nats, "HOLDFAST_ADMIN_LISTEN=" + admin,
		"HOLDFAST_EXTRACTOR=openai", "HOLDFAST_EMBEDDER=openai", "HOLDFAST_OPENAI_BASE_URL=" + model,
		"HOLDFAST_OPENAI_MODEL=stub", "HOLDFAST_OPENAI_EMBEDDING_MODEL=stub",
		"HOLDFAST_MODEL_TIMEOUT=" + modelTimeout.String(), "HOLDFAST_LEASE_TTL=" + leaseTTL.String(),
		"HOLDFAST_WORKER_POLL=500ms", "HOLDFAST_RETRY_BASE=100ms", "HOLDFAST_REPAIR_INTERVAL=1s", "HOLDFAST_HINT_AGE=2s",
		"HOLDFAST_RATE_LIMIT=0", "HOLDFAST_LOG_LEVEL=debug",
		"HOLDFAST_WEBHOOK_ALLOW_NETWORKS=127.0.0.0/8", "HOLDFAST_WEBHOOK_ALLOW_HTTP=true",
	}, env...))
}

// through opens a link to the server of a URL and returns the URL with the link's address in it.
func (w *world) through(from, to, serverURL string) (string, error) {
	u, err := url.Parse(serverURL)
	if err != nil {
		return "", fmt.Errorf("parse url of %s: %w", to, err)
	}
	u.Host, err = w.net.connect(from, to, u.Host)
	return u.String(), err
}

// ready waits until every API answers.
func (w *world) ready(ctx context.Context) error {
	deadline := time.Now().Add(readyBound)
	for _, api := range w.urls {
		for {
			if response, err := w.http.Get(api + "/readyz"); err == nil {
				_ = response.Body.Close()
				if response.StatusCode < http.StatusInternalServerError {
					break
				}
			}
			if ctx.Err() != nil || time.Now().After(deadline) {
				return fmt.Errorf("%s does not answer", api)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	return nil
}

// end stops every process and waits for it.
func (w *world) end() {
	w.stop()
	for _, p := range append(w.programs(), w.nats) {
		<-p.done
		_ = p.log.Close()
	}
	_ = w.log.close()
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a port: %w", err)
	}
	defer listener.Close()
	addr, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return 0, errors.New("find a port: no TCP address")
	}
	return addr.Port, nil
}
