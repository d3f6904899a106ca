package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/memory"
)

const (
	// SnapshotVersion names the form of a snapshot's lines. An import takes no other.
	SnapshotVersion = 1
	// MaxSnapshotLine bounds one line in bytes: two texts of the greatest body, each byte of them escaped, are 3 MB.
	MaxSnapshotLine = 4 << 20
	// MaxSnapshot bounds a snapshot that is imported, in bytes: it is checked as a whole within one step of a worker.
	MaxSnapshot = 64 << 20
)

// The types of the lines of a snapshot, in their order; the history of a memory follows it.
const (
	snapshotHeader  = "header"
	snapshotMemory  = "memory"
	snapshotHistory = "history"
	snapshotItem    = "item"
	snapshotFooter  = "footer"
)

// SnapshotHeader is the first line. Workspace is where the snapshot comes from, CreatedAt when it was asked for.
type SnapshotHeader struct {
	Type      string    `json:"type"`
	Version   int       `json:"version"`
	Workspace uuid.UUID `json:"workspace"`
	CreatedAt time.Time `json:"created_at"`
}

// SnapshotMemory is one record, ended ones included. Lane, content key and item key follow from it.
type SnapshotMemory struct {
	Type         string            `json:"type"`
	ID           uuid.UUID         `json:"id"`
	Event        uuid.UUID         `json:"event_id"`
	UserID       *string           `json:"user_id,omitempty"`
	AgentID      *string           `json:"agent_id,omitempty"`
	RunID        *string           `json:"run_id,omitempty"`
	AppID        *string           `json:"app_id,omitempty"`
	Text         string            `json:"memory"`
	FactType     *string           `json:"fact_type,omitempty"`
	Role         *string           `json:"role,omitempty"`
	Metadata     json.RawMessage   `json:"metadata,omitempty"`
	EventDate    *time.Time        `json:"event_date,omitempty"`
	Version      int               `json:"version"`
	AcceptedAt   time.Time         `json:"accepted_at"`
	SaidAt       time.Time         `json:"said_at"`
	ValidFrom    time.Time         `json:"valid_from"`
	ValidTo      *time.Time        `json:"valid_to,omitempty"`
	SupersededBy *uuid.UUID        `json:"superseded_by,omitempty"`
	ExpiresAt    *time.Time        `json:"expires_at,omitempty"`
	DeletedAt    *time.Time        `json:"deleted_at,omitempty"`
	ItemID       *string           `json:"item_id,omitempty"`
	Categories   []string          `json:"categories,omitempty"`
	Feedback     *SnapshotFeedback `json:"feedback,omitempty"`
	CreatedAt    time.Time         `json:"created_at"`
	UpdatedAt    time.Time         `json:"updated_at"`
}

// SnapshotFeedback is what was said about a live record.
type SnapshotFeedback struct {
	Verdict string    `json:"feedback"`
	Reason  *string   `json:"reason,omitempty"`
	At      time.Time `json:"at"`
}

// Scope returns whose record it is.
func (m SnapshotMemory) Scope() memory.Scope {
	var s memory.Scope
	for _, f := range []struct {
		given *string
		field *string
	}{{m.UserID, &s.UserID}, {m.AgentID, &s.AgentID}, {m.RunID, &s.RunID}, {m.AppID, &s.AppID}} {
		if f.given != nil {
			*f.field = *f.given
		}
	}
	return s
}

// SnapshotHistory is one change of the record whose line it follows.
type SnapshotHistory struct {
	Type     string    `json:"type"`
	ID       uuid.UUID `json:"id"`
	MemoryID uuid.UUID `json:"memory_id"`
	Event    uuid.UUID `json:"event_id"`
	Ordinal  int32     `json:"ordinal"`
	Change   string    `json:"event"`
	Version  int       `json:"version"`
	OldText  *string   `json:"old_memory"`
	NewText  *string   `json:"new_memory"`
	At       time.Time `json:"at"`
}

// SnapshotItem is one item of a caller at its latest revision. Its key, content hash and event id follow from it.
type SnapshotItem struct {
	Type           string    `json:"type"`
	Account        string    `json:"account"`
	ItemID         string    `json:"item_id"`
	Event          uuid.UUID `json:"event_id"`
	Revision       int       `json:"revision"`
	LandedRevision int       `json:"landed_revision"`
	Text           string    `json:"text"`
	Author         string    `json:"author,omitempty"`
	Session        string    `json:"session,omitempty"`
	At             time.Time `json:"at"`
	AtText         string    `json:"at_text,omitempty"`
	CreatedAt      time.Time `json:"created_at"`
	UpdatedAt      time.Time `json:"updated_at"`
}

// Item returns what is kept of the item.
func (i SnapshotItem) Item() Item {
	return Item{Account: i.Account, ID: i.ItemID, Text: i.Text, Author: i.Author, Session: i.Session, At: &i.At, AtText: i.AtText}
}

// SnapshotFooter is the last line: without it a snapshot is cut off.
type SnapshotFooter struct {
	Type     string `json:"type"`
	Memories int64  `json:"memories"`
	History  int64  `json:"history"`
	Items    int64  `json:"items"`
}

// SnapshotLine is one line; exactly one field is set.
type SnapshotLine struct {
	Header  *SnapshotHeader
	Memory  *SnapshotMemory
	History *SnapshotHistory
	Item    *SnapshotItem
	Footer  *SnapshotFooter
}

// AppendTo adds the line with its line feed to body. Metadata keeps members, order and numbers as they are; white
// space between them goes.
func (l SnapshotLine) AppendTo(body []byte) ([]byte, error) {
	var line any
	switch {
	case l.Header != nil:
		l.Header.Type, line = snapshotHeader, l.Header
	case l.Memory != nil:
		l.Memory.Type, line = snapshotMemory, l.Memory
	case l.History != nil:
		l.History.Type, line = snapshotHistory, l.History
	case l.Item != nil:
		l.Item.Type, line = snapshotItem, l.Item
	default:
		l.Footer.Type, line = snapshotFooter, l.Footer
	}
	out := bytes.NewBuffer(body)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(line); err != nil {
		return nil, fmt.Errorf("encode line: %w", err)
	}
	return out.Bytes(), nil
}

// DecodeSnapshotLine reads one line strictly. What it says is checked by SnapshotCheck; an error is ErrUnreadable and
// never quotes the line.
func DecodeSnapshotLine(raw []byte) (SnapshotLine, error) {
	if len(raw) > MaxSnapshotLine {
		return SnapshotLine{}, ErrUnreadable
	}
	raw, err := ReadJSON(raw)
	if err != nil {
		return SnapshotLine{}, ErrUnreadable
	}
	var kind struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &kind) != nil {
		return SnapshotLine{}, ErrUnreadable
	}
	var line SnapshotLine
	switch kind.Type {
	case snapshotHeader:
		line.Header = &SnapshotHeader{}
		err = decode(Format, raw, line.Header)
	case snapshotMemory:
		line.Memory = &SnapshotMemory{}
		err = decode(Format, raw, line.Memory)
	case snapshotHistory:
		line.History = &SnapshotHistory{}
		err = decode(Format, raw, line.History)
	case snapshotItem:
		line.Item = &SnapshotItem{}
		err = decode(Format, raw, line.Item)
	case snapshotFooter:
		line.Footer = &SnapshotFooter{}
		err = decode(Format, raw, line.Footer)
	default:
		err = ErrUnreadable
	}
	return line, err
}
