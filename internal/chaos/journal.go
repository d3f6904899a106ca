package chaos

import (
	"fmt"
	"os"
	"sync"
	"time"
)

// journal is the log of faults: when each began and ended, and what it did.
type journal struct {
	began time.Time

	mu     sync.Mutex
	file   *os.File
	counts map[string]int
}

func newJournal(path string) (*journal, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open fault log: %w", err)
	}
	return &journal{began: time.Now(), file: file, counts: map[string]int{}}, nil
}

// say writes one line with the time of day and since the start.
func (j *journal) say(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := time.Now()
	_, _ = fmt.Fprintf(j.file, "%s %8.3f %s\n", now.UTC().Format("15:04:05.000"), now.Sub(j.began).Seconds(), fmt.Sprintf(format, args...))
}

// count adds one to what struck.
func (j *journal) count(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.counts[name]++
}

// faults is how many have struck.
func (j *journal) faults() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return sum(j.counts)
}

func (j *journal) close() error { return j.file.Close() }
