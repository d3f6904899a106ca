package recall

import (
	"hash/maphash"
	"math"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
)

const (
	// shelfSlots bounds what one shelf knows, gone records too: twice what one search looks at. A full shelf is cleared.
	shelfSlots = 2 * searchedRecords
	// emptyShelf is what a shelf takes in bytes before it knows anything, its maps and its name included, so that scopes
	// without records are bounded too.
	emptyShelf = 1 << 10
	// unread marks a slot of which nothing is known, incomparable one whose vector has another size than questions have.
	unread       = -1
	incomparable = -2
)

// shelf remembers the projections of one scope of one workspace, by column: each Ref has a slot, each term the slots that
// have it, and the vectors lie one behind the other. Content doesn't change under a Ref, so that nothing on it goes out
// of date, and only what a view names is looked at.
type shelf struct {
	seed maphash.Seed

	mu       sync.RWMutex
	slots    map[Ref]int32
	lengths  []int32 // of the slot's text in words
	postings map[uint64][]posting
	entries  int // of all postings
	size     int // of a vector
	places   []int32
	vectors  []float32
	norms    []float64 // of the vectors, in their order
	sketches []uint64
	about    []sketched
	last     *view
}

// posting is a record that has a term, so often.
type posting struct {
	slot  int32
	count int16
}

// view is the records of one search, newest first, on a shelf.
type view struct {
	refs  []Ref
	slots []int32
	order []int32 // by slot: its place in refs, or unread. Slots that came later are in no view before them.
}

func newShelf(seed maphash.Seed) *shelf {
	return &shelf{seed: seed, slots: map[Ref]int32{}, postings: map[uint64][]posting{}}
}

// view finds the slots of refs. Most searches see what the one before them saw.
func (s *shelf) view(refs []Ref) *view {
	s.mu.RLock()
	last := s.last
	s.mu.RUnlock()
	if last != nil && slices.Equal(last.refs, refs) {
		return last
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v := &view{refs: refs, slots: make([]int32, len(refs))}
	for i, ref := range refs {
		slot, known := s.slots[ref]
		if !known {
			slot = int32(len(s.lengths)) // #nosec G115 -- at most shelfSlots and one list
			s.slots[ref] = slot
			s.lengths, s.places = append(s.lengths, unread), append(s.places, unread)
		}
		v.slots[i] = slot
	}
	v.order = make([]int32, len(s.lengths))
	for i := range v.order {
		v.order[i] = unread
	}
	for i, slot := range v.slots {
		v.order[slot] = int32(i) // #nosec G115 -- at most searchedRecords
	}
	s.last = v
	return v
}

// document is a text's terms by their hashes. Two terms with one hash would change a rank, and are rarer than faults of
// memory.
type document struct {
	ref    Ref
	hashes []uint64
	counts []int16
	length int
}

func (s *shelf) document(ref Ref, terms memory.Terms) document {
	n := min(len(terms.Terms), len(terms.Counts))
	return document{ref, s.hashes(terms.Terms[:n]), slices.Clone(terms.Counts[:n]), terms.Length}
}

func (s *shelf) hashes(terms []string) []uint64 {
	hashes := make([]uint64, len(terms))
	for i, term := range terms {
		hashes[i] = maphash.String(s.seed, term)
	}
	return hashes
}

// withoutTerms answers the records of the view whose terms haven't been read.
func (s *shelf) withoutTerms(v *view) []uuid.UUID {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return v.lacking(s.lengths)
}

// withoutVectors does the same for vectors of the size, and forgets those of another one.
func (s *shelf) withoutVectors(v *view, size int) []uuid.UUID {
	s.mu.RLock()
	if s.size == size {
		defer s.mu.RUnlock()
		return v.lacking(s.places)
	}
	s.mu.RUnlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.size != size {
		s.size, s.vectors, s.norms, s.sketches, s.about = size, nil, nil, nil, nil
		for i := range s.places {
			s.places[i] = unread
		}
	}
	return v.lacking(s.places)
}

func (v *view) lacking(column []int32) []uuid.UUID {
	var ids []uuid.UUID
	for i, slot := range v.slots {
		if column[slot] == unread {
			ids = append(ids, v.refs[i].ID)
		}
	}
	return ids
}

// addTerms keeps what was read of records that have a slot and no terms yet.
func (s *shelf) addTerms(read []document) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range read {
		slot, known := s.slots[d.ref]
		if !known || s.lengths[slot] != unread {
			continue
		}
		s.lengths[slot] = int32(max(0, min(d.length, math.MaxInt32))) // #nosec G115 -- within an int32
		for i, hash := range d.hashes {
			have := s.postings[hash]
			if d.counts[i] <= 0 || len(have) > 0 && have[len(have)-1].slot == slot {
				continue // rows that nobody here has written
			}
			s.postings[hash] = append(have, posting{slot, d.counts[i]})
			s.entries++
		}
	}
}

// embedded is the vector of a record.
type embedded struct {
	ref    Ref
	vector model.Vector
}

// addVectors does the same with vectors.
func (s *shelf) addVectors(read []embedded, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.size != size {
		return // questions of two sizes: this one's vectors have been forgotten again
	}
	s.vectors, s.sketches = slices.Grow(s.vectors, size*len(read)), slices.Grow(s.sketches, sketchWords(size)*len(read))
	for _, e := range read {
		slot, known := s.slots[e.ref]
		switch {
		case !known || s.places[slot] != unread:
		case len(e.vector) != size:
			s.places[slot] = incomparable
		default:
			s.places[slot] = int32(len(s.norms)) // #nosec G115 -- at most one a slot
			s.vectors = append(s.vectors, e.vector...)
			s.norms = append(s.norms, norm(e.vector))
			var about sketched
			s.sketches, about = sketch(s.sketches, e.vector)
			s.about = append(s.about, about)
		}
	}
}

// weight is about what the shelf takes, in bytes; full says that it holds more than it should.
func (s *shelf) weight() (bytes int, full bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	bytes = emptyShelf + 120*len(s.lengths) + 12*s.entries + 80*len(s.postings) + 4*cap(s.vectors) + 8*cap(s.sketches) + 32*cap(s.norms)
	if s.last != nil {
		bytes += 32 * len(s.last.refs)
	}
	return bytes, len(s.lengths) > shelfSlots
}
