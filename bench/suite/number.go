package suite

import "strings"

// caseOf is the case of a number's name: "path_64.p99" is the number p99 of the case path_64.
func caseOf(name string) string {
	c, _, _ := strings.Cut(name, ".")
	return c
}

func (r *run) number(name string, round int) (float64, bool) {
	c, which, found := strings.Cut(name, ".")
	if !found {
		which = value
	}
	if round >= len(r.samples[c]) || r.samples[c][round] == nil {
		return 0, false
	}
	x, ok := r.samples[c][round][which]
	return x, ok
}
