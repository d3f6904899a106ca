package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

const (
	// maxInteger is the largest magnitude up to which every integer has a float64 of its own.
	maxInteger = 1 << 53
	// maxIntegerDigits is how many digits it has.
	maxIntegerDigits = 16
	// maxNumber is the longest number in characters. A float64 needs at most 24; longer ones could exceed what
	// the database can keep.
	maxNumber = 100
	// maxExponent is beyond the exponents of all numbers within the range of a float64 that maxNumber lets through.
	maxExponent = 1_000
)

// decimal is the exact value of a number: its digits without zeros at either end, and the power of ten of the last
// one. Zero has no digits and no sign.
type decimal struct {
	negative bool
	digits   string
	power    int
}

// readDecimal reads a number of JSON; false if its exponent is absurd.
func readDecimal(text string) (decimal, bool) {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(mantissa, "-"), ".")
	all := strings.TrimLeft(whole+fraction, "0")
	digits := strings.TrimRight(all, "0")
	if digits == "" {
		return decimal{}, true
	}
	power := 0
	if exponent != "" {
		var err error
		if power, err = strconv.Atoi(exponent); err != nil || power > maxExponent || power < -maxExponent {
			return decimal{}, false
		}
	}
	return decimal{
		negative: strings.HasPrefix(mantissa, "-"), digits: digits, power: power - len(fraction) + len(all) - len(digits),
	}, true
}

func (d decimal) integral() bool { return d.power >= 0 }

// plain is an integral number without fraction and exponent.
func (d decimal) plain() string {
	switch {
	case d.digits == "":
		return "0"
	case d.negative:
		return "-" + d.digits + strings.Repeat("0", d.power)
	}
	return d.digits + strings.Repeat("0", d.power)
}

// tooLarge tells whether the number is an integer beyond ±2^53.
func (d decimal) tooLarge() bool {
	if !d.integral() {
		return false
	}
	if len(d.digits)+d.power > maxIntegerDigits {
		return true
	}
	n, err := strconv.ParseInt(d.plain(), 10, 64)
	return err != nil || n > maxInteger || n < -maxInteger
}

// String is the one spelling of the value.
func (d decimal) String() string {
	sign := ""
	if d.negative {
		sign = "-"
	}
	return sign + d.digits + "e" + strconv.Itoa(d.power)
}

// brokenNumber answers the rule that a number breaks, or nothing.
func brokenNumber(text string) string {
	if len(text) > maxNumber {
		return "numbers of at most 100 characters"
	}
	value, err := strconv.ParseFloat(text, 64)
	exact, ok := readDecimal(text)
	switch {
	case err != nil || !ok || math.IsInf(value, 0) || value == 0 && exact.digits != "":
		return "numbers within the range of a double"
	case exact.tooLarge():
		return "integers within 2^53"
	}
	return ""
}

// exactly rewrites the caller's own JSON so that its RFC 8785 form tells numbers apart by their exact value, where
// that form alone rounds them to float64: texts get the prefix "s" and numbers become texts with the prefix "n".
func exactly(raw json.RawMessage) (json.RawMessage, error) {
	if raw == nil {
		return nil, nil
	}
	reader := json.NewDecoder(bytes.NewReader(raw))
	reader.UseNumber()
	var value any
	if err := reader.Decode(&value); err != nil {
		return nil, fmt.Errorf("read caller's JSON: %w", unquoted{err})
	}
	exact, err := json.Marshal(exactValue(value))
	if err != nil {
		return nil, fmt.Errorf("encode caller's JSON: %w", unquoted{err})
	}
	return exact, nil
}

func exactValue(value any) any {
	switch v := value.(type) {
	case string:
		return "s" + v
	case json.Number:
		if d, ok := readDecimal(v.String()); ok {
			return "n" + d.String()
		}
		return "n" + v.String()
	case []any:
		for i := range v {
			v[i] = exactValue(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = exactValue(v[name])
		}
	}
	return value
}
