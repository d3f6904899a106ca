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

// projectionBytes bounds what a process remembers of projections: 50,000 records with vectors of 256 numbers, or one
// scope of 10,000 with 1,536.
const projectionBytes = 96 << 20

// projected is what has been read of one Ref, nil for what hasn't.
type projected struct {
	terms  *document
	vector *point
}

// projections remembers what was read of projections. Content doesn't change under a Ref, so that nothing in it goes
// out of date, and nothing is found in it that the canonical records didn't name first. Two generations bound it:
// when the young one is full the old one is forgotten, with all that wasn't used meanwhile.
type projections struct {
	seed  maphash.Seed
	bound int

	mu    sync.Mutex
	young map[Ref]projected
	old   map[Ref]projected
	size  int // of the young ones, in bytes
}

func newProjections(bound int) *projections {
	return &projections{seed: maphash.MakeSeed(), bound: bound, young: map[Ref]projected{}}
}

// document is a text's terms by their hashes, in the order of the hashes. Two terms with one hash would change a
// rank, and are rarer than faults of memory.
type document struct {
	hashes []uint64
	counts []int16
	length int
}

func (p *projections) document(terms memory.Terms) *document {
	order := make([]int, min(len(terms.Terms), len(terms.Counts)))
	hashes := make([]uint64, len(order))
	for i := range order {
		order[i], hashes[i] = i, maphash.String(p.seed, terms.Terms[i])
	}
	slices.SortFunc(order, func(a, b int) int {
		switch {
		case hashes[a] < hashes[b]:
			return -1
		case hashes[a] > hashes[b]:
			return 1
		}
		return 0
	})
	d := &document{hashes: make([]uint64, len(order)), counts: make([]int16, len(order)), length: terms.Length}
	for i, place := range order {
		d.hashes[i], d.counts[i] = hashes[place], terms.Counts[place]
	}
	return d
}

// point is a vector with its length.
type point struct {
	vector model.Vector
	length float64
}

func pointOf(v model.Vector) *point { return &point{vector: v, length: math.Sqrt(dot(v, v))} }

// bytes is about what an entry takes, with its place in a map.
func (e projected) bytes() int {
	n := 100
	if e.terms != nil {
		n += 80 + 10*len(e.terms.hashes)
	}
	if e.vector != nil {
		n += 60 + 4*len(e.vector.vector)
	}
	return n
}

// known answers what is remembered of refs, in their order.
func (p *projections) known(refs []Ref) []projected {
	entries := make([]projected, len(refs))
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, ref := range refs {
		e, young := p.young[ref]
		if !young {
			var old bool
			if e, old = p.old[ref]; old {
				p.put(ref, e)
			}
		}
		entries[i] = e
	}
	return entries
}

// addTerms completes entries with the documents that aren't remembered, as far as there are any.
func (p *projections) addTerms(refs []Ref, entries []projected, read func(ids []uuid.UUID, each func(Ref, memory.Terms)) error) error {
	missing := places(entries, func(e projected) bool { return e.terms == nil })
	if len(missing) == 0 {
		return nil
	}
	fresh := make(map[Ref]*document, len(missing))
	err := read(idsOf(refs, missing), func(ref Ref, terms memory.Terms) { fresh[ref] = p.document(terms) })
	if err != nil {
		return err
	}
	for _, place := range missing {
		entries[place].terms = fresh[refs[place]]
	}
	p.keep(refs, entries, missing)
	return nil
}

// addVectors completes entries with the points that aren't remembered, as far as there are any.
func (p *projections) addVectors(refs []Ref, entries []projected, read func(ids []uuid.UUID, each func(Ref, model.Vector)) error) error {
	missing := places(entries, func(e projected) bool { return e.vector == nil })
	if len(missing) == 0 {
		return nil
	}
	fresh := make(map[Ref]*point, len(missing))
	err := read(idsOf(refs, missing), func(ref Ref, vector model.Vector) { fresh[ref] = pointOf(vector) })
	if err != nil {
		return err
	}
	for _, place := range missing {
		entries[place].vector = fresh[refs[place]]
	}
	p.keep(refs, entries, missing)
	return nil
}

// places answers where entries lack something.
func places(entries []projected, lack func(projected) bool) []int {
	var found []int
	for i, e := range entries {
		if lack(e) {
			found = append(found, i)
		}
	}
	return found
}

// keep remembers what was read at these places.
func (p *projections) keep(refs []Ref, entries []projected, read []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, place := range read {
		e, had := entries[place], p.young[refs[place]]
		if e.terms == nil {
			e.terms = had.terms
		}
		if e.vector == nil {
			e.vector = had.vector
		}
		if e.terms != nil || e.vector != nil {
			p.put(refs[place], e)
		}
	}
}

// put writes one entry and lets the generations change when the young one is full.
func (p *projections) put(ref Ref, e projected) {
	if had, known := p.young[ref]; known {
		p.size -= had.bytes()
	}
	p.young[ref] = e
	p.size += e.bytes()
	if p.size > p.bound/2 {
		p.old, p.young, p.size = p.young, map[Ref]projected{}, 0
	}
}

func idsOf(refs []Ref, places []int) []uuid.UUID {
	ids := make([]uuid.UUID, len(places))
	for i, place := range places {
		ids[i] = refs[place].ID
	}
	return ids
}
