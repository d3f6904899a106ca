package httpapi

import (
	"context"
	"net/http"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi/contract"
)

// AddMemories accepts an inferred add, or stores messages as they are.
func (s *Server) AddMemories(ctx context.Context, request contract.AddMemoriesRequestObject) (contract.AddMemoriesResponseObject, error) {
	body := request.Body
	add, err := command.NewAdd(command.AddInput{
		Messages: body.Messages, Content: body.Content, UserID: body.UserId, AgentID: body.AgentId, RunID: body.RunId,
		AppID: body.AppId, Infer: body.Infer, Metadata: body.Metadata, EventDate: body.EventDate, ExpiresAt: body.ExpiresAt,
		Instructions: body.Instructions, Ordered: body.Ordered, Categories: categoriesIn(body.Categories),
	})
	if err != nil {
		return nil, err
	}
	this := callOf(ctx)
	if !add.Infer {
		return s.writeNow(ctx, this, add)
	}
	if this.key == nil {
		return nil, fault.New(fault.IdempotencyKeyRequired)
	}
	receipt, err := s.deps.Accepter.Accept(ctx, this.caller, *this.key, add)
	if err != nil {
		return nil, err
	}
	id := eventID(receipt.EventID)
	header := map[string]string{"Location": "/v1/events/" + id, "Retry-After": seconds(retrySoon)}
	if receipt.Replayed {
		header[replayedHeader] = "true"
	}
	return answer{status: http.StatusAccepted, header: header, body: contract.AddReceipt{
		Message: "Accepted. The event tells what becomes of it.", Status: contract.EventStatus(receipt.Status), EventId: id,
	}}, nil
}

const replayedHeader = "Idempotent-Replayed"

func (s *Server) writeNow(ctx context.Context, this *call, add command.Add) (contract.AddMemoriesResponseObject, error) {
	stored, err := s.deps.Writer.Write(ctx, this.caller, this.key, add)
	if err != nil {
		return nil, err
	}
	reply := ok(contract.AddResult{EventId: eventID(stored.EventID), Results: resultsOf(stored.Results)})
	if stored.Replayed {
		reply.header = map[string]string{replayedHeader: "true"}
	}
	return reply, nil
}
