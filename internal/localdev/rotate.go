package localdev

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
)

// RotatedLog is a log file that never grows beyond its bound: it is moved to .1, that to .2 and so on, and the oldest
// goes. One process writes it.
type RotatedLog struct {
	path string
	most int64
	keep int

	mu   sync.Mutex
	file *os.File
	size int64
}

// OpenRotatedLog opens or makes the file, for this user only, and goes on at its end. A file has at most that many bytes,
// and so many older ones stay beside it.
func OpenRotatedLog(path string, most int64, keep int) (*RotatedLog, error) {
	r := &RotatedLog{path: path, most: most, keep: keep}
	if err := r.open(); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *RotatedLog) open() error {
	f, err := os.OpenFile(r.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(fmt.Errorf("open log: %w", err), f.Close())
	}
	r.file, r.size = f, info.Size()
	return nil
}

// Write appends p, which is whole lines, in one piece. When the file can't be moved it goes on growing: a log that is too
// long is better than none.
func (r *RotatedLog) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.size > 0 && r.size+int64(len(p)) > r.most {
		if err := r.rotate(); err != nil && r.file == nil {
			return 0, err
		}
	}
	n, err := r.file.Write(p)
	r.size += int64(n)
	return n, err
}

func (r *RotatedLog) rotate() error {
	for i := r.keep - 1; i > 0; i-- {
		if err := os.Rename(aged(r.path, i), aged(r.path, i+1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("rotate log: %w", err)
		}
	}
	if err := os.Rename(r.path, aged(r.path, 1)); err != nil {
		return fmt.Errorf("rotate log: %w", err)
	}
	before := r.file
	if err := r.open(); err != nil {
		return err // what is open stays in use
	}
	return before.Close()
}

func aged(path string, i int) string { return fmt.Sprintf("%s.%d", path, i) }

// Close closes the file.
func (r *RotatedLog) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.file.Close()
}

// ShortenLog bounds a log that another process appends to: from that many bytes on its end goes to .1 and it begins anew.
// What is written in that moment may be lost. Without a file there is nothing to do.
func ShortenLog(path string, most int64) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() <= most {
		return nil
	}
	if err != nil {
		return fmt.Errorf("shorten log: %w", err)
	}
	from, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("shorten log: %w", err)
	}
	defer from.Close()
	to, err := os.OpenFile(aged(path, 1), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("shorten log: %w", err)
	}
	_, err = from.Seek(-most, io.SeekEnd)
	if err == nil {
		_, err = io.CopyN(to, from, most)
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return fmt.Errorf("shorten log: %w", err)
	}
	if err := from.Truncate(0); err != nil {
		return fmt.Errorf("shorten log: %w", err)
	}
	return nil
}
