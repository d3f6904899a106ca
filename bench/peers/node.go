package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	installBound = 10 * time.Minute // SQLite is compiled once
	nodeBound    = 5 * time.Minute  // a run is as long as it is told, and works off what it added
)

// Node runs the peers that are written for Node.js, from their lock file.
type Node struct{ dir string }

// OpenNode installs what the lock file names, from the npm registry, unless it is there.
func OpenNode(ctx context.Context) (*Node, error) {
	if _, err := exec.LookPath("npm"); err != nil {
		return nil, errors.New("npm and Node.js are not installed")
	}
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return nil, fmt.Errorf("find the bench: %w", err)
	}
	n := &Node{dir: filepath.Join(filepath.Dir(strings.TrimSpace(string(out))), "peers", "node")}
	if _, err := os.Stat(filepath.Join(n.dir, "node_modules", "pg-boss")); err == nil {
		return n, nil
	}
	return n, n.command(ctx, "npm", "ci", "--omit=peer", "--omit=optional", "--legacy-peer-deps", "--ignore-scripts",
		"--no-audit", "--no-fund", "--silent")
}

// BuildMem0 compiles SQLite for mem0's engine, which keeps its history and its vectors in it. It needs a C++ compiler,
// Python and the headers of Node.js; patient is whether to take the minute that it lasts.
func (n *Node) BuildMem0(ctx context.Context, patient bool) error {
	if _, err := os.Stat(filepath.Join(n.dir, "node_modules", "better-sqlite3", "build", "Release", "better_sqlite3.node")); err == nil {
		return nil
	}
	if !patient {
		return errors.New("SQLite for mem0's engine is not compiled yet: `make bench` does it")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		return fmt.Errorf("find Node.js: %w", err)
	}
	if node, err = filepath.EvalSymlinks(node); err != nil {
		return fmt.Errorf("find Node.js: %w", err)
	}
	return n.command(ctx, "env", "npm_config_build_from_source=true", "npm_config_nodedir="+filepath.Dir(filepath.Dir(node)),
		"npm", "rebuild", "better-sqlite3", "--silent")
}

func (n *Node) command(ctx context.Context, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, installBound)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = n.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out[max(0, len(out)-500):])
	}
	return nil
}

// Jobs is what a script did.
type Jobs struct {
	Count   int
	Seconds float64
}

// Rate is jobs a second.
func (j Jobs) Rate() float64 { return float64(j.Count) / j.Seconds }

// Queue runs one of the queues, graphile-worker or pg-boss, in an empty database.
func (n *Node) Queue(ctx context.Context, name, databaseURL string, spell time.Duration, bytes int) (Jobs, error) {
	return n.run(ctx, "queue.mjs", name, databaseURL, seconds(spell), strconv.Itoa(bytes))
}

// Engine adds with mem0's own engine.
func (n *Node) Engine(ctx context.Context, modelURL, dir string, spell time.Duration) (Jobs, error) {
	return n.run(ctx, "mem0.mjs", "engine", modelURL, seconds(spell), dir)
}

// Client adds with mem0's client at a server.
func (n *Node) Client(ctx context.Context, serverURL, key string, spell time.Duration) (Jobs, error) {
	return n.run(ctx, "mem0.mjs", "client", serverURL, seconds(spell), key)
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 2, 64) }

func (n *Node) run(ctx context.Context, args ...string) (Jobs, error) {
	ctx, cancel := context.WithTimeout(ctx, nodeBound)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", args...)
	cmd.Dir = n.dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return Jobs{}, fmt.Errorf("node %s %s: %w: %s", args[0], args[1], err, last(stderr.String()))
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	var said struct {
		Jobs, Adds int
		Seconds    float64
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &said); err != nil || said.Seconds <= 0 {
		return Jobs{}, fmt.Errorf("node %s %s said no result: %s", args[0], args[1], last(string(out)))
	}
	return Jobs{said.Jobs + said.Adds, said.Seconds}, nil
}

func last(text string) string { return text[max(0, len(text)-500):] }
