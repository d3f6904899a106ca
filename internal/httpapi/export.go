package httpapi

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi/contract"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/write"
)

const (
	linesType = "application/x-ndjson"
	// streamBound leaves the greatest snapshot to a line of 1 Mbit/s. Places among the large bodies bound how many there
	// are at once.
	streamBound = 10 * time.Minute
	// partBound is how long one part of a snapshot, some megabytes at most, may take to a reader.
	partBound = time.Minute
)

// Mover accepts exports and imports; key is nil for a call without one.
type Mover interface {
	Export(ctx context.Context, caller access.Caller, key *command.Key) (write.Receipt, error)
	Import(ctx context.Context, caller access.Caller, key *command.Key, snapshot io.ReadSeeker) (write.Receipt, error)
}

// Exports finds finished exports.
type Exports interface {
	Open(ctx context.Context, workspace, id uuid.UUID) (*recall.Export, error)
}

// ExportWorkspace accepts the wish for a snapshot.
func (s *Server) ExportWorkspace(ctx context.Context, _ contract.ExportWorkspaceRequestObject) (contract.ExportWorkspaceResponseObject, error) {
	this := callOf(ctx)
	receipt, err := s.deps.Mover.Export(ctx, this.caller, this.key)
	if err != nil {
		return nil, err
	}
	return receiptOf(receipt), nil
}

// ImportWorkspace accepts a snapshot. It waits on disk until all of it is here, so that no transaction waits for the
// sender and nothing holds it in memory.
func (s *Server) ImportWorkspace(ctx context.Context, request contract.ImportWorkspaceRequestObject) (contract.ImportWorkspaceResponseObject, error) {
	this := callOf(ctx)
	file, err := os.CreateTemp("", "holdfast-import-*")
	if err != nil {
		return nil, fmt.Errorf("make file for snapshot: %w", err)
	}
	defer file.Close()
	if err := os.Remove(file.Name()); err != nil { // it has no name from here on and goes with the process at the latest
		return nil, fmt.Errorf("unlink file for snapshot: %w", err)
	}
	n, err := io.Copy(file, io.LimitReader(request.Body, command.MaxSnapshot+1))
	switch {
	case err != nil:
		return nil, fault.At(fault.InvalidBody, "", "a complete body")
	case n > command.MaxSnapshot:
		f := fault.New(fault.PayloadTooLarge)
		f.Details = map[string]any{"limit": command.MaxSnapshot}
		return nil, f
	}
	receipt, err := s.deps.Mover.Import(ctx, this.caller, this.key, file)
	if err != nil {
		return nil, err
	}
	return receiptOf(receipt), nil
}

func receiptOf(receipt write.Receipt) answer {
	id := eventID(receipt.EventID)
	header := map[string]string{"Location": "/v1/events/" + id, "Retry-After": seconds(retrySoon)}
	if receipt.Replayed {
		header[replayedHeader] = "true"
	}
	return answer{status: http.StatusAccepted, header: header, body: contract.AddReceipt{
		Message: "Accepted. The event tells what becomes of it.", Status: contract.EventStatus(receipt.Status), EventId: id,
	}}
}

// ReadExport streams a finished export.
func (s *Server) ReadExport(ctx context.Context, request contract.ReadExportRequestObject) (contract.ReadExportResponseObject, error) {
	id, err := uuid.Parse(request.Id) // the guard has left a plain UUID here
	if err != nil {
		return nil, fault.New(fault.EventNotFound)
	}
	export, err := s.deps.Exports.Open(ctx, callOf(ctx).caller.Workspace.ID, id)
	if err != nil {
		return nil, err
	}
	return exportAnswer{ctx, export}, nil
}

// exportAnswer sends an export part by part.
type exportAnswer struct {
	ctx    context.Context
	export *recall.Export
}

// VisitReadExportResponse implements the generated interface. An answer that can't go on is broken off, so that nobody
// takes it for whole; the footer is missing too.
func (a exportAnswer) VisitReadExportResponse(w http.ResponseWriter) error {
	first, err := a.export.Next(a.ctx)
	if err != nil {
		return err
	}
	deadline := http.NewResponseController(w)
	w.Header().Set("Content-Type", linesType)
	w.WriteHeader(http.StatusOK)
	for part := first; part != nil; {
		_ = deadline.SetWriteDeadline(time.Now().Add(partBound)) // a writer without deadlines has no slow reader
		if _, err := w.Write(part); err != nil {
			return fmt.Errorf("send part: %w", err)
		}
		if part, err = a.export.Next(a.ctx); err != nil {
			panic(http.ErrAbortHandler)
		}
	}
	return nil
}

// takeLines checks the head of a body that its handler reads itself, and gives it the time that it needs.
func takeLines(c echo.Context, op *operation) error {
	r := c.Request()
	if r.ContentLength > int64(op.maxBody) {
		return tooLarge(op.maxBody)
	}
	if r.ContentLength == 0 {
		return fault.At(fault.InvalidBody, "", "at least one line")
	}
	types := r.Header.Values("Content-Type")
	if encoding := r.Header.Get("Content-Encoding"); len(types) != 1 || encoding != "" && !strings.EqualFold(encoding, "identity") {
		return fault.New(fault.UnsupportedMediaType)
	}
	if name, _, err := mime.ParseMediaType(types[0]); err != nil || name != linesType {
		return fault.New(fault.UnsupportedMediaType)
	}
	r.Header.Set("Content-Type", linesType)
	deadline := http.NewResponseController(c.Response())
	_ = deadline.SetReadDeadline(time.Now().Add(streamBound)) // a reader without deadlines has no slow sender
	_ = deadline.SetWriteDeadline(time.Now().Add(streamBound + writeBound))
	return nil
}
