package worker

import (
	"context"
	"slices"
	"sync"
)

// slots hands out the right to run tasks. Who looks for tasks takes slots first, so that nothing is found that
// cannot run, and returns what it didn't need. Waiting seats are served in order; one run may have the process
// to itself.
type slots struct {
	mu    sync.Mutex
	total int
	used  int
	queue []*seat
	// alone is set while a run wants or has the process to itself, and closed once it has.
	alone   chan struct{}
	granted bool
}

// seat is one place where slots are waited for, used by one goroutine at a time.
type seat struct {
	ready chan int
	// limit is how many slots are wanted, spare how many are left for others if there are enough.
	limit, spare int
	// polite seats let others pass.
	polite bool
	passed int
}

// passes is how often a polite seat lets another one pass: enough to come second, too few to starve.
const passes = 4

func newSlots(total int) *slots { return &slots{total: total} }

func newSeat(spare int, polite bool) *seat {
	return &seat{ready: make(chan int, 1), spare: spare, polite: polite}
}

// take waits for at least one slot and returns how many it got, at most limit.
func (s *slots) take(ctx context.Context, who *seat, limit int) (int, error) {
	s.mu.Lock()
	who.limit = limit
	s.queue = append(s.queue, who)
	s.serve()
	s.mu.Unlock()
	select {
	case n := <-who.ready:
		return n, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	if i := slices.Index(s.queue, who); i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
		s.mu.Unlock()
		return 0, ctx.Err()
	}
	s.mu.Unlock()
	return <-who.ready, nil // handed over while the context ended; a slot is never lost
}

// give returns n slots.
func (s *slots) give(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= n
	s.serve()
}

// free tells how many slots nobody has.
func (s *slots) free() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total - s.used
}

// wanted tells whether somebody waits to be apart.
func (s *slots) wanted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.alone != nil && !s.granted
}

// apart waits until the caller's slot is the only one in use and keeps it so until together. One caller at a
// time may ask.
func (s *slots) apart(ctx context.Context) error {
	s.mu.Lock()
	alone := make(chan struct{})
	s.alone, s.granted = alone, false
	s.serve()
	s.mu.Unlock()
	select {
	case <-alone:
		return nil
	case <-ctx.Done():
		s.together()
		return ctx.Err()
	}
}

// together ends what apart began.
func (s *slots) together() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alone = nil
	s.serve()
}

// serve hands free slots to those who wait. The caller holds the lock.
func (s *slots) serve() {
	if s.alone != nil {
		if s.used == 1 && !s.granted {
			s.granted = true
			close(s.alone)
		}
		return
	}
	for s.used < s.total && len(s.queue) > 0 {
		who := s.next()
		n := min(who.limit, max(1, s.total-s.used-who.spare))
		s.used += n
		who.ready <- n
	}
}

// next takes the seat to be served out of the queue: the first, unless it is polite and another one waits.
func (s *slots) next() *seat {
	at := 0
	if first := s.queue[0]; first.polite && first.passed < passes {
		if i := slices.IndexFunc(s.queue, func(w *seat) bool { return !w.polite }); i > 0 {
			first.passed++
			at = i
		}
	}
	who := s.queue[at]
	s.queue = slices.Delete(s.queue, at, at+1)
	if at == 0 {
		who.passed = 0
	}
	return who
}
