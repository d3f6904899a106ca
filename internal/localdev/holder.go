package localdev

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// holderTries and holderPause are for the moment between taking the lock and writing who has it, and for those who
	// only look: both are over in microseconds.
	holderTries = 100
	holderPause = 20 * time.Millisecond
)

// ErrNotHeld says that no process holds the directory.
var ErrNotHeld = errors.New("nothing runs over this directory")

// Holder finds the process that holds the directory now. It is known by the lock, which ends with its process, and not by
// its number alone, which another program may have by then: what is returned is that process or none. ErrNotHeld when
// nobody has it.
func Holder(dir string) (*os.Process, error) {
	for range holderTries {
		pid, started, err := lockedBy(dir)
		if err != nil {
			return nil, err
		}
		process, err := os.FindProcess(pid) // on Linux a handle of the process, whoever gets its number later
		if err != nil {
			return nil, fmt.Errorf("find process %d: %w", pid, err)
		}
		// It had the lock before we had the handle. That it has it still, and that it began when the holder did, makes
		// the handle the holder's.
		again, _, err := lockedBy(dir)
		if err == nil && again == pid && (started == "" || startOf(pid) == started) {
			return process, nil
		}
		if err := process.Release(); err != nil {
			return nil, fmt.Errorf("release process %d: %w", pid, err)
		}
	}
	return nil, fmt.Errorf("%s: who holds it changes all the time: try again", dir)
}

// lockedBy reads the number of the process that has the lock, and when it began.
func lockedBy(dir string) (pid int, started string, err error) {
	for range holderTries {
		text, held, err := lookAtLock(dir)
		if err != nil || !held {
			return 0, "", errors.Join(err, notHeldUnless(err))
		}
		first, second, _ := strings.Cut(text, " ")
		if pid, err := strconv.Atoi(first); err == nil && pid > 0 {
			return pid, second, nil
		}
		<-time.After(holderPause)
	}
	return 0, "", fmt.Errorf("%s is locked by a process that doesn't say who it is", dir)
}

func notHeldUnless(err error) error {
	if err != nil {
		return nil
	}
	return ErrNotHeld
}

// lookAtLock tries a shared lock, which nobody is kept from by others who look.
func lookAtLock(dir string) (text string, held bool, err error) {
	f, err := os.Open(filepath.Join(dir, lockFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("open lock of %s: %w", dir, err)
	}
	defer f.Close()
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	switch {
	case err == nil:
		return "", false, nil
	case errors.Is(err, syscall.EWOULDBLOCK):
		return holder(f), true, nil
	}
	return "", false, fmt.Errorf("look at lock of %s: %w", dir, err)
}

// Released returns when no process holds the directory any more, or when ctx ends.
func Released(ctx context.Context, dir string) error {
	f, err := os.Open(filepath.Join(dir, lockFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open lock of %s: %w", dir, err)
	}
	free := make(chan error, 1)
	go func() { // without an answer it ends with the lock's holder, or with this process
		defer f.Close()
		free <- syscall.Flock(int(f.Fd()), syscall.LOCK_SH)
	}()
	select {
	case err := <-free:
		if err != nil {
			return fmt.Errorf("wait for lock of %s: %w", dir, err)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// startOf is when the process began, in the kernel's own measure, empty where there is no /proc or no such process.
func startOf(pid int) string {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return ""
	}
	// The name is in parentheses and may hold anything; the start is the twentieth field behind it.
	const start = 19
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) <= start {
		return ""
	}
	return fields[start]
}
