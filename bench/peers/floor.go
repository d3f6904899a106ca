package peers

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// Floor is the least that a durable acceptance can be: one INSERT of one row with the command in it, committed.
type Floor struct {
	books *books
	body  []byte
	next  atomic.Int64
}

// OpenFloor opens it with a pool of its own.
func OpenFloor(ctx context.Context, databaseURL string, workspaces, bytes int, conns int32) (*Floor, error) {
	b, err := openBooks(ctx, databaseURL, workspaces, conns)
	if err != nil {
		return nil, err
	}
	return &Floor{books: b, body: []byte(body(bytes))}, nil
}

// Close closes its pool.
func (f *Floor) Close() { f.books.pool.Close() }

// Insert commits one row.
func (f *Floor) Insert(ctx context.Context, _ int) error {
	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("make id: %w", err)
	}
	workspace := f.books.workspaces[f.next.Add(1)%int64(len(f.books.workspaces))]
	_, err = f.books.pool.Exec(ctx, `INSERT INTO floor (id, workspace_id, body) VALUES ($1, $2, $3)`, id, workspace, f.body)
	return err
}

// The scripts of pgbench: the floor, an empty durable commit, and the four rows of an acceptance in one round trip.
const (
	insertScript = `INSERT INTO floor (id, workspace_id, body) VALUES (gen_random_uuid(), gen_random_uuid(), convert_to(repeat('x', 1000), 'UTF8'));
`
	emptyScript = `SELECT pg_current_xact_id();
`
	acceptScript = `\set w random(1, 1000)
\startpipeline
BEGIN;
INSERT INTO keys (workspace_id, key_hash, fingerprint, task_id) VALUES (md5(:w::text)::uuid, sha256(gen_random_uuid()::text::bytea), sha256(gen_random_uuid()::text::bytea), gen_random_uuid()) ON CONFLICT DO NOTHING;
INSERT INTO floor (id, workspace_id, body) VALUES (gen_random_uuid(), md5(:w::text)::uuid, convert_to(repeat('x', 1000), 'UTF8'));
INSERT INTO runs (task_id, workspace_id, amount) VALUES (gen_random_uuid(), md5(:w::text)::uuid, 1);
UPDATE accounts SET available = available - 1, held = held + 1 WHERE workspace_id = md5(:w::text)::uuid AND available >= 1;
END;
\endpipeline
`
)

// PGBench runs PostgreSQL's own benchmark.
type PGBench struct {
	path, dir, databaseURL, password string
}

// OpenPGBench looks for the program; the database must be that of a Floor.
func OpenPGBench(ctx context.Context, dir, databaseURL string, f *Floor) (*PGBench, error) {
	path, err := exec.LookPath("pgbench")
	if err != nil {
		found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench")
		if len(found) == 0 {
			return nil, fmt.Errorf("pgbench is not installed: %w", err)
		}
		slices.Sort(found)
		path = found[len(found)-1]
	}
	u, err := url.Parse(databaseURL)
	if err != nil {
		return nil, fmt.Errorf("pgbench: the database URL cannot be read")
	}
	password, _ := u.User.Password()
	u.User = url.User(u.User.Username())
	_, err = f.books.pool.Exec(ctx, `INSERT INTO accounts SELECT md5(n::text)::uuid, 1 << 30, 0 FROM generate_series(1, 1000) n`)
	if err != nil {
		return nil, fmt.Errorf("pgbench: make accounts: %w", err)
	}
	return &PGBench{path: path, dir: dir, databaseURL: u.String(), password: password}, nil
}

// Insert is the rate a second of the floor.
func (b *PGBench) Insert(ctx context.Context, clients int, spell time.Duration) (float64, error) {
	return b.run(ctx, insertScript, clients, spell)
}

// Empty is the rate a second of an empty durable commit.
func (b *PGBench) Empty(ctx context.Context, clients int, spell time.Duration) (float64, error) {
	return b.run(ctx, emptyScript, clients, spell)
}

// Accept is the rate a second of the four rows of an acceptance.
func (b *PGBench) Accept(ctx context.Context, clients int, spell time.Duration) (float64, error) {
	return b.run(ctx, acceptScript, clients, spell)
}

func (b *PGBench) run(ctx context.Context, script string, clients int, spell time.Duration) (float64, error) {
	file := filepath.Join(b.dir, "pgbench.sql")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		return 0, fmt.Errorf("pgbench: %w", err)
	}
	seconds := max(1, int(spell.Seconds())) // whole seconds are all it takes
	cmd := exec.CommandContext(ctx, b.path, "-n", "-M", "prepared", "-f", file, "-c", strconv.Itoa(clients),
		"-j", strconv.Itoa(min(clients, 2)), "-T", strconv.Itoa(seconds), b.databaseURL)
	cmd.Env = append(os.Environ(), "PGPASSWORD="+b.password)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("pgbench: %w: %s", err, out)
	}
	found := regexp.MustCompile(`tps = ([0-9.]+)`).FindSubmatch(out)
	if found == nil {
		return 0, fmt.Errorf("pgbench said no rate: %s", out)
	}
	return strconv.ParseFloat(string(found[1]), 64)
}
