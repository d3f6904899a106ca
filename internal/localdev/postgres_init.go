package localdev

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// initTimeout bounds initdb, which takes a second on an idle machine and synchronises some 40 MB at its end.
const initTimeout = 3 * time.Minute

// loadPassword reads the superuser's password, or makes one. The file is complete before a cluster that uses it is.
func loadPassword(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err == nil {
		password := strings.TrimSpace(string(b))
		if password == "" {
			return "", fmt.Errorf("%s is empty: put the database's password there, or remove the state directory", path)
		}
		return password, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read password: %w", err)
	}
	secret := make([]byte, 24)
	_, _ = rand.Read(secret) // never fails
	password := hex.EncodeToString(secret)
	if err := writeFileAtomic(path, password+"\n"); err != nil {
		return "", fmt.Errorf("write password: %w", err)
	}
	return password, nil
}

func writeFileAtomic(path, content string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // 0600
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), path)
}

// ensureCluster makes the data directory with the database in it, all or nothing: a killed initdb leaves only a
// directory under another name, which the next start removes.
func ensureCluster(ctx context.Context, cfg PostgresConfig, acct account, password string) error {
	if have, err := dataVersion(cfg.DataDir); err != nil || have != 0 {
		return errors.Join(err, ownIfThere(acct, cfg.DataDir, have))
	}
	half := cfg.DataDir + ".init"
	if err := os.RemoveAll(half); err != nil {
		return fmt.Errorf("remove unfinished data directory: %w", err)
	}
	if err := os.Mkdir(half, 0o700); err != nil {
		return fmt.Errorf("create data directory: %w", err)
	}
	if err := acct.own(half); err != nil {
		return err
	}
	if err := initCluster(ctx, cfg, acct, half, password); err != nil {
		return errors.Join(err, os.RemoveAll(half))
	}
	if err := os.Remove(cfg.DataDir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("replace empty data directory: %w", err)
	}
	if err := os.Rename(half, cfg.DataDir); err != nil {
		return fmt.Errorf("name data directory: %w", err)
	}
	return nil
}

func ownIfThere(acct account, dir string, version int) error {
	if version == 0 {
		return nil
	}
	return acct.own(dir)
}

func initCluster(ctx context.Context, cfg PostgresConfig, acct account, dir, password string) error {
	pwfile := dir + ".pw"
	if err := os.WriteFile(pwfile, []byte(password+"\n"), 0o600); err != nil {
		return fmt.Errorf("write password for initdb: %w", err)
	}
	defer os.Remove(pwfile)
	if err := acct.own(pwfile); err != nil {
		return err
	}
	args := []string{
		"-D", dir, "-U", superuser, "-E", "UTF8", "--locale", "C.UTF-8",
		"-A", "scram-sha-256", "--pwfile", pwfile, "--no-instructions",
	}
	if cfg.Fsync {
		args = append(args, "--data-checksums")
	} else {
		args = append(args, "--no-sync")
	}
	if err := runAs(ctx, acct, "", filepath.Join(cfg.BinDir, "initdb"), args...); err != nil {
		return err
	}
	// Single-user mode makes the database part of the same all-or-nothing step, and needs no client.
	single := []string{"--single", "-D", dir}
	if !cfg.Fsync {
		single = append(single, "-F")
	}
	return runAs(ctx, acct, "CREATE DATABASE "+databaseName+"\n", filepath.Join(cfg.BinDir, "postgres"), append(single, "postgres")...)
}

// runAs runs a command of PostgreSQL as the server's user to its end.
func runAs(ctx context.Context, acct account, stdin, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, initTimeout)
	defer cancel()
	var out bytes.Buffer
	cmd := serverCommand(acct, name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second // a grandchild may hold the pipe open
	child, err := StartChild(cmd, syscall.SIGKILL)
	if err != nil {
		return err
	}
	select {
	case <-child.Exited():
	case <-ctx.Done():
		child.KillGroup()
		<-child.Exited()
		return fmt.Errorf("run %s: %w", filepath.Base(name), ctx.Err())
	}
	if err := child.Err(); err != nil {
		return fmt.Errorf("run %s: %w: %s", filepath.Base(name), err, lastBytes(out.Bytes()))
	}
	return nil
}

func lastBytes(b []byte) string {
	const most = 1024 // the last few lines: the reason stands at the end
	return strings.TrimSpace(string(b[max(0, len(b)-most):]))
}

// serverCommand is a command with a fixed environment, so that neither secrets of this process nor PGDATA and the like
// reach the server.
func serverCommand(acct account, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8"}
	cmd.Dir = "/" // the present directory may be closed to the server's user
	cmd.SysProcAttr = acct.sysProcAttr()
	return cmd
}
