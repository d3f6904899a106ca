package command

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
)

const (
	// MaxScope is the greatest length of a scope id in characters, after trimming.
	MaxScope = 512
	// brailleBlank is drawn as nothing although Unicode calls it a symbol.
	brailleBlank = '\u2800'
)

// Blank tells whether nothing of text can be seen: it is empty, or white space, control, format and other
// default-ignorable characters only.
func Blank(text string) bool {
	for _, r := range text {
		if !unicode.IsSpace(r) && r != brailleBlank &&
			!unicode.In(r, unicode.Cc, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
			return false
		}
	}
	return true
}

// NewScope reads a scope's ids; nil ones are absent. Each is trimmed and has 1 to 512 characters, something
// visible among them. Faults: INVALID_REQUEST at the id, SCOPE_REQUIRED if none is present.
func NewScope(userID, agentID, runID, appID *string) (memory.Scope, error) {
	var scope memory.Scope
	for _, id := range []struct {
		pointer string
		given   *string
		field   *string
	}{
		{"/user_id", userID, &scope.UserID},
		{"/agent_id", agentID, &scope.AgentID},
		{"/run_id", runID, &scope.RunID},
		{"/app_id", appID, &scope.AppID},
	} {
		if id.given == nil {
			continue
		}
		text := strings.TrimSpace(*id.given)
		if Blank(text) || utf8.RuneCountInString(text) > MaxScope {
			return memory.Scope{}, fault.At(fault.InvalidRequest, id.pointer, "1 to 512 characters after trimming")
		}
		if !storable(text) {
			return memory.Scope{}, fault.At(fault.InvalidRequest, id.pointer, "valid UTF-8 without NUL")
		}
		*id.field = text
	}
	if scope.Empty() {
		return memory.Scope{}, fault.New(fault.ScopeRequired)
	}
	return scope, nil
}

// storable tells whether the database can keep text.
func storable(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }
