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
)

// lockFile is the file inside a locked directory; it holds the owner's process id.
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
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w by process %s: stop it or choose another directory", path, ErrLocked, holder(f))
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
	_, err := f.WriteAt([]byte(fmt.Sprintf("%d\n", os.Getpid())), 0)
	return err
}

// holder reads the process id from a lock file; it is "(unknown)" in the moment between locking and writing.
func holder(f *os.File) string {
	b, err := io.ReadAll(io.LimitReader(f, 32))
	pid := strings.TrimSpace(string(b))
	if err != nil || pid == "" {
		return "(unknown)"
	}
	return pid
}
