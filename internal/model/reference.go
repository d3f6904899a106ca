package model

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// readReference returns the whole number above 0 that a JSON number or a string of digits holds, else 0. A reference
// that cannot be read makes no answer invalid: the fact stands without it.
func readReference(value json.RawMessage) int {
	if text, ok := readString(value); ok {
		number, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || number < 0 {
			return 0
		}
		return number
	}
	var number float64
	if json.Unmarshal(value, &number) != nil || number < 1 || number > math.MaxInt32 || number != math.Trunc(number) {
		return 0
	}
	return int(number)
}

// refer keeps the references to known statements, each of them once, and drops all others.
func refer(found []Fact, known []Known) []Fact {
	free := make(map[int]bool, len(known))
	for _, k := range known {
		free[k.Number] = true
	}
	for i := range found {
		number := found[i].Supersedes
		if !free[number] {
			found[i].Supersedes = 0
			continue
		}
		free[number] = false
	}
	return found
}
