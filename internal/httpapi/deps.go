package httpapi

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// Authenticator answers who an API key is: a fault INVALID_API_KEY for an unknown, wrong or revoked one,
// API_KEY_EXPIRED for an expired one.
type Authenticator interface {
	Authenticate(ctx context.Context, key access.Key) (access.Caller, error)
}

// Accepter accepts inferred adds.
type Accepter interface {
	Accept(ctx context.Context, caller access.Caller, key command.Key, add command.Add) (write.Receipt, error)
}

// Writer stores messages as they are; key is nil for a call without one.
type Writer interface {
	Write(ctx context.Context, caller access.Caller, key *command.Key, add command.Add) (write.Stored, error)
}

// Changer changes and ends single records at once; key is nil for a call without one.
type Changer interface {
	Change(ctx context.Context, caller access.Caller, key *command.Key, change command.Change) (write.Changed, error)
}

// Batcher accepts changes of many records.
type Batcher interface {
	Accept(ctx context.Context, caller access.Caller, key *command.Key, batch command.Batch) (write.Receipt, error)
}

// Retrier authorises a new run of a failed event. It answers true for a key that was used for this before.
type Retrier interface {
	Retry(ctx context.Context, caller access.Caller, event uuid.UUID, generation *int, key *command.Key) (replayed bool, err error)
}

// Canceller ends an event before it commits.
type Canceller interface {
	Cancel(ctx context.Context, caller access.Caller, event uuid.UUID) error
}

// Events reads events and waits for them.
type Events interface {
	Get(ctx context.Context, workspace, id uuid.UUID) (recall.Event, error)
	List(ctx context.Context, workspace uuid.UUID, query recall.EventQuery) (recall.EventPage, error)
	ByKey(ctx context.Context, workspace uuid.UUID, keyHash [sha256.Size]byte) (recall.Event, bool, error)
	Wait(ctx context.Context, workspace, id uuid.UUID, wait time.Duration, enough func(recall.Event) bool) (recall.Event, error)
}

// Eraser removes everything of a scope; key is nil for a call without one.
type Eraser interface {
	Erase(ctx context.Context, caller access.Caller, key *command.Key, scope memory.Scope) (write.Erased, error)
}

// ItemEvents finds the latest task of an item by the item's event id, or answers a fault EVENT_NOT_FOUND.
type ItemEvents interface {
	TaskOf(ctx context.Context, workspace uuid.UUID, eventID string) (uuid.UUID, error)
}

// Memories reads records.
type Memories interface {
	Get(ctx context.Context, workspace, id uuid.UUID) (memory.Record, error)
	List(ctx context.Context, workspace uuid.UUID, query recall.MemoryQuery) (recall.MemoryPage, error)
	History(ctx context.Context, workspace uuid.UUID, query recall.HistoryQuery) (recall.History, error)
}

// Entities reads who has live records.
type Entities interface {
	List(ctx context.Context, workspace uuid.UUID, query recall.EntityQuery) (recall.EntityPage, error)
	Get(ctx context.Context, workspace uuid.UUID, kind recall.EntityType, id string) (recall.Entity, error)
}

// Searcher finds records.
type Searcher interface {
	Search(ctx context.Context, workspace uuid.UUID, query recall.SearchQuery) ([]memory.Record, error)
}

// Credits reads accounts.
type Credits interface {
	Balance(ctx context.Context, workspace uuid.UUID) (credit.Balance, error)
	Entries(ctx context.Context, workspace uuid.UUID, after *recall.EntryPlace, limit int) (recall.EntryPage, error)
}

// Health judges the service. With an error it answers the verdict that follows from it.
type Health interface {
	Check(ctx context.Context) (recall.Verdict, error)
}

// Deps are the use cases that the API serves, all of them required, and its logger.
type Deps struct {
	Authenticator Authenticator
	Accepter      Accepter
	Writer        Writer
	Changer       Changer
	Batcher       Batcher
	Eraser        Eraser
	Mover         Mover
	Exports       Exports
	Retrier       Retrier
	Canceller     Canceller
	Events        Events
	ItemEvents    ItemEvents
	Memories      Memories
	Entities      Entities
	Searcher      Searcher
	Credits       Credits
	Policies      Policies
	Feedbacks     Feedbacks
	Health        Health
	Webhooks      Webhooks
	WebhookReader WebhookReader
	Replayer      Replayer
	Streams       Streams
	Log           zerolog.Logger
}

func (d Deps) validate() error {
	for name, missing := range map[string]bool{
		"authenticator": d.Authenticator == nil, "accepter": d.Accepter == nil, "writer": d.Writer == nil,
		"retrier": d.Retrier == nil, "canceller": d.Canceller == nil, "events": d.Events == nil,
		"item events": d.ItemEvents == nil,
		"eraser":      d.Eraser == nil, "mover": d.Mover == nil, "exports": d.Exports == nil,
		"changer": d.Changer == nil, "batcher": d.Batcher == nil, "entities": d.Entities == nil,
		"memories": d.Memories == nil, "searcher": d.Searcher == nil, "credits": d.Credits == nil,
		"health": d.Health == nil, "webhooks": d.Webhooks == nil, "webhook reader": d.WebhookReader == nil, "replayer": d.Replayer == nil, "streams": d.Streams == nil, "policies": d.Policies == nil, "feedbacks": d.Feedbacks == nil,
	} {
		if missing {
			return errors.New("httpapi: " + name + " is required")
		}
	}
	return nil
}
