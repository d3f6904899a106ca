// Package property checks rapid's properties over the same cases in every run, so that the suite's verdict depends on the
// change alone. A seed given on the command line (-rapid.seed) explores other cases; `make model` and `make fuzz` do.
// It imports nothing of the project: the domain's tests use it.
package property

import (
	"flag"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// seed is what rapid begins with when the command line says nothing; any number but 0, which to rapid is a random one.
const seed = 20260801

// Check is rapid.Check with the seed of the command line, or else the suite's own.
func Check(t *testing.T, prop func(*rapid.T)) {
	t.Helper()
	settle(t)
	rapid.Check(t, prop)
}

// once: rapid reads its seed from the flags of the process.
var once sync.Once

func settle(t *testing.T) {
	t.Helper()
	once.Do(func() {
		if f := flag.Lookup("rapid.seed"); f.Value.String() == "0" {
			if err := f.Value.Set(strconv.Itoa(seed)); err != nil {
				t.Fatalf("set rapid's seed: %v", err)
			}
		}
	})
}
