// Package plot draws small plots as SVG, on the server: bars for counts and lines for times. What is drawn is numbers; the
// style is the page's. It belongs to the httpapi family and imports nothing of Holdfast.
package plot

import (
	"html/template"
	"math"
	"strconv"
	"strings"
)

const (
	width  = 600
	height = 72
	// headroom keeps the highest point off the edge.
	headroom = 4
)

// Bars draws counts beside each other, with those of over on top of them. The label says in words what is drawn.
func Bars(label string, counts, over []float64) template.HTML {
	high := 1.0
	for i, n := range counts {
		high = max(high, n+at(over, i))
	}
	var b strings.Builder
	begin(&b, label)
	each := float64(width) / float64(max(1, len(counts)))
	for i, n := range counts {
		bar(&b, "bar", each, i, 0, n, high)
		bar(&b, "bar bad", each, i, n, at(over, i), high)
	}
	return end(&b)
}

func at(values []float64, i int) float64 {
	if i < len(values) {
		return values[i]
	}
	return 0
}

func bar(b *strings.Builder, class string, each float64, i int, from, n, high float64) {
	if n <= 0 {
		return
	}
	tall := max(1.5, n/high*(height-headroom))
	b.WriteString(`<rect class="` + class + `" x="` + number(float64(i)*each+each*.12) + `" y="` +
		number(height-from/high*(height-headroom)-tall) + `" width="` + number(each*.76) + `" height="` + number(tall) + `"/>`)
}

// Lines draws the values with a surface below them, and second as a line of its own. NaN is a gap.
func Lines(label string, values, second []float64) template.HTML {
	high := 0.0
	for _, all := range [][]float64{values, second} {
		for _, n := range all {
			if !math.IsNaN(n) {
				high = max(high, n)
			}
		}
	}
	if high == 0 {
		high = 1
	}
	var b strings.Builder
	begin(&b, label)
	if area := path(values, high, true); area != "" {
		b.WriteString(`<path class="area" d="` + area + `"/>`)
	}
	for _, line := range []struct {
		class  string
		values []float64
	}{{"line second", second}, {"line", values}} {
		if d := path(line.values, high, false); d != "" {
			b.WriteString(`<path class="` + line.class + `" d="` + d + `"/>`)
		}
	}
	return end(&b)
}

// path goes through the values, each stretch without a gap on its own, closed at the base for a surface.
func path(values []float64, high float64, closed bool) string {
	var b strings.Builder
	step := float64(width) / float64(max(1, len(values)-1))
	x := func(i int) string { return number(float64(i) * step) }
	for i := 0; i < len(values); {
		if math.IsNaN(values[i]) {
			i++
			continue
		}
		first := i
		for ; i < len(values) && !math.IsNaN(values[i]); i++ {
			y := number(height - values[i]/high*(height-headroom))
			switch {
			case i > first:
				b.WriteString("L" + x(i) + " " + y)
			case closed:
				b.WriteString("M" + x(i) + " " + number(height) + "L" + x(i) + " " + y)
			default:
				b.WriteString("M" + x(i) + " " + y)
			}
		}
		switch {
		case closed:
			b.WriteString("L" + x(i-1) + " " + number(height) + "Z")
		case i-first == 1: // a point of its own is a short stroke
			b.WriteString("h5")
		}
	}
	return b.String()
}

func begin(b *strings.Builder, label string) {
	b.WriteString(`<svg class="plot" viewBox="0 0 ` + strconv.Itoa(width) + ` ` + strconv.Itoa(height) +
		`" preserveAspectRatio="none" role="img" aria-label="` + template.HTMLEscapeString(label) + `"><path class="base" d="M0 ` +
		strconv.Itoa(height) + `H` + strconv.Itoa(width) + `"/>`)
}

func end(b *strings.Builder) template.HTML {
	b.WriteString("</svg>")
	return template.HTML(b.String()) // #nosec G203 -- numbers, classes of this file and an escaped label
}

func number(n float64) string { return strconv.FormatFloat(math.Round(n*10)/10, 'f', -1, 64) }
