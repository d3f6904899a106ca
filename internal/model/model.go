// Package model defines what a worker needs of a language model: facts out of a conversation, vectors out of
// texts, and errors that are already classified. The strict parser of answers lives here, so that every
// adapter reads answers alike. The packages below it talk to providers.
//
// Rules it guards: an error is classified once, where it happens; provider text never becomes a message of
// ours; invalid output is never mistaken for an empty one; a credential never shows itself. It may import task,
// memory, text libraries and net/http, whose statuses and headers it classifies for all adapters alike.
package model

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// Message is one turn of a conversation.
type Message struct {
	Role    string
	Name    string
	Content string
}

// Request is one extraction. Instructions are the caller's own wishes for it, Said is when the conversation
// was accepted, EventDate when it took place as far as the caller says. Prompt is the version of the prompt to use;
// the newest takes the place of one that this build doesn't know.
type Request struct {
	Prompt       string
	Messages     []Message
	Instructions string
	Said         time.Time
	EventDate    *time.Time
	// Categories are what facts may be filed under; none if it is empty.
	Categories []memory.Category
	// Known is what the scope knows already. A fact may name one of them, by its number, as superseded.
	Known []Known
}

// Known is one statement that is remembered already, under a short number of this request.
type Known struct {
	Number int
	Text   string
	Said   time.Time
}

// Fact is one statement worth remembering. Only Text is always set.
type Fact struct {
	Text      string
	Type      memory.FactType
	EventDate *time.Time
	// Categories are names of the request's categories, each once, in their order there.
	Categories []string
	// Supersedes is the number of the known statement that this one makes outdated, 0 for none.
	Supersedes int
}

// Usage counts what calls to a provider cost. Calls counts requests that were sent, answered or not.
type Usage struct {
	Calls     int
	TokensIn  int64
	TokensOut int64
	Duration  time.Duration
}

// Plus returns the sum of both.
func (u Usage) Plus(v Usage) Usage {
	return Usage{u.Calls + v.Calls, u.TokensIn + v.TokensIn, u.TokensOut + v.TokensOut, u.Duration + v.Duration}
}

// Extraction is a valid answer. No facts means that the model found nothing worth remembering.
type Extraction struct {
	Facts []Fact
	Usage Usage
}

// Extractor turns conversations into facts. One call of Extract is one attempt: adapters don't retry.
type Extractor interface {
	// Extract returns a valid extraction, or an *Error that carries the usage so far.
	Extract(ctx context.Context, request Request) (Extraction, error)
	// Provider names the account or server that shares limits and outages, for pauses; it holds no secret.
	Provider() string
	// Local tells that a call is cheap, cannot block on a network and never fails for reasons of availability.
	Local() bool
	// Check tells whether the provider can be reached and takes the credentials, without cost where possible.
	Check(ctx context.Context) error
}

// Vector is one embedding, of unit length.
type Vector []float32

// Embedding is the answer to one Embed call: a vector per text, nil where the embedder refuses that text for
// good.
type Embedding struct {
	Vectors []Vector
	Usage   Usage
}

// Embedder turns texts into vectors.
type Embedder interface {
	// Embed returns one vector for each text, or an *Error.
	Embed(ctx context.Context, texts []string) (Embedding, error)
	// Model names what made the vectors; vectors of different models are never compared.
	Model() string
	Provider() string
	Local() bool
	Check(ctx context.Context) error
}

// Error is a classified failure of a provider call. Its text never holds anything the provider said.
type Error struct {
	Class      task.Class
	RetryAfter time.Duration
	Usage      Usage
	// Status is the provider's HTTP status, 0 without an answer.
	Status int
	// Reason is our own short word for logs, such as "truncated" or "refusal".
	Reason string
	cause  error
}

// NewError returns a classified failure; cause is kept for errors.Is and must not be logged with its text.
func NewError(class task.Class, reason string, cause error) *Error {
	return &Error{Class: class, Reason: reason, cause: cause}
}

func (e *Error) Error() string {
	return fmt.Sprintf("model call: %s (%s, status %d)", e.Class, e.Reason, e.Status)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.cause }
