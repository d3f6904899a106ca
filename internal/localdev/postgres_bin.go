package localdev

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// versionPattern finds the major number in "postgres (PostgreSQL) 15.17 (Debian 15.17-0+deb12u1)" and in "17beta1".
var versionPattern = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

type binaries struct {
	dir   string
	major int
}

// chooseBinaries finds the directory with `initdb` and `postgres`: the configured one, else one of the data directory's
// major version, else the newest.
func chooseBinaries(ctx context.Context, cfg PostgresConfig) (string, error) {
	have, err := dataVersion(cfg.DataDir)
	if err != nil {
		return "", err
	}
	var found []binaries
	dirs := []string{cfg.BinDir}
	if cfg.BinDir == "" {
		dirs = candidateDirs(ctx)
	}
	for _, dir := range dirs {
		major, err := binVersion(ctx, dir)
		if err != nil {
			if cfg.BinDir != "" {
				return "", fmt.Errorf("no PostgreSQL in %s: %w", dir, err)
			}
			continue
		}
		found = append(found, binaries{dir: dir, major: major})
	}
	if ctx.Err() != nil { // the probes were broken off: what they didn't find may be there
		return "", fmt.Errorf("look for PostgreSQL: %w", ctx.Err())
	}
	if len(found) == 0 {
		return "", errors.New("no PostgreSQL is installed (looked in /usr/lib/postgresql, pg_config and PATH): " +
			"install version 15 or newer, for example `apt-get install postgresql`, or set HOLDFAST_DATABASE_URL to a server of yours")
	}
	slices.SortStableFunc(found, func(a, b binaries) int { return b.major - a.major })
	if have == 0 {
		if found[0].major < oldestMajor {
			return "", fmt.Errorf("PostgreSQL %d in %s is too old: install version %d or newer", found[0].major, found[0].dir, oldestMajor)
		}
		return found[0].dir, nil
	}
	for _, b := range found {
		if b.major == have {
			return b.dir, nil
		}
	}
	return "", fmt.Errorf("%s was made by PostgreSQL %d, but version %d is installed: install PostgreSQL %d, "+
		"or move the data with pg_upgrade, or choose another state directory", cfg.DataDir, have, found[0].major, have)
}

func candidateDirs(ctx context.Context) []string {
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // the pattern is valid, so there is no error
	if pgConfig, err := exec.LookPath("pg_config"); err == nil {
		if out, err := runShort(ctx, pgConfig, "--bindir"); err == nil {
			dirs = append(dirs, strings.TrimSpace(out))
		}
	}
	if bin, err := exec.LookPath("postgres"); err == nil {
		if real, err := filepath.EvalSymlinks(bin); err == nil {
			dirs = append(dirs, filepath.Dir(real))
		}
	}
	return dirs
}

func binVersion(ctx context.Context, dir string) (int, error) {
	if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
		return 0, err
	}
	out, err := runShort(ctx, filepath.Join(dir, "postgres"), "-V")
	if err != nil {
		return 0, err
	}
	m := versionPattern.FindStringSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("unknown version %q", strings.TrimSpace(out))
	}
	return strconv.Atoi(m[1])
}

// dataVersion is the major version that a data directory belongs to, 0 when there is none yet.
func dataVersion(dir string) (int, error) {
	b, err := os.ReadFile(filepath.Join(dir, "PG_VERSION"))
	if err == nil {
		major, err := strconv.Atoi(strings.TrimSpace(string(b)))
		if err != nil {
			return 0, fmt.Errorf("%s/PG_VERSION is not a number: %w", dir, err)
		}
		return major, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return 0, fmt.Errorf("read version of data directory: %w", err)
	}
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("read data directory: %w", err)
	case len(entries) > 0:
		return 0, fmt.Errorf("%s is not empty and no PostgreSQL data directory: choose another state directory", dir)
	}
	return 0, nil
}

// runShort runs a command that only prints something.
func runShort(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second) // printing a version takes milliseconds, cold disks included
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return "", fmt.Errorf("run %s: %w", filepath.Base(name), err)
	}
	return string(out), nil
}
