package httpapi

import (
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi/contract"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// eventOf is the representation of an event. Results are shown of a succeeded one only, an error of one that
// hasn't succeeded.
func eventOf(e recall.Event) contract.Event {
	shown := contract.Event{
		Id: eventID(e.ID), EventType: contract.EventType(e.Kind), Status: contract.EventStatus(e.Status),
		Erased: e.Erased, Outcome: present(string(e.Outcome)), Results: []contract.EventResult{},
		Attempts: e.Attempts, MaxAttempts: e.MaxAttempts, Generation: e.Generation,
		Usage: contract.Usage{
			Reserved: e.Usage.Reserved, Settled: e.Usage.Settled, Released: e.Usage.Released,
			ProviderCalls: e.Usage.ProviderCalls, TokensIn: e.Usage.TokensIn, TokensOut: e.Usage.TokensOut,
		},
		CreatedAt: e.AcceptedAt.UTC(), UpdatedAt: e.UpdatedAt.UTC(), StartedAt: utc(e.StartedAt),
		CommittedAt: utc(e.CommittedAt), CompletedAt: utc(e.CompletedAt), NextAttemptAt: utc(e.NextAttemptAt),
	}
	if e.Scope != nil && !e.Erased {
		shown.Scope = &contract.EventScope{
			UserId: present(e.Scope.UserID), AgentId: present(e.Scope.AgentID), RunId: present(e.Scope.RunID),
			AppId: present(e.Scope.AppID),
		}
	}
	if p := e.Progress; p != nil {
		shown.Progress = &contract.Progress{Done: p.Done, Total: p.Total}
		if p.Line > 0 {
			shown.Progress.Line = &p.Line
		}
	}
	if e.Status == task.EventSucceeded {
		shown.Results = resultsOf(e.Results)
	} else {
		shown.Error = errorOf(e)
	}
	if e.Status.Terminal() && e.CompletedAt != nil {
		latency := e.CompletedAt.Sub(e.AcceptedAt).Milliseconds()
		shown.LatencyMs = &latency
	}
	return shown
}

// errorOf explains the last failure in the catalogue's words; nil without one.
func errorOf(e recall.Event) *contract.EventError {
	if e.ErrorCode == "" {
		return nil
	}
	said := task.Explain(e.ErrorCode)
	shown := &contract.EventError{
		Code: string(e.ErrorCode), Class: string(e.ErrorClass), Message: said.Message, Retryable: said.Retryable,
		Action: said.Action,
	}
	if e.InputGone {
		shown.Retryable, shown.Action = false, "The input has been removed. Send it as a new request."
	}
	return shown
}

func resultsOf(results []memory.Result) []contract.EventResult {
	shown := make([]contract.EventResult, len(results))
	for i, r := range results {
		shown[i] = contract.EventResult{
			Id: memoryID(r.RecordID), Event: contract.EventResultEvent(r.Change), Memory: r.Text,
		}
		if r.Error != "" {
			shown[i].Error = &contract.ItemError{Code: r.Error, Message: fault.Describe(fault.Code(r.Error)).Message}
		}
	}
	return shown
}
