package rig

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const tick = 100 // clock ticks a second of /proc, fixed in Linux's user interface

// Quiet and Loud are how much CPU of others, in cores, a measurement waits for and is not trusted with.
const (
	Quiet = 0.12
	Loud  = 0.18
)

// Noise watches how much CPU processes took that this one did not start.
type Noise struct {
	at          time.Time
	busy, owned float64
}

// Listen begins to watch.
func Listen() (Noise, error) {
	busy, err := busySeconds()
	if err != nil {
		return Noise{}, err
	}
	return Noise{time.Now(), busy, ownedSeconds()}, nil
}

// Cores is what others have used since then, in cores.
func (n Noise) Cores() (float64, error) {
	now, err := Listen()
	if err != nil {
		return 0, err
	}
	wall := now.at.Sub(n.at).Seconds()
	if wall <= 0 {
		return 0, nil
	}
	return max(0, (now.busy-n.busy-(now.owned-n.owned))/wall), nil
}

func busySeconds() (float64, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("read CPU times: %w", err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	fields := strings.Fields(line) // cpu user nice system idle iowait irq softirq steal …
	var sum float64
	for i, text := range fields {
		if i == 0 || i == 4 || i == 5 || i > 8 {
			continue
		}
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return 0, fmt.Errorf("read CPU times: %w", err)
		}
		sum += n
	}
	return sum / tick, nil
}

// ownedSeconds sums this process, all below it, and what of them has ended.
func ownedSeconds() float64 {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	type process struct{ parent, seconds float64 }
	all := make(map[float64]process, len(stats))
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, rest, found := strings.Cut(string(b), ") ")
		if !found {
			continue
		}
		f := strings.Fields(rest) // state ppid …; utime stime cutime cstime are the 12th to 15th from here
		pid, _ := strconv.ParseFloat(filepath.Base(filepath.Dir(path)), 64)
		p := process{}
		p.parent, _ = strconv.ParseFloat(f[1], 64)
		for _, text := range f[11:15] {
			n, _ := strconv.ParseFloat(text, 64)
			p.seconds += n / tick
		}
		all[pid] = p
	}
	self := float64(os.Getpid())
	var sum float64
	for pid, p := range all {
		for at, depth := pid, 0; at > 1 && depth < 20; at, depth = all[at].parent, depth+1 { // a tree of ours is three deep
			if at == self {
				sum += p.seconds
				break
			}
		}
	}
	return sum
}
