// Package flame turns a CPU profile into a flame graph that any browser shows without a network, and into folded
// stacks, one a line.
//
// It imports nothing of Holdfast.
package flame

import (
	"fmt"
	"html"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

// node is a function in its place on the stack, with the time spent in it and below.
type node struct {
	name  string
	total int64
	below map[string]*node
}

func (n *node) child(name string) *node {
	if n.below == nil {
		n.below = map[string]*node{}
	}
	c := n.below[name]
	if c == nil {
		c = &node{name: name}
		n.below[name] = c
	}
	return c
}

// Graph is a profile's stacks as a tree.
type Graph struct{ root node }

// Read reads a profile in pprof's format and takes the last of its values, which is CPU time in a CPU profile.
func Read(r io.Reader) (*Graph, error) {
	p, err := profile.Parse(r)
	if err != nil {
		return nil, fmt.Errorf("read profile: %w", err)
	}
	g := &Graph{root: node{name: "all"}}
	for _, s := range p.Sample {
		cost := s.Value[len(s.Value)-1]
		at := &g.root
		at.total += cost
		for i := len(s.Location) - 1; i >= 0; i-- {
			lines := s.Location[i].Line
			for j := len(lines) - 1; j >= 0; j-- { // inlined calls, the outermost last
				if lines[j].Function == nil {
					continue
				}
				at = at.child(lines[j].Function.Name)
				at.total += cost
			}
		}
	}
	return g, nil
}

// Fold writes the stacks, one a line with the cost of its last function alone.
func (g *Graph) Fold(w io.Writer) error { return fold(w, &g.root, nil) }

func fold(w io.Writer, n *node, above []string) error {
	own := n.total
	stack := append(slices.Clone(above), n.name)
	for _, name := range slices.Sorted(maps.Keys(n.below)) {
		own -= n.below[name].total
		if err := fold(w, n.below[name], stack); err != nil {
			return err
		}
	}
	if own <= 0 || len(above) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "%s %d\n", strings.Join(stack[1:], ";"), own)
	return err
}

const (
	width   = 1600.0
	high    = 17
	thin    = 0.4 // pixels, below which a box is left out
	letters = 6.2 // pixels that a letter of the font takes
)

// Draw writes the graph as one SVG: the wider a box, the more time; a box's title says how much.
func (g *Graph) Draw(w io.Writer, title string) error {
	levels := depth(&g.root)
	tall := (levels + 2) * high
	if _, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" font-family="monospace" font-size="11">
<rect width="100%%" height="100%%" fill="#fffdf5"/><text x="8" y="13">%s</text>
`, width, tall, html.EscapeString(title)); err != nil {
		return err
	}
	if err := g.draw(w, &g.root, 0, 0, tall); err != nil {
		return err
	}
	_, err := io.WriteString(w, "</svg>\n")
	return err
}

func (g *Graph) draw(w io.Writer, n *node, left float64, level, tall int) error {
	if g.root.total == 0 {
		return nil
	}
	wide := width * float64(n.total) / float64(g.root.total)
	if wide < thin {
		return nil
	}
	top := tall - (level+1)*high
	share := 100 * float64(n.total) / float64(g.root.total)
	label := n.name[strings.LastIndex(n.name, "/")+1:]
	if room := int(wide / letters); room < len(label) {
		label = label[:max(0, room-1)]
	}
	hue := 20 + int(sum(n.name)%35)
	_, err := fmt.Fprintf(w, `<g><title>%s %.1f %%</title><rect x="%.1f" y="%d" width="%.1f" height="%d" fill="hsl(%d,85%%,68%%)" stroke="#fffdf5"/><text x="%.1f" y="%d">%s</text></g>
`, html.EscapeString(n.name), share, left, top, wide, high-1, hue, left+2, top+12, html.EscapeString(label))
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(n.below)) {
		c := n.below[name]
		if err := g.draw(w, c, left, level+1, tall); err != nil {
			return err
		}
		left += width * float64(c.total) / float64(g.root.total)
	}
	return nil
}

func depth(n *node) int {
	most := 0
	for _, c := range n.below {
		most = max(most, depth(c))
	}
	return most + 1
}

func sum(s string) (n uint32) {
	for _, b := range []byte(s) {
		n = n*31 + uint32(b)
	}
	return n
}

// Cost is a function's share of all time.
type Cost struct {
	Name   string
	Within float64 // in it and below, 0 to 1
}

// Top are the functions in whose subtrees most time goes, by a test of their names; each stack counts a function once.
func (g *Graph) Top(n int, keep func(name string) bool) []Cost {
	within := map[string]int64{}
	var walk func(at *node, seen map[string]bool)
	walk = func(at *node, seen map[string]bool) {
		first := !seen[at.name]
		if first {
			within[at.name] += at.total
			seen[at.name] = true
		}
		for _, c := range at.below {
			walk(c, seen)
		}
		if first {
			delete(seen, at.name)
		}
	}
	walk(&g.root, map[string]bool{})
	var costs []Cost
	for name, total := range within {
		if name != g.root.name && keep(name) {
			costs = append(costs, Cost{name, float64(total) / float64(max(1, g.root.total))})
		}
	}
	slices.SortFunc(costs, func(a, b Cost) int {
		if a.Within != b.Within {
			if a.Within > b.Within {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	return costs[:min(n, len(costs))]
}
