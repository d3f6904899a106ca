package rig

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Machine describes what was measured on.
type Machine struct {
	CPU       string  `json:"cpu"`
	Cores     int     `json:"cores"`
	MemoryGiB float64 `json:"memory_gib"`
	Kernel    string  `json:"kernel"`
	Postgres  string  `json:"postgres"`
	Go        string  `json:"go"`
	FlushUS   float64 `json:"flush_us"` // the median of 200 writes of 8 kB, each with fdatasync, in the servers' directory
}

// Machine looks at it.
func (r *Rig) Machine(ctx context.Context) (Machine, error) {
	m := Machine{CPU: firstOf("/proc/cpuinfo", "model name"), Cores: runtime.NumCPU(), Go: runtime.Version()}
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err != nil {
		return m, fmt.Errorf("look at memory: %w", err)
	}
	m.MemoryGiB = float64(info.Totalram) * float64(info.Unit) / (1 << 30)
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(b))
	}
	if err := r.admin.QueryRow(ctx, "SHOW server_version").Scan(&m.Postgres); err != nil {
		return m, fmt.Errorf("ask PostgreSQL's version: %w", err)
	}
	var err error
	m.FlushUS, err = flush(r.dir)
	return m, err
}

func firstOf(path, name string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(b)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func flush(dir string) (us float64, err error) {
	f, err := os.CreateTemp(dir, "flush")
	if err != nil {
		return 0, fmt.Errorf("measure a flush: %w", err)
	}
	defer func() {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}()
	block := make([]byte, 8192)
	times := make([]time.Duration, 200)
	for i := range times {
		began := time.Now()
		if _, err := f.WriteAt(block, int64(i%16)*8192); err != nil {
			return 0, fmt.Errorf("measure a flush: %w", err)
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			return 0, fmt.Errorf("measure a flush: %w", err)
		}
		times[i] = time.Since(began)
	}
	return float64(median(times)) / float64(time.Microsecond), nil
}

// FreeBytes is how much a directory's disk can still take.
func FreeBytes(dir string) (int64, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return 0, fmt.Errorf("look at %s: %w", dir, err)
	}
	return int64(fs.Bavail) * fs.Bsize, nil
}
