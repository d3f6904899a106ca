package worker

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	// countPace is how long a count of the others' leases is good for: it bounds by how much a cap may be exceeded.
	countPace = time.Second
	// countShare stretches the pace for a slow count, as one that reads past the dead rows of a snapshot that somebody
	// holds open, so that counting takes a hundredth of a connection's time.
	countShare = 100
	// countBound bounds a count. Without one there is no cap for a while.
	countBound = 5 * time.Second
)

// Load is what a workspace has under way at other workers, and its cap, 0 for the service's.
type Load struct {
	Leases int
	Cap    int
}

// crowd knows how many live leases each workspace has: its own process's exactly, the others' as they were counted last.
// Nothing is kept that could leak: what a dead worker held is gone from the next count after its leases have expired.
type crowd struct {
	standard int
	asked    chan struct{} // a count is wanted

	mu     sync.Mutex
	own    map[uuid.UUID]int
	others map[uuid.UUID]Load
}

func newCrowd(standard int) *crowd {
	return &crowd{standard: standard, asked: make(chan struct{}, 1), own: map[uuid.UUID]int{}}
}

// admit takes a place for one more lease of the workspace unless it has as many as it may. A place is given back by
// leave.
func (c *crowd) admit(workspace uuid.UUID) bool {
	poke(c.asked)
	c.mu.Lock()
	defer c.mu.Unlock()
	load := c.others[workspace]
	most := load.Cap
	if most == 0 {
		most = c.standard
	}
	if most > 0 && c.own[workspace]+load.Leases >= most {
		return false
	}
	c.own[workspace]++
	return true
}

// enter takes a place whatever the cap is.
func (c *crowd) enter(workspace uuid.UUID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.own[workspace]++
}

func (c *crowd) leave(workspace uuid.UUID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.own[workspace]--; c.own[workspace] == 0 {
		delete(c.own, workspace)
	}
}

// live is how many leases each workspace has, as far as is known.
func (c *crowd) live() map[uuid.UUID]int {
	poke(c.asked)
	c.mu.Lock()
	defer c.mu.Unlock()
	all := maps.Clone(c.own)
	for workspace, load := range c.others {
		all[workspace] += load.Leases
	}
	return all
}

// counted takes what a count has found; nil forgets the others.
func (c *crowd) counted(others map[uuid.UUID]Load) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.others = others
}

// count counts the others' leases while somebody asks, at its pace.
func (w *Worker) count(ctx context.Context) {
	for {
		select {
		case <-w.crowd.asked:
		case <-ctx.Done():
			return
		}
		began := time.Now()
		limited, cancel := context.WithTimeout(ctx, countBound)
		others, err := w.deps.Claims.Leases(limited, w.cfg.Worker)
		cancel()
		if err != nil && ctx.Err() == nil {
			w.deps.Observer.Troubled(CountFailed)
		}
		w.crowd.counted(others)
		if !pause(ctx, max(countPace, countShare*time.Since(began))) {
			return
		}
	}
}

// poke signals without waiting; a signal that nobody has taken yet stands for this one too.
func poke(signal chan<- struct{}) {
	select {
	case signal <- struct{}{}:
	default:
	}
}
