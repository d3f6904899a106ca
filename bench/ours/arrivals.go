package ours

import "sync"

// idLength is that of an id as text.
const idLength = 36

// arrivals tells the callers of a closed loop that their task has ended. A notice may come before its caller knows the
// id that it waits for.
type arrivals struct {
	mu      sync.Mutex
	waiting map[string]chan struct{}
	early   map[string]bool
}

// mostEarly bounds the notices that nobody waits for, as in a flood whose callers don't look at the end.
const mostEarly = 100_000

func newArrivals() *arrivals {
	return &arrivals{waiting: map[string]chan struct{}{}, early: map[string]bool{}}
}

func (a *arrivals) arrive(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ch, ok := a.waiting[id]; ok {
		close(ch)
		delete(a.waiting, id)
		return
	}
	if len(a.early) >= mostEarly {
		clear(a.early)
	}
	a.early[id] = true
}

// wait answers a channel that is closed at the task's end.
func (a *arrivals) wait(id string) <-chan struct{} {
	ch := make(chan struct{})
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.early[id] {
		delete(a.early, id)
		close(ch)
		return ch
	}
	a.waiting[id] = ch
	return ch
}

// forget ends a wait that failed.
func (a *arrivals) forget(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.waiting, id)
}
