package httpapi

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// worldMoves takes snapshots and has one of two parts for every event that is known; the second can be withheld.
type worldMoves struct{ *world }

func (w worldMoves) Export(_ context.Context, _ access.Caller, key *command.Key) (write.Receipt, error) {
	return write.Receipt{EventID: uuid.New(), Status: task.EventPending, Replayed: key != nil}, w.fail
}

func (w worldMoves) Import(_ context.Context, _ access.Caller, _ *command.Key, snapshot io.ReadSeeker) (write.Receipt, error) {
	if _, err := snapshot.Seek(0, io.SeekStart); err != nil {
		return write.Receipt{}, err
	}
	if err := command.SplitSnapshot(snapshot, func([]byte) error { return nil }); err != nil {
		return write.Receipt{}, err
	}
	return write.Receipt{EventID: uuid.New(), Status: task.EventPending}, w.fail
}

func (w worldMoves) Open(ctx context.Context, workspace, id uuid.UUID) (*recall.Export, error) {
	exports, err := recall.NewExports(w)
	if err != nil {
		return nil, err
	}
	return exports.Open(ctx, workspace, id)
}

func (w worldMoves) ExportParts(_ context.Context, workspace, id uuid.UUID) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.owners[id] != workspace {
		return 0, fault.New(fault.EventNotFound)
	}
	return 2, nil
}

func (w worldMoves) ExportPart(_ context.Context, _, _ uuid.UUID, part int) ([]byte, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return []byte("{\"part\":" + string(rune('0'+part)) + "}\n"), w.fail == nil || part == 0, nil
}

func TestExport(t *testing.T) {
	t.Parallel()

	t.Run("AReceiptForTheWishAndLinesForTheReader", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		accepted := w.do(t, "all", "POST", "/v1/exports", "", header("Idempotency-Key", "k"))
		if accepted.want(t, 202, ""); accepted.Header().Get("Idempotent-Replayed") != "true" || accepted.Header().Get("Location") == "" {
			t.Errorf("header %v", accepted.Header())
		}
		event := w.put("all", eventIn(task.EventSucceeded))
		read := w.do(t, "all", "GET", "/v1/exports/"+eventID(event.ID), "")
		if read.Code != 200 || read.Header().Get("Content-Type") != "application/x-ndjson" || read.Body.String() != "{\"part\":0}\n{\"part\":1}\n" {
			t.Errorf("%d %v %s", read.Code, read.Header(), read.Body)
		}
		w.do(t, "other", "GET", "/v1/exports/"+eventID(event.ID), "").want(t, 404, fault.EventNotFound)
	})

	t.Run("ASnapshotIsLinesOfItsOwnType", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		lines := header("Content-Type", "application/x-ndjson")
		w.do(t, "all", "POST", "/v1/imports", "{}\n{}\n", lines).want(t, 202, "")
		w.do(t, "all", "POST", "/v1/imports", "{}", header("Content-Type", "application/json")).want(t, 415, fault.UnsupportedMediaType)
		w.do(t, "all", "POST", "/v1/imports", "", lines).want(t, 400, fault.InvalidBody)
		w.do(t, "all", "POST", "/v1/imports", strings.Repeat("x", command.MaxSnapshotLine+1), lines).want(t, 400, fault.InvalidBody)
		w.failWith(fault.New(fault.WorkspaceNotEmpty))
		w.do(t, "all", "POST", "/v1/imports", "{}", lines).want(t, 409, fault.WorkspaceNotEmpty)
	})

	t.Run("TheEventShowsItsProgress", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		event := eventIn(task.EventRunning)
		event.Kind, event.Progress = task.Import, &recall.Progress{Done: 3, Total: 7}
		w.put("all", event)
		if got := w.do(t, "all", "GET", "/v1/events/"+eventID(event.ID), ""); !strings.Contains(got.Body.String(), `"progress":{"done":3,"total":7}`) {
			t.Errorf("event %s", got.Body)
		}
	})
}
