package command

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-memory/holdfast/internal/fault"
)

// CompleteJSON is the rule that a body breaks which ends too early.
const CompleteJSON = "complete JSON"

const (
	// MaxBody is the greatest size of a request body in bytes. It bounds what one command costs in memory and
	// what a model is asked to read at once.
	MaxBody = 250_000
	// maxDepth is how deep arrays and objects may nest. The contract needs 3; the rest is for metadata.
	maxDepth = 32
)

// ReadJSON tells whether raw is one strict JSON value: UTF-8 without a byte order mark, no duplicate members, no
// trailing data, no lone surrogates, no NUL in texts or names, integers within ±2^53 however they are spelled, other
// numbers within the range of float64, at most 32 levels deep. It answers raw with the integers of the contract spelled
// as such, so that 1.0 and 1e0 are the 1 that JSON Schema says they are; what is the caller's own stays byte for byte.
// Otherwise it answers a fault INVALID_BODY with a pointer that holds names of the contract only, and the broken rule.
func ReadJSON(raw []byte) ([]byte, error) {
	if !utf8.Valid(raw) {
		return nil, fault.At(fault.InvalidBody, "", "valid UTF-8")
	}
	reader := jsontext.NewDecoder(bytes.NewReader(raw))
	var plain []byte // raw up to done, with its integers spelled plainly
	done := int64(0)
	for {
		token, err := reader.ReadToken()
		if err != nil {
			return nil, fault.At(fault.InvalidBody, place(reader), brokenSyntax(raw, err))
		}
		if rule := brokenValue(token, reader.StackDepth()); rule != "" {
			return nil, fault.At(fault.InvalidBody, place(reader), rule)
		}
		if text, other := respelled(token, reader); other {
			end := reader.InputOffset()
			plain = append(append(plain, raw[done:end-int64(len(token.String()))]...), text...)
			done = end
		}
		if reader.StackDepth() == 0 {
			return append(plain, raw[done:]...), checkEnd(raw[reader.InputOffset():])
		}
	}
}

// respelled answers an integer with a fraction or an exponent without them, unless it is the caller's own.
func respelled(token jsontext.Token, reader *jsontext.Decoder) (string, bool) {
	if token.Kind() != jsontext.KindNumber {
		return "", false
	}
	text := token.String()
	if !strings.ContainsAny(text, ".eE") {
		return "", false
	}
	exact, ok := readDecimal(text)
	if !ok || !exact.integral() {
		return "", false
	}
	for name := range reader.StackPointer().Tokens() {
		if callersOwn(name) {
			return "", false
		}
	}
	return exact.plain(), true
}

// checkEnd refuses anything but white space after the value.
func checkEnd(rest []byte) error {
	if len(bytes.Trim(rest, " \t\r\n")) > 0 {
		return fault.At(fault.InvalidBody, "", "one JSON value and nothing after it")
	}
	return nil
}

func brokenSyntax(raw []byte, err error) string {
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return "no member twice"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return CompleteJSON
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
		index := i > 0 && isList(pointer[i-1]) && isIndex(name)
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

// isList tells whether a member of the contract is an array.
func isList(name string) bool {
	return name == "messages" || name == "memories" || name == "ids" || name == "items" || name == "categories"
}

func isIndex(name string) bool {
	n, err := strconv.Atoi(name)
	return err == nil && n >= 0 && n < max(MaxMessages, MaxBatch) && strconv.Itoa(n) == name
}

// callersOwn tells whether everything below a member is the caller's.
func callersOwn(name string) bool { return name == "metadata" || name == "filters" }

func contractName(name string) bool {
	switch name {
	case "messages", "content", "role", "name", "user_id", "agent_id", "run_id", "app_id", "infer", "metadata",
		"event_date", "expires_at", "version", "memories", "ids", "id", "instructions", "ordered", "query", "limit", "top_k", "min_score", "mode", "latest_only",
		"filters", "generation", "categories", "description", "feedback", "reason", "items", "text", "at", "author", "session", "all", "url", "event_types", "kinds", "active", "since", "until", "failed_only", "cursor", "pattern", "regex", "after":
		return true
	}
	return false
}
