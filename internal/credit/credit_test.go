package credit

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/testkit/property"
)

func TestPrices(t *testing.T) {
	t.Parallel()
	t.Run("AreThePublishedOnes", func(t *testing.T) {
		t.Parallel()
		p := DefaultPrices()
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		if p.Of(task.Infer, true) != 2 || p.Of(task.Add, true) != 1 {
			t.Fatalf("%+v", p)
		}
	})
	t.Run("UnpricedKindsAndUnmeteredWorkspacesPayNothing", func(t *testing.T) {
		t.Parallel()
		p := Prices{Infer: 7, Add: 3}
		for _, kind := range []task.Kind{task.Infer, task.Add, "memory_export"} {
			if got := p.Of(kind, false); got != 0 {
				t.Errorf("unmetered %s costs %d", kind, got)
			}
		}
		if got := p.Of("memory_export", true); got != 0 {
			t.Errorf("an unpriced kind costs %d", got)
		}
	})
	t.Run("OutOfRangeIsRefused", func(t *testing.T) {
		t.Parallel()
		for _, p := range []Prices{{Infer: -1}, {Add: -1}, {Infer: 1_000_001}, {Add: 1_000_001}} {
			if p.Validate() == nil {
				t.Errorf("%+v was let through", p)
			}
		}
		for _, p := range []Prices{{}, {Infer: 1_000_000, Add: 1_000_000}} {
			if err := p.Validate(); err != nil {
				t.Errorf("%+v: %v", p, err)
			}
		}
	})
	t.Run("NoPriceIsEverNegative", func(t *testing.T) {
		t.Parallel()
		property.Check(t, func(t *rapid.T) {
			p := Prices{rapid.Int64().Draw(t, "infer"), rapid.Int64().Draw(t, "add")}
			if p.Validate() != nil {
				return
			}
			kind := rapid.SampledFrom([]task.Kind{task.Infer, task.Add, "other"}).Draw(t, "kind")
			if p.Of(kind, rapid.Bool().Draw(t, "metered")) < 0 {
				t.Fatalf("%+v", p)
			}
		})
	})
}
