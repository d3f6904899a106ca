package mem0

import (
	"context"
	"net/http"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
)

type erased struct {
	Message   string `json:"message"`
	Status    string `json:"status"`
	EventID   string `json:"event_id"`
	Deleted   int64  `json:"deleted"`
	Cancelled int64  `json:"cancelled"`
}

// removeAll erases a scope. Without one it is refused, always: that is where an empty id of a single memory ends.
func (h handlers) removeAll(ctx context.Context, call httpapi.GuestCall) (httpapi.GuestAnswer, error) {
	scope, err := queryScope(call.Query)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	return h.erase(ctx, call, scope)
}

// removeEntity erases everything of a user, agent, run or app.
//
// A query is refused but for the ids of the ping: a client that doesn't escape names makes one of "ada?x", whose path
// names ada.
func (h handlers) removeEntity(ctx context.Context, call httpapi.GuestCall) (httpapi.GuestAnswer, error) {
	for name := range call.Query {
		if !ofPing(name) {
			return httpapi.GuestAnswer{}, bad("", "no parameters: names are escaped in the path")
		}
	}
	scope, err := entityScope(call)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	return h.erase(ctx, call, scope)
}

func (h handlers) erase(ctx context.Context, call httpapi.GuestCall, scope memory.Scope) (httpapi.GuestAnswer, error) {
	done, err := h.deps.Eraser.Erase(ctx, call.Caller, call.Key, scope)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	shown := erased{
		Message: "Memories deleted successfully!", Status: string(task.EventSucceeded), EventID: done.EventID.String(),
		Deleted: done.Deleted, Cancelled: done.Cancelled,
	}
	reply := httpapi.GuestAnswer{Header: replayed(done.Replayed)}
	if !done.Finished {
		reply.Status = http.StatusAccepted
		shown.Message, shown.Status = "Memories are being deleted. The event tells when they are gone.", string(task.EventRunning)
	}
	reply.Body = shown
	return reply, nil
}

// entityScope reads type and id of an entity in a request's path.
func entityScope(call httpapi.GuestCall) (memory.Scope, error) {
	name := call.Param("id")
	if name == every {
		return memory.Scope{}, bad("/id", "an id: * stands for none here")
	}
	given, known := recall.EntityType(call.Param("type")).ScopeOf(name)
	if !known {
		return memory.Scope{}, fault.New(fault.RouteNotFound)
	}
	return command.NewScope(present(given.UserID), present(given.AgentID), present(given.RunID), present(given.AppID))
}
