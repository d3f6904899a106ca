package command

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-memory/holdfast/internal/fault"
)

const (
	// MaxBody is the greatest size of a request body in bytes. It bounds what one command costs in memory and
	// what a model is asked to read at once.
	MaxBody = 250_000
	// maxDepth is how deep arrays and objects may nest. The contract needs 3; the rest is for metadata.
	maxDepth = 32
	// maxInteger is the largest magnitude up to which every integer has a float64 of its own.
	maxInteger = 1 << 53
	// maxNumber is the longest number in characters. A float64 needs at most 24; longer ones could exceed what
	// the database can keep.
	maxNumber = 100
)

// CheckJSON tells whether raw is one strict JSON value: UTF-8 without a byte order mark, no duplicate members,
// no trailing data, no lone surrogates, no NUL in texts or names, integers within ±2^53, other numbers within
// the range of float64, at most 32 levels deep. Otherwise it answers a fault INVALID_BODY with a pointer that
// holds names of the contract only, and the broken rule.
func CheckJSON(raw []byte) error {
	if !utf8.Valid(raw) {
		return fault.At(fault.InvalidBody, "", "valid UTF-8")
	}
	reader := jsontext.NewDecoder(bytes.NewReader(raw))
	for {
		token, err := reader.ReadToken()
		if err != nil {
			return fault.At(fault.InvalidBody, place(reader), brokenSyntax(raw, err))
		}
		if rule := brokenValue(token, reader.StackDepth()); rule != "" {
			return fault.At(fault.InvalidBody, place(reader), rule)
		}
		if reader.StackDepth() == 0 {
			return checkEnd(raw[reader.InputOffset():])
		}
	}
}

// checkEnd refuses anything but white space after the value.
func checkEnd(rest []byte) error {
	if len(bytes.Trim(rest, " \t\r\n")) > 0 {
		return fault.At(fault.InvalidBody, "", "one JSON value and nothing after it")
	}
	return nil
}

func brokenSyntax(raw []byte, err error) string {
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return "no member twice"
	}
	// The decoder has no error of its own for a lone surrogate: it is what is wrong if nothing else is.
	if jsontext.Value(raw).IsValid(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)) {
		return "no lone surrogates"
	}
	return "valid JSON"
}

// brokenValue answers the rule that token breaks, or nothing.
func brokenValue(token jsontext.Token, depth int) string {
	switch token.Kind() {
	case jsontext.KindString:
		if strings.ContainsRune(token.String(), 0) {
			return "no NUL"
		}
	case jsontext.KindNumber:
		return brokenNumber(token.String())
	case jsontext.KindBeginObject, jsontext.KindBeginArray:
		if depth > maxDepth {
			return "at most 32 levels deep"
		}
	default:
	}
	return ""
}

func brokenNumber(text string) string {
	if len(text) > maxNumber {
		return "numbers of at most 100 characters"
	}
	if !strings.ContainsAny(text, ".eE") {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n > maxInteger || n < -maxInteger {
			return "integers within 2^53"
		}
		return ""
	}
	value, err := strconv.ParseFloat(text, 64)
	mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
	vanished := value == 0 && strings.ContainsAny(mantissa, "123456789")
	if err != nil || math.IsInf(value, 0) || vanished {
		return "numbers within the range of a double"
	}
	return ""
}

// place returns where the reader stands, as a pointer without the caller's own names.
func place(reader *jsontext.Decoder) string {
	var pointer strings.Builder
	level := 1
	for name := range reader.StackPointer().Tokens() {
		if level > reader.StackDepth() {
			break
		}
		kind, _ := reader.StackIndex(level)
		if kind != jsontext.KindBeginArray && !contractName(name) {
			break
		}
		pointer.WriteByte('/')
		pointer.WriteString(name)
		if callersOwn(name) {
			break
		}
		level++
	}
	return pointer.String()
}

// SafePointer cuts an RFC 6901 pointer before the first name that isn't the contract's, so that it can be shown
// and logged: names of unknown members and of metadata are the caller's text.
func SafePointer(pointer []string) string {
	var safe strings.Builder
	for i, name := range pointer {
		index := i > 0 && pointer[i-1] == "messages" && isIndex(name)
		if !index && !contractName(name) {
			break
		}
		safe.WriteByte('/')
		safe.WriteString(name)
		if callersOwn(name) {
			break
		}
	}
	return safe.String()
}

func isIndex(name string) bool {
	n, err := strconv.Atoi(name)
	return err == nil && n >= 0 && n < MaxMessages && strconv.Itoa(n) == name
}

// callersOwn tells whether everything below a member is the caller's.
func callersOwn(name string) bool { return name == "metadata" || name == "filters" }

func contractName(name string) bool {
	switch name {
	case "messages", "content", "role", "name", "user_id", "agent_id", "run_id", "app_id", "infer", "metadata",
		"event_date", "instructions", "ordered", "query", "limit", "top_k", "min_score", "mode", "latest_only",
		"filters", "generation":
		return true
	}
	return false
}
