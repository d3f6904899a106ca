package testkit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/localdev"
)

const (
	// poolerVar puts a PgBouncer in transaction mode in front of every database of NewDatabase.
	poolerVar = "TESTKIT_POOLER"
	queryMode = "default_query_exec_mode" // pgx's parameter of a URL
	// poolerStart bounds the start of a program that reads one small file.
	poolerStart = 30 * time.Second
	poolerLook  = 20 * time.Millisecond
	// poolerTries is how often a port that was free a moment ago may turn out to be taken.
	poolerTries = 3
	// suitePool is for the some twenty transactions that a test holds open at once, some of them on purpose; the server
	// has 300 connections for all tests together.
	suitePool = 40
)

// poolerConfig is written for PgBouncer 1.18, the oldest one that is tested. It accepts no start-up parameter beyond
// those that it knows, so that one which Holdfast began to send would be seen here.
const poolerConfig = `[databases]
* = host=127.0.0.1 port=%d

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = md5
auth_file = %s
pool_mode = transaction
default_pool_size = %d
max_client_conn = 1000
server_idle_timeout = 10
admin_users = %s
log_connections = 0
log_disconnections = 0
`

// Pooler is a PgBouncer in transaction mode on 127.0.0.1, in front of one PostgreSQL.
type Pooler struct {
	child   *localdev.Child
	address string // host and port
	server  string // host and port of the PostgreSQL behind it
}

// NewPooler starts a PgBouncer in front of the server of databaseURL, with so many server connections for each
// database. It ends with the test.
func NewPooler(t testing.TB, databaseURL string, size int) *Pooler {
	t.Helper()
	dir, err := os.MkdirTemp("", dirPrefix)
	if err != nil {
		t.Fatalf("make pooler directory: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p, err := startPooler(t.Context(), dir, databaseURL, size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.stop)
	return p
}

// URL is the way through the pooler to the database of databaseURL, which may be the server's URL or one of this pooler.
func (p *Pooler) URL(databaseURL string) string { return withHost(databaseURL, p.address) }

// Admin is the URL of the pooler's own console.
func (p *Pooler) Admin(databaseURL string) string {
	u, err := url.Parse(p.URL(databaseURL))
	if err != nil {
		return ""
	}
	u.Path, u.RawQuery = "/pgbouncer", queryMode+"=simple_protocol"
	return u.String()
}

func (p *Pooler) stop() {
	_ = p.child.Signal(syscall.SIGTERM) // at once, without waiting for clients
	select {
	case <-p.child.Exited():
	case <-time.After(stopTimeout):
		p.child.KillGroup()
		<-p.child.Exited()
	}
}

// Pooled tells whether the databases of NewDatabase are behind a PgBouncer in transaction mode.
func Pooled() bool { return os.Getenv(poolerVar) == "transaction" }

// Direct is the way past the pooler to the database of a URL of this package; without a pooler it is the URL itself.
func Direct(databaseURL string) string {
	current.mu.Lock()
	defer current.mu.Unlock()
	if current.pooler == nil || hostOf(databaseURL) != current.pooler.address {
		return databaseURL
	}
	u, err := url.Parse(databaseURL)
	if err != nil {
		return databaseURL
	}
	query := u.Query()
	query.Del(queryMode)
	u.Host, u.RawQuery = current.pooler.server, query.Encode()
	return u.String()
}

// DatabaseEnv is the environment by which a process reaches the database of a URL of this package: with the settings
// for a pooler, if it is behind one. The mode of queries is left to those settings.
func DatabaseEnv(databaseURL string) []string {
	direct := Direct(databaseURL)
	if direct == databaseURL {
		return []string{"HOLDFAST_DATABASE_URL=" + databaseURL}
	}
	return []string{
		"HOLDFAST_DATABASE_URL=" + withHost(direct, hostOf(databaseURL)),
		"HOLDFAST_DATABASE_POOLER=transaction", "HOLDFAST_DATABASE_DIRECT_URL=" + direct,
	}
}

// throughPooler is the URL of a database for a test that doesn't know of the pooler. The mode of queries, which
// Holdfast sets by HOLDFAST_DATABASE_POOLER, stands in the URL, so that every client of the test has it.
func throughPooler(databaseURL string) (string, error) {
	if !Pooled() {
		if set := os.Getenv(poolerVar); set != "" {
			return "", fmt.Errorf("%s is %q, and transaction is the only mode", poolerVar, set)
		}
		return databaseURL, nil
	}
	current.mu.Lock()
	defer current.mu.Unlock()
	if current.pooler == nil && current.poolerErr == nil {
		current.pooler, current.poolerErr = startSuitePooler(databaseURL)
	}
	if current.poolerErr != nil {
		return "", current.poolerErr
	}
	u, err := url.Parse(current.pooler.URL(databaseURL))
	if err != nil {
		return "", err
	}
	query := u.Query()
	query.Set(queryMode, "cache_describe")
	u.RawQuery = query.Encode()
	return u.String(), nil
}

// startSuitePooler starts the pooler of the test binary. The caller holds current.mu.
func startSuitePooler(databaseURL string) (*Pooler, error) {
	dir, err := current.directory()
	if err != nil {
		return nil, err
	}
	own := filepath.Join(dir, "pooler")
	if err := os.Mkdir(own, 0o700); err != nil {
		return nil, err
	}
	// The pooler outlives the test that is the first to want it.
	return startPooler(context.Background(), own, databaseURL, suitePool)
}

// startPooler starts a PgBouncer whose files are in dir, which it gives to the server's user.
func startPooler(ctx context.Context, dir, databaseURL string, size int) (*Pooler, error) {
	path, err := poolerProgram()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, poolerStart)
	defer cancel()
	for try := 1; ; try++ {
		p, err := tryPooler(ctx, path, dir, databaseURL, size)
		if err == nil || try == poolerTries || ctx.Err() != nil {
			return p, err
		}
	}
}

// poolerProgram looks where packages put it too: a user's PATH often lacks sbin.
func poolerProgram() (string, error) {
	if path, err := exec.LookPath("pgbouncer"); err == nil {
		return path, nil
	}
	const packaged = "/usr/sbin/pgbouncer"
	if _, err := os.Stat(packaged); err != nil {
		return "", errors.New("testkit: pgbouncer is not installed; `.ci/setup test` installs it")
	}
	return packaged, nil
}

func tryPooler(ctx context.Context, path, dir, databaseURL string, size int) (*Pooler, error) {
	u, err := url.Parse(databaseURL)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		return nil, fmt.Errorf("testkit: the port of the server: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := listener.Addr().String()
	own := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		return nil, err
	}
	user := u.User.Username()
	password, _ := u.User.Password()
	config, users := filepath.Join(dir, "pgbouncer.ini"), filepath.Join(dir, "users.txt")
	known := fmt.Appendf(nil, "%q %q\n", user, password)
	for _, login := range []localdev.Login{localdev.APILogin, localdev.WorkerLogin} {
		own, err := localdev.LoginURL(databaseURL, login)
		if err != nil {
			return nil, err
		}
		o, err := url.Parse(own)
		if err != nil {
			return nil, err
		}
		password, _ := o.User.Password()
		known = fmt.Appendf(known, "%q %q\n", o.User.Username(), password)
	}
	if err := os.WriteFile(users, known, 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(config, fmt.Appendf(nil, poolerConfig, port, own, users, size, user), 0o600); err != nil {
		return nil, err
	}
	log := &output{changed: newSignal()}
	cmd := exec.Command(path, config)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = dir
	if err := localdev.AsServer(cmd, dir); err != nil {
		return nil, err
	}
	child, err := localdev.StartChild(cmd, syscall.SIGKILL)
	if err != nil {
		return nil, err
	}
	p := &Pooler{child: child, address: address, server: u.Host}
	if err := p.await(ctx, databaseURL); err != nil {
		p.stop()
		return nil, fmt.Errorf("testkit: start pgbouncer: %w\n%s", err, tail(log.String()))
	}
	return p, nil
}

// await returns once the pooler's console answers.
func (p *Pooler) await(ctx context.Context, databaseURL string) error {
	for {
		conn, err := pgx.Connect(ctx, p.Admin(databaseURL))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-p.child.Exited():
			return errors.New("it ended")
		case <-ctx.Done():
			return err
		case <-time.After(poolerLook):
		}
	}
}

func hostOf(databaseURL string) string {
	u, err := url.Parse(databaseURL)
	if err != nil {
		return ""
	}
	return u.Host
}

func withHost(databaseURL, host string) string {
	u, err := url.Parse(databaseURL)
	if err != nil {
		return databaseURL
	}
	u.Host = host
	return u.String()
}
