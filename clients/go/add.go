package holdfast

import (
	"context"
	"errors"
	"net/http"
	"time"
	"unicode/utf8"
)

// AddRequest is something to remember: Messages or Content, and a scope.
type AddRequest struct {
	Scope
	Messages []Message
	// Content is short for one message of a user.
	Content string
	// Metadata is kept with each memory, value for value: anything that encodes to a JSON object.
	Metadata any
	// EventDate is when it took place, if that isn't now.
	EventDate time.Time
	// ExpiresAt is from when on the memories are not shown any more.
	ExpiresAt time.Time
	// Instructions are wishes for the extraction of this conversation.
	Instructions string
	// Categories are what the memories may be filed under, in place of the workspace's.
	Categories []Category
	// Unordered lets it take effect before earlier writes of the same scope.
	Unordered bool
}

type addBody struct {
	Scope
	Messages     []Message  `json:"messages,omitempty"`
	Content      string     `json:"content,omitempty"`
	Metadata     any        `json:"metadata,omitempty"`
	EventDate    *time.Time `json:"event_date,omitempty"`
	ExpiresAt    *time.Time `json:"expires_at,omitempty"`
	Instructions string     `json:"instructions,omitempty"`
	Categories   []Category `json:"categories,omitempty"`
	Ordered      *bool      `json:"ordered,omitempty"`
	Infer        *bool      `json:"infer,omitempty"`
}

func (r AddRequest) body() (addBody, error) {
	body := addBody{
		Scope: r.Scope, Messages: r.Messages, Content: r.Content, Metadata: r.Metadata, Instructions: r.Instructions,
		Categories: r.Categories, EventDate: timeOf(r.EventDate), ExpiresAt: timeOf(r.ExpiresAt),
	}
	if r.Unordered {
		body.Ordered = new(bool)
	}
	texts := []string{r.Content, r.Instructions, r.UserID, r.AgentID, r.RunID, r.AppID}
	for _, message := range r.Messages {
		texts = append(texts, message.Role, message.Content, message.Name)
	}
	for _, category := range r.Categories {
		texts = append(texts, category.Name, category.Description)
	}
	return body, checkText(texts...)
}

// Verbatim is the answer to a write that was stored as it is.
type Verbatim struct {
	Results []Result `json:"results"`
	EventID string   `json:"event_id"`
	// Key is the Idempotency-Key that it was stored under.
	Key string `json:"-"`
	// Replayed tells that the key was known and nothing new was written.
	Replayed bool `json:"-"`
}

// Add gives a conversation to the service, which extracts what is worth remembering. It returns when that is accepted,
// durably and once; the event tells what becomes of it.
func (c *Client) Add(ctx context.Context, add AddRequest, opts ...CallOption) (*Receipt, error) {
	body, err := add.body()
	if err != nil {
		return nil, err
	}
	w, err := keyedWrite("add", http.MethodPost, "/v1/memories", body, opts)
	if err != nil {
		return nil, err
	}
	return c.accept(ctx, w)
}

// AddAndWait is Add and then [Events.Wait]. The event is nil until it has been seen; its Key, like that of every error,
// is the one that the conversation was added under.
func (c *Client) AddAndWait(ctx context.Context, add AddRequest, opts ...CallOption) (*Event, error) {
	receipt, err := c.Add(ctx, add, opts...)
	if err != nil {
		return nil, err
	}
	return c.Events.wait(ctx, receipt.EventID, receipt.Key)
}

// AddVerbatim stores each message as one memory, as it is and at once. No model reads it.
func (c *Client) AddVerbatim(ctx context.Context, add AddRequest, opts ...CallOption) (*Verbatim, error) {
	body, err := add.body()
	if err != nil {
		return nil, err
	}
	body.Infer = new(bool)
	w, err := keyedWrite("add verbatim", http.MethodPost, "/v1/memories", body, opts)
	if err != nil {
		return nil, err
	}
	stored, got, err := send[Verbatim](ctx, c, w)
	if err != nil {
		return nil, err
	}
	stored.Key, stored.Replayed = w.key, got.replayed()
	return stored, nil
}

// accept sends a write that is answered with a receipt.
func (c *Client) accept(ctx context.Context, w call) (*Receipt, error) {
	receipt, got, err := send[Receipt](ctx, c, w)
	if err != nil {
		return nil, err
	}
	receipt.Key, receipt.Replayed = w.key, got.replayed()
	return receipt, nil
}

// checkText refuses what the encoder would silently replace.
func checkText(texts ...string) error {
	for _, text := range texts {
		if !utf8.ValidString(text) {
			return errors.New("holdfast: a text is not valid UTF-8")
		}
	}
	return nil
}

func timeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
