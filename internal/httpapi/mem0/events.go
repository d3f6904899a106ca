package mem0

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// event is one durable command. What was sent is nowhere in it.
type event struct {
	ID          string         `json:"id"`
	EventType   string         `json:"event_type"`
	Status      string         `json:"status"`
	Outcome     *string        `json:"outcome"`
	Payload     map[string]any `json:"payload"`
	Metadata    map[string]any `json:"metadata"`
	Results     []result       `json:"results"`
	CreatedAt   time.Time      `json:"created_at"`
	UpdatedAt   time.Time      `json:"updated_at"`
	StartedAt   *time.Time     `json:"started_at"`
	CompletedAt *time.Time     `json:"completed_at"`
	Latency     *int64         `json:"latency"`
	GraphStatus *string        `json:"graph_status"`
	Attempts    int            `json:"attempts"`
	Message     *string        `json:"message"`
	Error       *string        `json:"error"`
	ErrorCode   *string        `json:"error_code"`
	Retryable   *bool          `json:"retryable"`
}

func eventOf(e recall.Event) event {
	shown := event{
		ID: e.ID.String(), EventType: eventType(e.Kind), Status: statusOf(e.Status), Outcome: present(string(e.Outcome)),
		Payload: map[string]any{}, Metadata: map[string]any{}, Results: []result{}, CreatedAt: e.AcceptedAt.UTC(),
		UpdatedAt: e.UpdatedAt.UTC(), StartedAt: e.StartedAt, CompletedAt: e.CompletedAt, Attempts: e.Attempts,
	}
	if e.Scope != nil && !e.Erased {
		for name, id := range map[string]string{
			"user_id": e.Scope.UserID, "agent_id": e.Scope.AgentID, "run_id": e.Scope.RunID, "app_id": e.Scope.AppID,
		} {
			if id != "" {
				shown.Payload[name] = id
			}
		}
	}
	if e.Status == task.EventSucceeded {
		shown.Results = resultsOf(e.Results)
	} else if e.ErrorCode != "" {
		said := task.Explain(e.ErrorCode)
		retryable := said.Retryable && !e.InputGone
		shown.Message, shown.Error, shown.ErrorCode, shown.Retryable = &said.Message, &said.Message, present(string(e.ErrorCode)), &retryable
	}
	if e.Status.Terminal() && e.CompletedAt != nil {
		took := e.CompletedAt.Sub(e.AcceptedAt).Milliseconds()
		shown.Latency = &took
	}
	return shown
}

// eventType is the clients' name of a kind of work, our own in capitals if they have none.
func eventType(kind task.Kind) string {
	switch kind {
	case task.Infer, task.Add, task.Item:
		return "ADD"
	case task.Update, task.BatchUpdate:
		return "UPDATE"
	case task.Delete, task.BatchDelete:
		return "DELETE"
	case task.Erase:
		return "DELETE_ALL"
	case task.Export, task.Import, task.Webhook:
	}
	return strings.ToUpper(string(kind))
}

// shownKinds are the kinds of work that a list of events shows.
func shownKinds() []task.Kind {
	return []task.Kind{
		task.Infer, task.Add, task.Item, task.Update, task.Delete, task.BatchUpdate, task.BatchDelete, task.Erase,
	}
}

// getEvent answers one event.
func (h handlers) getEvent(ctx context.Context, call httpapi.GuestCall) (httpapi.GuestAnswer, error) {
	id, err := uuid.Parse(strings.TrimPrefix(call.Param("id"), "evt_"))
	if err != nil {
		return httpapi.GuestAnswer{}, fault.New(fault.EventNotFound)
	}
	found, err := h.deps.Events.Get(ctx, call.Caller.Workspace.ID, id)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	return httpapi.GuestAnswer{Body: eventOf(found)}, nil
}

// listEvents answers one page of events, newest first.
func (h handlers) listEvents(ctx context.Context, call httpapi.GuestCall) (httpapi.GuestAnswer, error) {
	page, _, err := pageOf(call.Query)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	found, err := h.deps.Browser.Events(ctx, call.Caller.Workspace.ID, shownKinds(), reached(page))
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	results := make([]event, len(found.Events))
	for i, e := range found.Events {
		results[i] = eventOf(e)
	}
	shown, err := answer(call, page, found.Total, results)
	return httpapi.GuestAnswer{Body: shown}, err
}
