package httpapi

import (
	"context"
	"strconv"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi/contract"
)

// ChangeMemory changes one record.
func (s *Server) ChangeMemory(ctx context.Context, request contract.ChangeMemoryRequestObject) (contract.ChangeMemoryResponseObject, error) {
	id, err := uuid.Parse(request.Id) // the guard has left a plain UUID here
	if err != nil {
		return nil, fault.New(fault.MemoryNotFound)
	}
	body := request.Body
	change, err := command.NewChange("", command.ChangeInput{
		ID: id, Content: body.Content, Metadata: body.Metadata, ExpiresAt: body.ExpiresAt, Version: body.Version,
	})
	if err != nil {
		return nil, err
	}
	return s.change(ctx, change)
}

// DeleteMemory ends one record.
func (s *Server) DeleteMemory(ctx context.Context, request contract.DeleteMemoryRequestObject) (contract.DeleteMemoryResponseObject, error) {
	id, err := uuid.Parse(request.Id) // the guard has left a plain UUID here
	if err != nil {
		return nil, fault.New(fault.MemoryNotFound)
	}
	return s.change(ctx, command.Change{ID: id, Delete: true})
}

func (s *Server) change(ctx context.Context, change command.Change) (answer, error) {
	this := callOf(ctx)
	changed, err := s.deps.Changer.Change(ctx, this.caller, this.key, change)
	if err != nil {
		return answer{}, err
	}
	reply := ok(contract.ChangeResult{
		Id: memoryID(changed.Result.RecordID), Event: contract.ChangeResultEvent(changed.Result.Change),
		Memory: changed.Result.Text, Version: changed.Version, EventId: eventID(changed.EventID),
	})
	if changed.Replayed {
		reply.header = map[string]string{replayedHeader: "true"}
	}
	return reply, nil
}

// ChangeMemories accepts changes of many records.
func (s *Server) ChangeMemories(ctx context.Context, request contract.ChangeMemoriesRequestObject) (contract.ChangeMemoriesResponseObject, error) {
	changes := make([]command.Change, 0, min(len(request.Body.Memories), command.MaxBatch))
	for i, item := range request.Body.Memories {
		within := "/memories/" + strconv.Itoa(i)
		id, ok := parseID(memoryPrefix, item.Id)
		if !ok {
			return nil, notAnID(within + "/id")
		}
		change, err := command.NewChange(within, command.ChangeInput{
			ID: id, Content: item.Content, Metadata: item.Metadata, ExpiresAt: item.ExpiresAt, Version: item.Version,
		})
		if err != nil {
			return nil, err
		}
		changes = append(changes, change)
	}
	batch, err := command.NewBatch("/memories", false, changes)
	if err != nil {
		return nil, err
	}
	return s.acceptBatch(ctx, batch)
}

// DeleteMemories accepts the ends of many records.
func (s *Server) DeleteMemories(ctx context.Context, request contract.DeleteMemoriesRequestObject) (contract.DeleteMemoriesResponseObject, error) {
	changes := make([]command.Change, 0, min(len(request.Body.Ids), command.MaxBatch))
	for i, text := range request.Body.Ids {
		id, ok := parseID(memoryPrefix, text)
		if !ok {
			return nil, notAnID("/ids/" + strconv.Itoa(i))
		}
		changes = append(changes, command.Change{ID: id})
	}
	batch, err := command.NewBatch("/ids", true, changes)
	if err != nil {
		return nil, err
	}
	return s.acceptBatch(ctx, batch)
}

func notAnID(pointer string) error {
	return fault.At(fault.InvalidRequest, pointer, "the id of a memory")
}

func (s *Server) acceptBatch(ctx context.Context, batch command.Batch) (answer, error) {
	this := callOf(ctx)
	receipt, err := s.deps.Batcher.Accept(ctx, this.caller, this.key, batch)
	if err != nil {
		return answer{}, err
	}
	return receiptOf(receipt), nil
}
