package flame_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/holdfast-memory/holdfast/bench/flame"
)

// made is a profile of main → work → (read 30, write 50), and main alone 20.
func made(t *testing.T) *bytes.Buffer {
	t.Helper()
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}}}
	at := map[string]*profile.Location{}
	for i, name := range []string{"main", "work", "read<T>", "write"} {
		f := &profile.Function{ID: uint64(i + 1), Name: name}
		p.Function = append(p.Function, f)
		at[name] = &profile.Location{ID: uint64(i + 1), Line: []profile.Line{{Function: f}}}
		p.Location = append(p.Location, at[name])
	}
	for _, s := range []struct {
		cost  int64
		stack []string
	}{{30, []string{"read<T>", "work", "main"}}, {50, []string{"write", "work", "main"}}, {20, []string{"main"}}} {
		sample := &profile.Sample{Value: []int64{s.cost}}
		for _, name := range s.stack {
			sample.Location = append(sample.Location, at[name])
		}
		p.Sample = append(p.Sample, sample)
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return &b
}

func TestGraph(t *testing.T) {
	t.Parallel()
	g, err := flame.Read(made(t))
	if err != nil {
		t.Fatal(err)
	}
	var folded, drawn strings.Builder
	if err := g.Fold(&folded); err != nil {
		t.Fatal(err)
	}
	if want := "main;work;read<T> 30\nmain;work;write 50\nmain 20\n"; folded.String() != want {
		t.Errorf("folded:\n%s\nwant\n%s", &folded, want)
	}
	if err := g.Draw(&drawn, "a < b"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a &lt; b", "<title>work 80.0 %", "read&lt;T&gt; 30.0 %"} {
		if !strings.Contains(drawn.String(), want) {
			t.Errorf("%q is missing in the drawing", want)
		}
	}
	top := g.Top(2, func(name string) bool { return name != "main" })
	if len(top) != 2 || top[0].Name != "work" || top[0].Within != 0.8 || top[1].Name != "write" {
		t.Errorf("top: %+v", top)
	}
}
