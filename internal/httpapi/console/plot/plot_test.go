package plot

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
)

func TestPlots(t *testing.T) {
	t.Parallel()
	none, gap := []float64(nil), math.NaN()
	for name, drawn := range map[string]string{
		"no bars":    string(Bars("none", none, none)),
		"bars":       string(Bars("a & b", []float64{0, 5, 10}, []float64{0, 0, 2})),
		"no lines":   string(Lines("none", none, none)),
		"gaps":       string(Lines("gaps", []float64{gap, gap}, none)),
		"lines":      string(Lines(`"quoted" <label>`, []float64{1, gap, 3, 4}, []float64{2, gap, 5, 6})),
		"zeros":      string(Lines("zeros", []float64{0, 0}, []float64{0, 0})),
		"one number": string(Lines("one", []float64{3}, none)),
	} {
		reader := xml.NewDecoder(strings.NewReader(drawn))
		for {
			if _, err := reader.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s is no XML: %v in %s", name, err, drawn)
			}
		}
		for _, wrong := range []string{"NaN", "Inf", "style=", "<label>"} {
			if strings.Contains(drawn, wrong) {
				t.Errorf("%s has %s: %s", name, wrong, drawn)
			}
		}
	}
	if drawn := string(Lines("", []float64{1, gap, 3}, none)); strings.Count(drawn, "M") < 5 { // base, two surfaces, two strokes
		t.Errorf("a gap is drawn through: %s", drawn)
	}
	if drawn := string(Bars("", []float64{4}, []float64{4})); strings.Count(drawn, `height="34"`) != 2 {
		t.Errorf("two halves are not the same: %s", drawn)
	}
}
