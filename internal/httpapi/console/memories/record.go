package memories

import (
	"encoding/json"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/frame"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

// shown is the page of one record.
type shown struct {
	ID uuid.UUID
	// Record is nil for one that isn't there any more; its history can outlive it.
	Record   *memory.Record
	Scope    string
	Owner    string // where the records of the same scope are, empty without
	Metadata string
	Entries  []change
	// Next and First lead to other pages of the history, empty without one.
	Next, First string
}

// change is one entry of the history.
type change struct {
	memory.HistoryEntry
	Tone string
	// Successor is where the record is shown that took this one's place.
	Successor string
}

func (s section) show(v *frame.Visit) (frame.Answer, error) {
	id, ok := httpapi.ParseMemoryID(v.Request.PathValue("id"))
	if !ok {
		return frame.Answer{}, fault.New(fault.MemoryNotFound)
	}
	page := shown{ID: id}
	record, err := s.deps.Reader.Get(v.Context(), v.Workspace(), id)
	switch {
	case err == nil:
		page.Record, page.Scope, page.Owner = &record, scopeText(record.Scope), ownerOf(v, record.Scope)
		page.Metadata = metadataText(record.Metadata)
	case !fault.Is(err, fault.MemoryNotFound):
		return frame.Answer{}, err
	}
	query, cursor := recall.HistoryQuery{Memory: id, Limit: perPage}, cursorOf(v)
	if query.After, err = httpapi.OpenHistoryPlace(v.Caller.Workspace, "console history", id, cursor); err != nil {
		return frame.Answer{}, err
	}
	history, err := s.deps.Reader.History(v.Context(), v.Workspace(), query)
	if err != nil {
		return frame.Answer{}, err
	}
	for _, entry := range history.Entries {
		page.Entries = append(page.Entries, s.changeOf(v, entry))
	}
	next, err := httpapi.SealHistoryPlace(v.Caller.Workspace, "console history", id, history.Next)
	if err != nil {
		return frame.Answer{}, err
	}
	if cursor != nil {
		page.First = s.linkTo(v, id)
	}
	if next != nil {
		page.Next = s.linkTo(v, id) + "?cursor=" + *next // base64url
	}
	return frame.Answer{Title: "Memory mem_" + id.String(), Template: "memory.html", Data: page}, nil
}

func (s section) changeOf(v *frame.Visit, entry memory.HistoryEntry) change {
	c := change{HistoryEntry: entry}
	switch entry.Event {
	case memory.Added:
		c.Tone = "good"
	case memory.Updated:
		c.Tone = "accent"
	case memory.Deleted:
		c.Tone = "bad"
	case memory.Invalidated:
		c.Tone = "warn"
	case memory.None:
	}
	if entry.SupersededBy != nil {
		c.Successor = s.linkTo(v, *entry.SupersededBy)
	}
	return c
}

// ownerOf is where the records of the scope's first value are listed.
func ownerOf(v *frame.Visit, scope memory.Scope) string {
	for _, part := range []struct {
		by    recall.EntityType
		value string
	}{{recall.User, scope.UserID}, {recall.Agent, scope.AgentID}, {recall.Run, scope.RunID}, {recall.App, scope.AppID}} {
		if part.value != "" {
			return whose{By: part.by, Value: part.value}.address(v.Link("/memories"))
		}
	}
	return ""
}

// metadataText is what the caller keeps with the record, empty for nothing.
func metadataText(metadata json.RawMessage) string {
	if text := string(metadata); text != "{}" {
		return text
	}
	return ""
}
