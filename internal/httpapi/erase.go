package httpapi

import (
	"context"
	"net/http"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/httpapi/contract"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// EraseScope removes everything of a scope. Without one it is refused, always.
func (s *Server) EraseScope(ctx context.Context, request contract.EraseScopeRequestObject) (contract.EraseScopeResponseObject, error) {
	p := request.Params
	scope, err := command.NewScope(p.UserId, p.AgentId, p.RunId, p.AppId)
	if err != nil {
		return nil, ofQuery(err)
	}
	return s.erase(ctx, scope)
}

// EraseEntity removes everything of one user, agent, run or app.
func (s *Server) EraseEntity(ctx context.Context, request contract.EraseEntityRequestObject) (contract.EraseEntityResponseObject, error) {
	scope, err := entityScope(recall.EntityType(request.Type), request.Id)
	if err != nil {
		return nil, err
	}
	return s.erase(ctx, scope)
}

// erase answers what was erased, or a receipt when that takes longer than a caller waits.
func (s *Server) erase(ctx context.Context, scope memory.Scope) (answer, error) {
	this := callOf(ctx)
	erased, err := s.deps.Eraser.Erase(ctx, this.caller, this.key, scope)
	if err != nil {
		return answer{}, err
	}
	id := eventID(erased.EventID)
	reply := ok(contract.EraseResult{Deleted: erased.Deleted, Cancelled: erased.Cancelled, EventId: id})
	reply.header = map[string]string{}
	if !erased.Finished {
		reply = answer{status: http.StatusAccepted, body: contract.AddReceipt{
			Message: "Accepted. The event tells what becomes of it.", Status: contract.EventStatus(task.EventRunning), EventId: id,
		}, header: map[string]string{"Location": "/v1/events/" + id, "Retry-After": seconds(retrySoon)}}
	}
	if erased.Replayed {
		reply.header[replayedHeader] = "true"
	}
	return reply, nil
}
