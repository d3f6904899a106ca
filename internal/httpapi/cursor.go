package httpapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

const (
	cursorVersion = 1
	// macLength of 16 bytes can't be guessed and keeps cursors short.
	macLength = 16
	// maxCursor is above the longest cursor that is made here: an id of 512 characters, each escaped, in base64.
	maxCursor = 5_000
)

// listing is what a cursor belongs to: the endpoint, the workspace, and the query without its limit. A cursor
// of another listing is refused.
type listing struct {
	workspace access.Workspace
	endpoint  string
	query     any
}

// position is the content of a cursor. Microseconds are what the database keeps.
type position struct {
	Version    int              `json:"v"`
	Micros     int64            `json:"t"`
	ID         uuid.UUID        `json:"i"`
	Type       credit.EntryType `json:"y,omitempty"`
	Generation int              `json:"g,omitempty"`
	Name       string           `json:"n,omitempty"`
	XID        uint64           `json:"x,omitempty"`
	Claim      int              `json:"c,omitempty"`
}

func positionOf(place recall.Place) position {
	return position{Version: cursorVersion, Micros: place.At.UnixMicro(), ID: place.ID}
}

func (p position) place() recall.Place {
	return recall.Place{At: time.UnixMicro(p.Micros).UTC(), ID: p.ID}
}

// seal returns the cursor of a position in the listing.
func (l listing) seal(p position) (string, error) {
	content, err := json.Marshal(p)
	if err != nil {
		return "", fmt.Errorf("encode cursor: %w", err)
	}
	mac, err := l.mac(content)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(append(mac, content...)), nil
}

// open returns the position of a cursor that was made for this listing, nil for no cursor, and a fault
// INVALID_CURSOR for anything else.
func (l listing) open(cursor *string) (*position, error) {
	if cursor == nil {
		return nil, nil
	}
	if len(*cursor) > maxCursor {
		return nil, fault.New(fault.InvalidCursor)
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(*cursor)
	if err != nil || len(raw) < macLength {
		return nil, fault.New(fault.InvalidCursor)
	}
	mac, err := l.mac(raw[macLength:])
	if err != nil {
		return nil, err
	}
	var p position
	if !hmac.Equal(mac, raw[:macLength]) || json.Unmarshal(raw[macLength:], &p) != nil || p.Version != cursorVersion {
		return nil, fault.New(fault.InvalidCursor)
	}
	return &p, nil
}

// mac is keyed with the workspace's own secret, so that cursors of one workspace mean nothing in another.
func (l listing) mac(content []byte) ([]byte, error) {
	binding, err := json.Marshal([]any{"cursor", cursorVersion, l.workspace.ID, l.endpoint, l.query})
	if err != nil {
		return nil, fmt.Errorf("encode listing: %w", err)
	}
	h := hmac.New(sha256.New, l.workspace.FingerprintKey)
	h.Write(binding)
	h.Write([]byte{0}) // no JSON text has one, so binding and content can't run into each other
	h.Write(content)
	return h.Sum(nil)[:macLength], nil
}
