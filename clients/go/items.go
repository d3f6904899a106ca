package holdfast

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"
)

// Items keeps what the caller has under ids of its own, for one account. An item's id is its identity: the same content
// again changes nothing, other content is an edit.
type Items struct {
	c       *Client
	account string
}

// NewItem is an item to keep.
type NewItem struct {
	// ID is the caller's, 1 to 512 characters. See [Items.Add] for items without one.
	ID   string
	Text string
	// At is when it was said, fixed by the first send. Two zones of one instant are two times.
	At time.Time
	// Author is who said it, Session where.
	Author, Session string
}

type itemBody struct {
	ID      string     `json:"id,omitempty"`
	Text    string     `json:"text"`
	At      *time.Time `json:"at,omitempty"`
	Author  string     `json:"author,omitempty"`
	Session string     `json:"session,omitempty"`
}

// ItemsReceipt is the answer to items that were added.
type ItemsReceipt struct {
	// Items are those of the call, in its order.
	Items []ItemReceipt `json:"items"`
	// Queued is how many this call queued, Pending how many of the account wait.
	Queued  int `json:"queued"`
	Pending int `json:"pending"`
	// Key is the Idempotency-Key that named the items without an id, empty if it took none.
	Key string `json:"-"`
}

// ItemReceipt names one item.
type ItemReceipt struct {
	ID string `json:"id"`
	// EventID is the same for every send; [Events.Wait] takes it.
	EventID string `json:"event_id"`
	// Landed tells whether the memories of its present content are there.
	Landed bool `json:"landed"`
}

// Add keeps up to 500 items, all of them or none. An item without an ID is named by the key and its place in the call:
// the one of [WithKey], or else, if an item has neither ID nor At, a new one. Without any key an item is named by its
// words, author, session and time. Sent again with the same ids or key, it is the same items.
func (i *Items) Add(ctx context.Context, items []NewItem, opts ...CallOption) (*ItemsReceipt, error) {
	w := call{op: "add items", method: http.MethodPost, path: "/v1/memory/add", write: true, repeat: true}
	for _, opt := range opts {
		opt(&w)
	}
	bodies := make([]itemBody, len(items))
	for n, item := range items {
		if err := checkText(item.ID, item.Text, item.Author, item.Session); err != nil {
			return nil, err
		}
		bodies[n] = itemBody{ID: item.ID, Text: item.Text, At: timeOf(item.At), Author: item.Author, Session: item.Session}
		if item.ID == "" && item.At.IsZero() && !w.keyed {
			w.key, w.keyed = NewKey(), true
		}
	}
	var err error
	if w.header, err = i.header(); err != nil {
		return nil, err
	}
	if w.keyed {
		if err := checkKey(w.key); err != nil {
			return nil, err
		}
		w.header["Idempotency-Key"] = w.key // never quoted: here it is a part of names
	}
	if w.body, err = encode(w.op, map[string]any{"items": bodies}); err != nil {
		return nil, err
	}
	receipt, err := answer[ItemsReceipt](ctx, i.c, w)
	if err != nil {
		return nil, err
	}
	receipt.Key = w.key
	return receipt, nil
}

// Forgotten is how much was erased by a call.
type Forgotten struct {
	Items int `json:"events"`
	// Waiting is how many of them were still waiting; nil when not all could be cleared: call again.
	Waiting *int `json:"queue"`
}

// Forget erases items with everything that was made of them. What an attempt without an answer has erased is not counted
// again.
func (i *Items) Forget(ctx context.Context, ids ...string) (*Forgotten, error) {
	if ids == nil {
		ids = []string{}
	}
	return i.forget(ctx, map[string]any{"ids": ids})
}

// ForgetSession erases all items of a session, as Forget does.
func (i *Items) ForgetSession(ctx context.Context, session string) (*Forgotten, error) {
	return i.forget(ctx, map[string]any{"session": session})
}

// ForgetAll erases all items of the account, as Forget does.
func (i *Items) ForgetAll(ctx context.Context) (*Forgotten, error) {
	return i.forget(ctx, map[string]any{"all": true})
}

func (i *Items) forget(ctx context.Context, body any) (*Forgotten, error) {
	w := call{op: "forget items", method: http.MethodPost, path: "/v1/memory/forget", write: true, repeat: true}
	return unkeyed[Forgotten](ctx, i, w, body)
}

// Correction is the answer to a correction.
type Correction struct {
	// ID is the memory that was retracted.
	ID      string `json:"id"`
	EventID string `json:"event_id"`
	// Memory is the id of what was stored in its place, empty without a text.
	Memory string `json:"memory"`
}

// Correct retracts a memory, by its id, and stores the text in its place unless it is empty. It is sent once: a memory
// that has been retracted is MEMORY_NOT_FOUND.
func (i *Items) Correct(ctx context.Context, memory, text string) (*Correction, error) {
	body := map[string]any{"id": memory}
	if text != "" {
		body["text"] = text
	}
	if err := checkText(memory, text); err != nil {
		return nil, err
	}
	w := call{op: "correct", method: http.MethodPost, path: "/v1/memory/correct", write: true, repeat: true, once: true}
	return unkeyed[Correction](ctx, i, w, body)
}

// unkeyed sends a write that has no key.
func unkeyed[T any](ctx context.Context, i *Items, w call, body any) (*T, error) {
	var err error
	if w.header, err = i.header(); err != nil {
		return nil, err
	}
	if w.body, err = encode(w.op, body); err != nil {
		return nil, err
	}
	return answer[T](ctx, i.c, w)
}

func (i *Items) header() (map[string]string, error) {
	if !oneLine(i.account) {
		return nil, errors.New("holdfast: an account has no control characters")
	}
	return map[string]string{"X-Twin-Account": i.account}, nil
}

// oneLine tells whether a text can be sent as a header.
func oneLine(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r < 0x20 || r == 0x7f }) < 0
}
