package httpapi

import (
	"context"
	"io"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// Noting returns deps whose writes tell the request, whatever its dialect, which event it was about: its log line and its
// span name it.
func Noting(deps Deps) Deps {
	deps.Accepter, deps.Writer, deps.Changer = notingAccepter{deps.Accepter}, notingWriter{deps.Writer}, notingChanger{deps.Changer}
	deps.Batcher, deps.Eraser, deps.Mover = notingBatcher{deps.Batcher}, notingEraser{deps.Eraser}, notingMover{deps.Mover}
	return deps
}

// note keeps the event of a request that nobody refused.
func note(ctx context.Context, event uuid.UUID, err error) {
	if err == nil {
		callOf(ctx).event = event
	}
}

type notingAccepter struct{ Accepter }

func (n notingAccepter) Accept(ctx context.Context, caller access.Caller, key command.Key, add command.Add) (write.Receipt, error) {
	receipt, err := n.Accepter.Accept(ctx, caller, key, add)
	note(ctx, receipt.EventID, err)
	return receipt, err
}

type notingWriter struct{ Writer }

func (n notingWriter) Write(ctx context.Context, caller access.Caller, key *command.Key, add command.Add) (write.Stored, error) {
	stored, err := n.Writer.Write(ctx, caller, key, add)
	note(ctx, stored.EventID, err)
	return stored, err
}

type notingChanger struct{ Changer }

func (n notingChanger) Change(ctx context.Context, caller access.Caller, key *command.Key, change command.Change) (write.Changed, error) {
	changed, err := n.Changer.Change(ctx, caller, key, change)
	note(ctx, changed.EventID, err)
	return changed, err
}

type notingBatcher struct{ Batcher }

func (n notingBatcher) Accept(ctx context.Context, caller access.Caller, key *command.Key, batch command.Batch) (write.Receipt, error) {
	receipt, err := n.Batcher.Accept(ctx, caller, key, batch)
	note(ctx, receipt.EventID, err)
	return receipt, err
}

type notingEraser struct{ Eraser }

func (n notingEraser) Erase(ctx context.Context, caller access.Caller, key *command.Key, scope memory.Scope) (write.Erased, error) {
	erased, err := n.Eraser.Erase(ctx, caller, key, scope)
	note(ctx, erased.EventID, err)
	return erased, err
}

type notingMover struct{ Mover }

func (n notingMover) Export(ctx context.Context, caller access.Caller, key *command.Key) (write.Receipt, error) {
	receipt, err := n.Mover.Export(ctx, caller, key)
	note(ctx, receipt.EventID, err)
	return receipt, err
}

func (n notingMover) Import(ctx context.Context, caller access.Caller, key *command.Key, snapshot io.ReadSeeker) (write.Receipt, error) {
	receipt, err := n.Mover.Import(ctx, caller, key, snapshot)
	note(ctx, receipt.EventID, err)
	return receipt, err
}
