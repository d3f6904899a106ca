package localdev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	databaseName = "holdfast"
	superuser    = "holdfast"
	// oldestMajor is the first PostgreSQL that the schema works with.
	oldestMajor = 15
)

// PostgresConfig says where a private PostgreSQL lives and how it is set. Only DataDir is required.
type PostgresConfig struct {
	DataDir      string            // made by initdb if missing; its parent holds the other files
	Port         int               // 0 takes a free one
	BinDir       string            // empty: the data directory's version, else the newest installed
	Fsync        bool              // false is for tests: a power cut may destroy the data
	Settings     map[string]string // server parameters, over the built-in ones
	Env          []string          // NAME=value for the server, beside what it needs
	PasswordFile string            // default DataDir.password, 0600, owned by this process's user
	LogFile      string            // default DataDir.log, appended to
}

// Postgres is a running private server, on 127.0.0.1 only, with the database "holdfast".
type Postgres struct {
	cfg      PostgresConfig
	acct     account
	password string
	port     int

	op   sync.Mutex // one Stop or Restart at a time
	mu   sync.Mutex // guards proc
	proc *Child
	done chan struct{}
	end  sync.Once
}

// StartPostgres starts the server of cfg.DataDir, making it first if it doesn't exist, and returns when it takes
// connections. The server ends when this process is killed. Errors say what to do: no PostgreSQL installed, a
// data directory of another major version, a directory that the server's user can't enter, a port that is taken. The
// caller holds LockDir on the state directory, so that nobody else starts a server in the same one.
func StartPostgres(ctx context.Context, cfg PostgresConfig) (*Postgres, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	acct, err := serverAccount()
	if err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	if err := acct.prepareParent(filepath.Dir(cfg.DataDir)); err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	bin, err := chooseBinaries(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	cfg.BinDir = bin
	password, err := loadPassword(cfg.PasswordFile)
	if err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	if err := ensureCluster(ctx, cfg, acct, password); err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	p := &Postgres{cfg: cfg, acct: acct, password: password, done: make(chan struct{})}
	if err := p.firstLaunch(ctx); err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	return p, nil
}

func (cfg PostgresConfig) withDefaults() (PostgresConfig, error) {
	if cfg.DataDir == "" {
		return cfg, errors.New("DataDir is empty")
	}
	dir, err := filepath.Abs(cfg.DataDir)
	if err != nil {
		return cfg, fmt.Errorf("data directory: %w", err)
	}
	cfg.DataDir = dir
	if cfg.PasswordFile == "" {
		cfg.PasswordFile = dir + ".password"
	}
	if cfg.LogFile == "" {
		cfg.LogFile = dir + ".log"
	}
	return cfg, checkPort(cfg.Port)
}

// URL is the connection string of the database "holdfast" for its owner. It holds the password: never log it.
func (p *Postgres) URL() string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(superuser, p.password),
		Host:     loopback(p.port),
		Path:     "/" + databaseName,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Port is where the server listens; it stays the same over Restart.
func (p *Postgres) Port() int { return p.port }

// PID is the process id of the server's main process.
func (p *Postgres) PID() int { return p.process().PID() }

// LogPath is the file with the server's log.
func (p *Postgres) LogPath() string { return p.cfg.LogFile }

// DataDir is the server's data directory, as an absolute path.
func (p *Postgres) DataDir() string { return p.cfg.DataDir }

// Done is closed once the server has ended for good: by Stop, by itself, or because Restart could not start it again.
// A restart doesn't close it.
func (p *Postgres) Done() <-chan struct{} { return p.done }

func (p *Postgres) process() *Child {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.proc
}

// adopt makes c the present server process and reports its end, unless a Restart has replaced it by then.
func (p *Postgres) adopt(c *Child) {
	p.mu.Lock()
	p.proc = c
	p.mu.Unlock()
	go func() {
		<-c.Exited()
		p.op.Lock() // a Restart that is under way puts the next process in place first
		defer p.op.Unlock()
		if p.process() == c {
			p.end.Do(func() { close(p.done) })
		}
	}()
}

// logTail is the end of the server's log, for an error about a server that didn't start.
func logTail(path string) string {
	const most = 1024 // the last few lines: the reason stands at the end
	f, err := os.Open(path)
	if err != nil {
		return "no log: " + err.Error()
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > most {
		if _, err := f.Seek(-most, io.SeekEnd); err != nil {
			return "no log: " + err.Error()
		}
	}
	b, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return "no log: " + err.Error()
	}
	return string(b)
}

// stopGrace bounds the parts of Stop: a fast shutdown writes a checkpoint, which takes seconds after heavy writing; an
// immediate one only has to end processes, which the server itself enforces after 5 s.
const (
	fastGrace      = 20 * time.Second
	immediateGrace = 8 * time.Second
)
