package mem0

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

const (
	exportDefined = "Memory export is ready. It lists the memories as they are when it is read: schema and " +
		"export_instructions have no effect here."
	exportNotFound = "No memory export request found!"
)

// ExportDefiner keeps which memories an export is to hold.
type ExportDefiner interface {
	Define(ctx context.Context, caller access.Caller, filter memory.Filter) (uuid.UUID, error)
}

// ExportReader reads what an export holds now; false for one that there isn't.
type ExportReader interface {
	Get(ctx context.Context, workspace, id uuid.UUID) (recall.Exported, bool, error)
	Latest(ctx context.Context, workspace uuid.UUID, filter memory.Filter) (recall.Exported, bool, error)
}

type exportReceipt struct {
	Message string `json:"message"`
	ID      string `json:"id"`
}

// exported is an export as it is read. Truncated tells that there are more memories than one answer takes.
type exported struct {
	Memories  []record `json:"memories"`
	Count     int      `json:"count"`
	Truncated bool     `json:"truncated"`
}

// createExport keeps the filters under an id.
func (h handlers) createExport(ctx context.Context, call httpapi.GuestCall) (httpapi.GuestAnswer, error) {
	b, err := bodyOf(call)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	filter, err := exportFilter(b)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	id, err := h.deps.ExportDefiner.Define(ctx, call.Caller, *filter)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	return httpapi.GuestAnswer{Status: http.StatusCreated, Body: exportReceipt{exportDefined, id.String()}}, nil
}

// readExport answers the memories of an export, which its id names, or the filters that it was made with.
func (h handlers) readExport(ctx context.Context, call httpapi.GuestCall) (httpapi.GuestAnswer, error) {
	b, err := bodyOf(call)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	text, err := b.text("memory_export_id")
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	workspace := call.Caller.Workspace.ID
	var found recall.Exported
	there := false
	if text != nil {
		id, broken := uuid.Parse(*text)
		if broken == nil { // what is no id names none
			found, there, err = h.deps.ExportReader.Get(ctx, workspace, id)
		}
	} else {
		var filter *memory.Filter
		if filter, err = exportFilter(b); err == nil {
			found, there, err = h.deps.ExportReader.Latest(ctx, workspace, *filter)
		}
	}
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	if !there {
		return httpapi.GuestAnswer{}, inWords(fault.RouteNotFound, exportNotFound)
	}
	shown := exported{Memories: make([]record, len(found.Records)), Count: len(found.Records), Truncated: found.Truncated}
	for i, r := range found.Records {
		shown.Memories[i] = recordOf(r)
	}
	return httpapi.GuestAnswer{Body: shown}, nil
}

// exportFilter reads filters, and ids that older clients send beside them. They have to say whose memories are meant, as
// for a list: an export of everything is a snapshot of the workspace.
func exportFilter(b body) (*memory.Filter, error) {
	parts := []any{}
	if b["filters"] != nil {
		parts = append(parts, plain(b["filters"]))
	}
	given := map[string]any{}
	for name := range b {
		if _, known := scopeName(name); known {
			given[name] = plain(b[name])
		}
	}
	filter, _, scoped, err := filterOf(append(parts, given)...)
	if err == nil && !scoped {
		err = fault.New(fault.ScopeRequired)
	}
	return filter, err
}
