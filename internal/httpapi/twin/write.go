package twin

import (
	"context"
	"unicode/utf8"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/write"
)

type addBody struct {
	Items []itemInput `json:"items"`
}

type itemInput struct {
	ID      *string `json:"id"`
	Text    string  `json:"text"`
	At      *string `json:"at"`
	Author  *string `json:"author"`
	Session *string `json:"session"`
}

type receipt struct {
	Items   []itemReceipt `json:"items"`
	Queued  int           `json:"queued"`
	Pending int           `json:"pending"`
}

type itemReceipt struct {
	ID      string `json:"id"`
	EventID string `json:"event_id"`
	Landed  bool   `json:"landed"`
}

func (h handlers) keep(ctx context.Context, call httpapi.Call) (any, error) {
	account, err := accountOf(call)
	if err != nil {
		return nil, err
	}
	key, err := command.ItemsKey(call.Header.Values("Idempotency-Key"))
	if err != nil {
		return nil, err
	}
	var body addBody
	if err := call.Read(&body); err != nil {
		return nil, err
	}
	inputs := make([]command.ItemInput, len(body.Items))
	for i, item := range body.Items {
		inputs[i] = command.ItemInput(item)
	}
	items, err := command.NewItems(account, key, inputs)
	if err != nil {
		return nil, err
	}
	kept, err := h.deps.Writer.Keep(ctx, call.Caller, account, items)
	if err != nil {
		return nil, err
	}
	answer := receipt{Items: make([]itemReceipt, len(kept.Items)), Queued: kept.Queued, Pending: kept.Pending}
	for i, item := range kept.Items {
		answer.Items[i] = itemReceipt(item)
	}
	return answer, nil
}

type forgetBody struct {
	IDs     []string `json:"ids"`
	Session *string  `json:"session"`
	All     bool     `json:"all"`
}

type forgotten struct {
	Events int  `json:"events"`
	Queue  *int `json:"queue"`
}

func (h handlers) forget(ctx context.Context, call httpapi.Call) (any, error) {
	account, err := accountOf(call)
	if err != nil {
		return nil, err
	}
	var body forgetBody
	if err := call.Read(&body); err != nil {
		return nil, err
	}
	what, err := forgetOf(body)
	if err != nil {
		return nil, err
	}
	done, err := h.deps.Writer.Forget(ctx, call.Caller, account, what)
	if err != nil {
		return nil, err
	}
	return forgotten(done), nil
}

// forgetOf takes exactly one way to say what is meant, so that no typing error erases everything.
func forgetOf(body forgetBody) (write.Forget, error) {
	ways := 0
	for _, given := range []bool{body.IDs != nil, body.Session != nil, body.All} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		return write.Forget{}, fault.At(fault.InvalidRequest, "", "exactly one of ids, session and all")
	}
	if body.IDs != nil {
		return write.Forget{IDs: body.IDs}, command.ItemIDs(body.IDs)
	}
	if body.All {
		return write.Forget{All: true}, nil
	}
	session, err := sessionOf(body.Session)
	if err == nil && session == "" {
		err = fault.At(fault.InvalidRequest, "/session", "at least one visible character")
	}
	return write.Forget{Session: session}, err
}

type correctBody struct {
	ID   string  `json:"id"`
	Text *string `json:"text"`
}

type corrected struct {
	ID      string  `json:"id"`
	EventID string  `json:"event_id"`
	Memory  *string `json:"memory"`
}

func (h handlers) correct(ctx context.Context, call httpapi.Call) (any, error) {
	account, err := accountOf(call)
	if err != nil {
		return nil, err
	}
	var body correctBody
	if err := call.Read(&body); err != nil {
		return nil, err
	}
	id, ok := httpapi.ParseMemoryID(body.ID)
	if !ok {
		return nil, fault.New(fault.MemoryNotFound)
	}
	if body.Text != nil && command.Blank(*body.Text) {
		return nil, fault.At(fault.InvalidRequest, "/text", "at least one visible character")
	}
	if body.Text != nil && utf8.RuneCountInString(*body.Text) > command.MaxItemText {
		return nil, fault.At(fault.InvalidRequest, "/text", "at most 100000 characters")
	}
	done, err := h.deps.Writer.Correct(ctx, call.Caller, account, id, body.Text)
	if err != nil {
		return nil, err
	}
	answer := corrected{ID: httpapi.MemoryID(id), EventID: httpapi.EventID(done.EventID)}
	if done.Record != nil {
		record := httpapi.MemoryID(*done.Record)
		answer.Memory = &record
	}
	return answer, nil
}
