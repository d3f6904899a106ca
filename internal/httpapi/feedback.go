package httpapi

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi/contract"
)

// Feedbacks keeps what readers say of memories.
type Feedbacks interface {
	Give(ctx context.Context, caller access.Caller, feedback command.Feedback) (*time.Time, error)
}

// GiveFeedback keeps what a reader says of one live memory, or takes it back.
func (s *Server) GiveFeedback(ctx context.Context, request contract.GiveFeedbackRequestObject) (contract.GiveFeedbackResponseObject, error) {
	id, err := uuid.Parse(request.Id) // the guard has left a plain UUID here
	if err != nil {
		return nil, fault.New(fault.MemoryNotFound)
	}
	feedback, err := command.NewFeedback(id, (*string)(request.Body.Feedback), request.Body.Reason)
	if err != nil {
		return nil, err
	}
	at, err := s.deps.Feedbacks.Give(ctx, callOf(ctx).caller, feedback)
	if err != nil {
		return nil, err
	}
	return ok(contract.Feedback{
		Id: memoryID(id), Feedback: (*contract.FeedbackFeedback)(feedback.Verdict), Reason: feedback.Reason, UpdatedAt: utc(at),
	}), nil
}
