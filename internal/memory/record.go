package memory

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Change says what a command did to a record.
type Change string

// The changes.
const (
	Added       Change = "ADD"
	Updated     Change = "UPDATE"
	Deleted     Change = "DELETE"
	Invalidated Change = "INVALIDATE"
	None        Change = "NONE"
)

// FactType is the model's label of a fact.
type FactType string

// The labels a model may give; anything else is dropped, never an error.
const (
	TypeFact        FactType = "fact"
	TypePreference  FactType = "preference"
	TypeDecision    FactType = "decision"
	TypeIdentity    FactType = "identity"
	TypeEvent       FactType = "event"
	TypeObservation FactType = "observation"
	TypeGoal        FactType = "goal"
	TypeTodo        FactType = "todo"
)

// ParseFactType returns the label that text names and the empty label for any other text.
func ParseFactType(text string) FactType {
	switch t := FactType(strings.ToLower(strings.TrimSpace(text))); t {
	case TypeFact, TypePreference, TypeDecision, TypeIdentity, TypeEvent, TypeObservation, TypeGoal, TypeTodo:
		return t
	default:
		return ""
	}
}

// Record is one memory as readers see it. Metadata is the caller's object byte for byte in meaning: members in
// their order, numbers as written.
type Record struct {
	ID        uuid.UUID
	Scope     Scope
	Text      string
	Type      FactType
	Role      string
	Metadata  json.RawMessage
	EventDate *time.Time
	Version   int
	ValidFrom time.Time
	ValidTo   *time.Time
	CreatedAt time.Time
	UpdatedAt time.Time
	ExpiresAt *time.Time
	// SupersededBy is the record that took this one's place, at ValidTo.
	SupersededBy *uuid.UUID
	ItemID       string
	// Categories are the names of what the record is filed under, each once.
	Categories []string
	Score      float64
	// Explain is how the score came about, if it was asked for.
	Explain *Explain
}

// Explain is the parts of a search score. A rank is a place from 1, 0 when that way didn't find the record.
type Explain struct {
	LexicalScore  float64
	LexicalRank   int
	SemanticScore float64
	SemanticRank  int
}

// HistoryEntry is one change of a record, oldest first. Texts are nil where there was none or it has been erased.
type HistoryEntry struct {
	ID       uuid.UUID
	MemoryID uuid.UUID
	Event    Change
	Version  int
	OldText  *string
	NewText  *string
	At       time.Time
	// Since when another record stands for it, and which one; set on INVALIDATE alone, and only while the record is there.
	ValidTo      *time.Time
	SupersededBy *uuid.UUID
}

// ContentKey identifies a text up to case, white space at its ends and Unicode compatibility.
type ContentKey [sha256.Size]byte

// KeyOf returns the content key of text: SHA-256 over trim, NFKC and case folding.
func KeyOf(text string) ContentKey { return sha256.Sum256([]byte(Fold(text))) }

// Fold maps texts that say the same in other letters to one text: NFKC, full case folding, trimmed.
func Fold(text string) string {
	if ascii(text) { // most are, and then it is a matter of bytes
		return strings.TrimSpace(strings.ToLower(text))
	}
	return strings.TrimSpace(cases.Fold().String(norm.NFKC.String(text)))
}

// HistoryID returns the id of the history row that change number ordinal of a task writes. It is derived, so
// that a repeated write meets its own row.
func HistoryID(taskID uuid.UUID, ordinal int) uuid.UUID {
	var place [8]byte
	binary.BigEndian.PutUint64(place[:], uint64(ordinal)) // #nosec G115 -- ordinals are small and not negative
	return uuid.NewHash(sha256.New(), taskID, place[:], 8)
}
