package model

import (
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-memory/holdfast/internal/task"
)

// Bounds of one answer. A model that exceeds them is looping, and what it says is not used.
const (
	maxAnswerBytes = 4 << 20 // a full answer of 100,000 characters stays below 1 MiB, escapes included
	maxFacts       = 200     // a long conversation holds some dozens
	maxFactRunes   = 8_000   // two pages: longer text is a copy of the input and no fact
	maxTotalRunes  = 100_000 // all facts of an answer; keeps the plan's row small
	maxStarts      = 1_000   // brackets in prose that are tried as the beginning of a value
	maxThinkBlocks = 8       // leading think blocks; more is a loop
)

// The reasons that Parse gives.
const (
	ReasonEmpty      = "empty answer"
	ReasonTruncated  = "truncated"
	ReasonNotJSON    = "no json"
	ReasonWrongShape = "wrong shape"
	ReasonTooLarge   = "too large"
)

// Parse reads the answer of a language model to the request. It returns the facts, none if the model says so, or an *Error of
// class output_invalid without usage. An answer is used as a whole or not at all.
//
// Strict JSON comes first; then a leading think block and code fences are removed; then the first complete
// value that fits is taken out of the prose. See readAnswer for the shapes that fit. Ids, scopes and all other
// members are ignored. NUL is removed, invalid UTF-8 and lone surrogates become U+FFFD, blank facts are dropped.
// A fact supersedes only what the request knows and what no fact before it supersedes; any other reference is nothing.
// Of a fact's categories those of the request are kept, in its spelling; any other name is dropped.
func Parse(answer string, request Request) ([]Fact, error) {
	found, err := parse(answer)
	if err != nil {
		return nil, err
	}
	file(found, request.Categories)
	return refer(found, request.Known), nil
}

func parse(answer string) ([]Fact, error) {
	if len(answer) > maxAnswerBytes {
		return nil, invalid(ReasonTooLarge)
	}
	text := trim(answer)
	for range maxThinkBlocks {
		if text == "" {
			return nil, invalid(ReasonEmpty)
		}
		if value, ok := strictJSON(text); ok {
			return facts(value)
		}
		rest, found, closed := cutThinking(text)
		if !found {
			break
		}
		if !closed {
			return nil, invalid(ReasonTruncated)
		}
		text = trim(rest)
	}
	if inner, ok := cutFence(text); ok {
		if value, ok := strictJSON(inner); ok {
			return facts(value)
		}
		text = inner
	}
	return scan(text)
}

func invalid(reason string) *Error { return NewError(task.OutputInvalid, reason, nil) }

func trim(text string) string {
	return strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), "\ufeff"))
}

// strictJSON returns text as a JSON value if it is one and nothing else. Duplicate members are no JSON here:
// nobody could say which one the model meant.
func strictJSON(text string) (jsontext.Value, bool) {
	decoder := newDecoder(text)
	value, err := decoder.ReadValue()
	if err != nil {
		return nil, false
	}
	value = value.Clone()
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, false
	}
	return value, true
}

func newDecoder(text string) *jsontext.Decoder {
	return jsontext.NewDecoder(strings.NewReader(text), jsontext.AllowInvalidUTF8(true))
}

// cutThinking removes one think block at the beginning of text. A closing tag without an opening one ends a
// block too: the opening tag is then part of the server's prompt template.
func cutThinking(text string) (rest string, found, closed bool) {
	for _, tag := range []string{"think", "thinking"} {
		opening, closing := "<"+tag+">", "</"+tag+">"
		if strings.HasPrefix(text, opening) {
			_, rest, closed = strings.Cut(text, closing)
			return rest, true, closed
		}
		if before, after, ok := strings.Cut(text, closing); ok && !strings.Contains(before, opening) {
			return after, true, true
		}
	}
	return "", false, false
}

// cutFence returns what stands inside a code fence that begins with the text.
func cutFence(text string) (string, bool) {
	inner, ok := strings.CutPrefix(text, "```")
	if !ok {
		return "", false
	}
	inner = strings.TrimLeft(inner, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
	if end := strings.LastIndex(inner, "```"); end >= 0 {
		if strings.TrimSpace(inner[end+3:]) == "" {
			inner = inner[:end]
		}
	}
	return trim(inner), true
}

// scan takes the first complete value that fits out of the prose around it. Values that are complete and no
// answer are skipped as a whole, so that a list inside a schema never passes for the facts. A value with a
// facts member is an answer: if it doesn't fit, nothing behind it counts. An empty list only counts when
// nothing else fits: prose uses brackets too.
func scan(text string) ([]Fact, error) {
	reason, empty := ReasonNotJSON, false
	for range maxStarts {
		start := strings.IndexAny(text, "{[")
		if start < 0 {
			break
		}
		text = text[start:]
		decoder := newDecoder(text)
		value, err := decoder.ReadValue()
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, invalid(ReasonTruncated)
		}
		if err != nil {
			if looksLikeJSON(text) {
				return nil, invalid(ReasonNotJSON)
			}
			text = text[1:]
			continue
		}
		found, problem := readAnswer(value)
		switch {
		case problem == "" && value.Kind() == '[' && len(found) == 0:
			empty = true
		case problem == "":
			return found, nil
		case problem != reasonNoAnswer:
			return nil, invalid(problem)
		default:
			reason = ReasonWrongShape
		}
		text = text[decoder.InputOffset():]
	}
	if empty {
		return nil, nil
	}
	return nil, invalid(reason)
}

// looksLikeJSON tells whether broken text got far enough to be a broken answer and not a bracket in prose: past
// the first name and value of an object, or into a list whose first element is no number or word.
func looksLikeJSON(text string) bool {
	decoder := newDecoder(text)
	opening, err := decoder.ReadToken()
	if err != nil {
		return false
	}
	first, err := decoder.ReadToken()
	if err != nil {
		return false
	}
	if opening.Kind() == '[' {
		return first.Kind() == '"' || first.Kind() == '{' || first.Kind() == '['
	}
	_, err = decoder.ReadToken()
	return err == nil
}
