package localdev

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// lockFile is the file inside a locked directory; it holds the owner's process id and when that process began.
const lockFile = "lock"

// ErrLocked is wrapped by LockDir's error when another process holds the directory.
var ErrLocked = errors.New("directory is in use")

// LockDir takes an existing directory for this process until release is called or the process ends. It never waits:
// when another holder has it, the error wraps ErrLocked and names the holder's process id. release may be called twice.
func LockDir(path string) (release func() error, err error) {
	f, err := os.OpenFile(filepath.Join(path, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock of %s: %w", path, err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	for range holderTries { // who only looks is gone in a moment
		if !errors.Is(err, syscall.EWOULDBLOCK) || holder(f) != unknownHolder {
			break
		}
		<-time.After(holderPause)
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err != nil {
		defer f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w by process %s: stop it or choose another directory", path, ErrLocked, holderPID(f))
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := writeHolder(f); err != nil {
		return nil, errors.Join(fmt.Errorf("write lock of %s: %w", path, err), f.Close())
	}
	// The file stays: removing it would let two processes lock two files of one name.
	return sync.OnceValue(func() error {
		return errors.Join(f.Truncate(0), f.Close())
	}), nil
}

func writeHolder(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(fmt.Sprintf("%d %s\n", os.Getpid(), startOf(os.Getpid()))), 0)
	return err
}

// unknownHolder is what a lock file says in the moment between locking and writing.
const unknownHolder = "(unknown)"

// holder reads process id and start from a lock file.
func holder(f *os.File) string {
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 64))
	text := strings.TrimSpace(string(b))
	if err != nil || text == "" {
		return unknownHolder
	}
	return text
}

func holderPID(f *os.File) string {
	pid, _, _ := strings.Cut(holder(f), " ")
	return pid
}
