package recall

import (
	"fmt"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/testkit/property"
)

// TestProjections compares what is remembered under any order of use with what is stored.
func TestProjections(t *testing.T) {
	t.Parallel()
	property.Check(t, func(t *rapid.T) {
		const bound = 4000 // some ten entries
		p := newProjections(bound)
		for range rapid.IntRange(1, 30).Draw(t, "uses") {
			var refs []Ref
			for n := range rapid.IntRange(0, 8).Draw(t, "refs") {
				refs = append(refs, Ref{ID: uuid.UUID{14: byte(n), 15: byte(rapid.IntRange(0, 20).Draw(t, "id"))}, Content: uint64(rapid.IntRange(1, 2).Draw(t, "content"))})
			}
			entries := p.known(refs)
			err := p.addTerms(refs, entries, func(ids []uuid.UUID, each func(Ref, memory.Terms)) error {
				for _, ref := range refs {
					each(ref, memory.Terms{Terms: []string{fmt.Sprint(ref)}, Counts: []int16{1}, Length: int(ref.Content)})
				}
				return nil
			})
			if err == nil && rapid.Bool().Draw(t, "meaning") {
				err = p.addVectors(refs, entries, func(ids []uuid.UUID, each func(Ref, model.Vector)) error {
					for _, ref := range refs {
						if ref.ID[15]%2 == 0 { // the others have none yet
							each(ref, model.Vector{float32(ref.ID[15]), float32(ref.Content)})
						}
					}
					return nil
				})
			}
			if err != nil {
				t.Fatal(err)
			}
			for i, ref := range refs {
				if e := entries[i]; e.terms == nil || e.terms.length != int(ref.Content) ||
					e.vector != nil && (e.vector.vector[0] != float32(ref.ID[15]) || e.vector.vector[1] != float32(ref.Content)) {
					t.Fatalf("%v has %+v", ref, e)
				}
				if hits := p.corpusOf(refs[i:i+1], entries[i:i+1], []string{fmt.Sprint(ref)}).Hits; len(hits) != 1 {
					t.Fatalf("%v isn't found by its term", ref)
				}
			}
			size := 0
			for _, e := range p.young {
				size += e.bytes()
			}
			if size != p.size || size > bound/2 {
				t.Fatalf("%d bytes, counted %d", size, p.size)
			}
		}
	})
}
