package httpapi

import (
	"strings"

	"github.com/google/uuid"
)

const (
	eventPrefix  = "evt_"
	memoryPrefix = "mem_"
	uuidLength   = 36
)

func eventID(id uuid.UUID) string  { return eventPrefix + id.String() }
func memoryID(id uuid.UUID) string { return memoryPrefix + id.String() }

// parseID reads an id with its prefix or bare; false for anything else, other prefixes and other forms of UUIDs
// included.
func parseID(prefix, text string) (uuid.UUID, bool) {
	text = strings.TrimPrefix(text, prefix)
	if len(text) != uuidLength {
		return uuid.Nil, false
	}
	id, err := uuid.Parse(text)
	return id, err == nil
}
