package events

import (
	"strconv"

	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/frame"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

// question is a page that asks whether something is to be done, and says what it costs.
type question struct {
	recall.Event
	Here    string
	Cost    credit.Amount
	Balance credit.Balance
	// Possible is false when there is nothing to do any more.
	Possible bool
	// Short tells that the account has too little.
	Short bool
}

func (s section) question(v *frame.Visit) (question, error) {
	event, err := s.read(v)
	if err != nil {
		return question{}, err
	}
	balance, err := s.deps.Balances.Balance(v.Context(), v.Workspace())
	return question{Event: event, Here: here(v, event.ID), Balance: balance}, err
}

func (s section) askRetry(v *frame.Visit) (frame.Answer, error) {
	q, err := s.question(v)
	if err != nil {
		return frame.Answer{}, err
	}
	q.Cost = s.deps.Prices.Of(q.Kind, v.Caller.Workspace.Metered)
	q.Possible, q.Short = retryable(q.Event), q.Cost > q.Balance.Available
	return frame.Answer{Title: "Retry event", Template: "retry.html", Data: q}, nil
}

// retry names the run that its page has seen fail: pressed twice it is one retry.
func (s section) retry(v *frame.Visit) (frame.Answer, error) {
	event, err := s.read(v)
	if err != nil {
		return frame.Answer{}, err
	}
	generation, err := strconv.Atoi(v.Request.PostForm.Get("generation"))
	if err != nil || generation < 1 {
		return frame.Answer{}, fault.At(fault.InvalidRequest, "/generation", "the run that failed")
	}
	if _, err := s.deps.Retrier.Retry(v.Context(), v.Caller, event.ID, &generation, nil); err != nil {
		return frame.Answer{}, err
	}
	return frame.Answer{To: here(v, event.ID) + "?done=retried"}, nil
}

func (s section) askCancel(v *frame.Visit) (frame.Answer, error) {
	q, err := s.question(v)
	if err != nil {
		return frame.Answer{}, err
	}
	q.Cost, q.Possible = q.Usage.Reserved, cancellable(q.Event)
	return frame.Answer{Title: "Cancel event", Template: "cancel.html", Data: q}, nil
}

func (s section) cancel(v *frame.Visit) (frame.Answer, error) {
	event, err := s.read(v)
	if err != nil {
		return frame.Answer{}, err
	}
	if err := s.deps.Canceller.Cancel(v.Context(), v.Caller, event.ID); err != nil {
		return frame.Answer{}, err
	}
	return frame.Answer{To: here(v, event.ID) + "?done=cancelled"}, nil
}
