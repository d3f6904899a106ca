package access

import (
	"context"

	"github.com/google/uuid"
)

// Actor is who does something that the log of acts keeps.
type Actor struct {
	// Name is key:ID, operator:NAME, user:NAME for a user of the operating system, or system.
	Name string
	// Origin is the address that the request came from, or cli.
	Origin string
	// RequestID is the request's, empty without one.
	RequestID string
	// Occasion tells this request or command from all others: what it repeats because an answer got lost is one act.
	Occasion uuid.UUID
	// Bulk is the bulk that the act is one of, the zero id for an act by itself.
	Bulk uuid.UUID
}

type actorKey struct{}

// As returns a context whose acts are the actor's. An actor without an occasion gets a new one.
func As(ctx context.Context, actor Actor) context.Context {
	if actor.Occasion == uuid.Nil {
		actor.Occasion = uuid.New()
	}
	return context.WithValue(ctx, actorKey{}, actor)
}

// ActorOf returns who acts in ctx: system, each time on an occasion of its own, when nobody is named.
func ActorOf(ctx context.Context) Actor {
	if actor, ok := ctx.Value(actorKey{}).(Actor); ok {
		return actor
	}
	return Actor{Name: "system", Origin: "process", Occasion: uuid.New()}
}
