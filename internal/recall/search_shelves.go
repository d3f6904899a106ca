package recall

import (
	"container/list"
	"hash/maphash"
	"sync"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/memory"
)

// projectionBytes bounds what a process remembers of projections: 50,000 records with vectors of 256 numbers, or one
// scope of 10,000 with 1,536.
const projectionBytes = 96 << 20

// scopeKey names a scope of a workspace.
type scopeKey struct {
	workspace uuid.UUID
	scope     memory.Scope
}

// shelves are the shelves of the scopes that were searched last, within a bound in bytes. A shelf that is dropped
// serves the searches that have it to their end.
type shelves struct {
	seed  maphash.Seed
	bound int

	mu    sync.Mutex
	held  map[scopeKey]*list.Element
	order *list.List // of *holding, the latest used first
	size  int
}

// holding is a shelf with what it was found to take.
type holding struct {
	key   scopeKey
	shelf *shelf
	bytes int
}

func newShelves(bound int) *shelves {
	return &shelves{seed: maphash.MakeSeed(), bound: bound, held: map[scopeKey]*list.Element{}, order: list.New()}
}

// of answers the scope's shelf, an empty one if there is none.
func (s *shelves) of(key scopeKey) *shelf {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, known := s.held[key]; known {
		s.order.MoveToFront(e)
		return e.Value.(*holding).shelf //nolint:forcetypeassert // nothing else is in the list
	}
	h := &holding{key: key, shelf: newShelf(s.seed), bytes: emptyShelf}
	s.held[key] = s.order.PushFront(h)
	s.size += h.bytes
	s.shrink()
	return h.shelf
}

// weigh looks at what the scope's shelf takes now, drops it when it is full, and the ones used least lately when all of
// them take too much.
func (s *shelves) weigh(key scopeKey, shelf *shelf) {
	bytes, full := shelf.weight()
	s.mu.Lock()
	defer s.mu.Unlock()
	e, known := s.held[key]
	if !known {
		return
	}
	h := e.Value.(*holding) //nolint:forcetypeassert // nothing else is in the list
	if h.shelf != shelf {
		return
	}
	s.size += bytes - h.bytes
	h.bytes = bytes
	if full {
		s.drop(e)
	}
	s.shrink()
}

// shrink drops the shelves used least lately until the rest is within the bound.
func (s *shelves) shrink() {
	for s.size > s.bound {
		s.drop(s.order.Back())
	}
}

func (s *shelves) drop(e *list.Element) {
	h := s.order.Remove(e).(*holding) //nolint:forcetypeassert // nothing else is in the list
	delete(s.held, h.key)
	s.size -= h.bytes
}
