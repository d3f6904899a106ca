package task

import "fmt"

// Status says whether a task waits, runs or has ended.
type Status string

// The statuses as stored. Clients see the event's status, which is derived from it (API.md).
const (
	Pending   Status = "pending"
	Running   Status = "running"
	Succeeded Status = "succeeded"
	Failed    Status = "failed"
)

// Terminal tells whether the status ends a run.
func (s Status) Terminal() bool { return s == Succeeded || s == Failed }

// Stage says how far the effects of a task have come.
type Stage string

// The stages. Committed means that the canonical records exist, projected that their projections do too.
const (
	Accepted  Stage = "accepted"
	Committed Stage = "committed"
	Projected Stage = "projected"
)

// Kind names what a task executes.
type Kind string

// The kinds of durable work.
const (
	// Infer extracts facts from a conversation (an inferred add). Clients call it an event.
	Infer Kind = "memory_infer"
	// Add stores messages as they are (a verbatim add).
	Add Kind = "memory_add"
	// Update changes one record, Delete ends one; both are done when they are answered.
	Update Kind = "memory_update"
	Delete Kind = "memory_delete"
	// BatchUpdate and BatchDelete do the same to many, in chunks.
	BatchUpdate Kind = "memory_batch_update"
	BatchDelete Kind = "memory_batch_delete"
	// Item extracts facts from one revision of a caller's item.
	Item Kind = "memory_item"
	// Erase removes everything of a scope.
	Erase Kind = "scope_erase"
	// Export and Import move a workspace as a snapshot.
	Export Kind = "export"
	Import Kind = "import"
	// Webhook tells a receiver of the workspace's choice that an event has ended.
	Webhook Kind = "webhook_delivery"
)

// Kinds returns every kind, in the order in which documents list them.
func Kinds() []Kind {
	return []Kind{Infer, Add, Update, Delete, BatchUpdate, BatchDelete, Item, Erase, Export, Import, Webhook}
}

// EventStatus is what a client sees.
type EventStatus string

// The statuses of an event, by the database's clock.
const (
	EventPending   EventStatus = "PENDING"
	EventRunning   EventStatus = "RUNNING"
	EventRetrying  EventStatus = "RETRYING"
	EventSucceeded EventStatus = "SUCCEEDED"
	EventFailed    EventStatus = "FAILED"
)

// Terminal tells whether the event's run has ended.
func (s EventStatus) Terminal() bool { return s == EventSucceeded || s == EventFailed }

// ParseEventStatus returns the event status that text names, false if it names none.
func ParseEventStatus(text string) (EventStatus, bool) {
	switch s := EventStatus(text); s {
	case EventPending, EventRunning, EventRetrying, EventSucceeded, EventFailed:
		return s, true
	default:
		return "", false
	}
}

// Outcome says what a successful task did.
type Outcome string

// The outcomes. A failed task has none.
const (
	Stored    Outcome = "STORED"
	Unchanged Outcome = "UNCHANGED"
	NoMemory  Outcome = "NO_MEMORY"
	Partial   Outcome = "PARTIAL"
)

// Priority classes name the subject a task's hints travel on.
const (
	Interactive = "interactive"
	Bulk        = "bulk"
)

// State is the status and the stage together.
type State struct {
	Status Status
	Stage  Stage
}

func (s State) String() string { return fmt.Sprintf("%s/%s", s.Status, s.Stage) }

// Move names one permitted change of state.
type Move string

// The moves.
const (
	Claim       Move = "claim"        // a worker takes the lease
	Heartbeat   Move = "heartbeat"    // a worker extends its lease
	Commit      Move = "commit"       // the canonical records appear
	Settle      Move = "settle"       // the task succeeds and its hold is settled
	Fail        Move = "fail"         // the task fails and its hold is released
	Retry       Move = "retry"        // a worker gives up for now, with a recorded reason
	GiveBack    Move = "give_back"    // a worker hands the lease back, nothing spent
	Rescue      Move = "rescue"       // somebody else ends an expired lease
	Exhaust     Move = "exhaust"      // a task fails that crashed too often, or whose payload nobody can open any more
	Cancel      Move = "cancel"       // the caller ends it before the canonical commit
	ManualRetry Move = "manual_retry" // the caller authorises a new run of a failed task
)

// Step is one permitted transition.
type Step struct {
	Move Move
	From State
	To   State
}

// Moves returns the table of every permitted transition.
func Moves() []Step {
	pa, pc := State{Pending, Accepted}, State{Pending, Committed}
	ra, rc := State{Running, Accepted}, State{Running, Committed}
	ok, failed := State{Succeeded, Projected}, State{Failed, Accepted}
	return []Step{
		{Claim, pa, ra},
		{Claim, pc, rc},
		{Claim, ra, ra},
		{Claim, rc, rc},
		{Heartbeat, ra, ra},
		{Heartbeat, rc, rc},
		{Commit, ra, rc},
		{Settle, ra, ok},
		{Settle, rc, ok},
		{Fail, ra, failed},
		{Retry, ra, pa},
		{Retry, rc, pc},
		{GiveBack, ra, pa},
		{GiveBack, rc, pc},
		{Rescue, ra, pa},
		{Rescue, rc, pc},
		{Exhaust, ra, failed},
		{Exhaust, pa, failed},
		{Cancel, pa, failed},
		{Cancel, ra, failed},
		{ManualRetry, failed, pa},
	}
}

// Permits tells whether move may lead from one state to another.
func Permits(move Move, from, to State) bool {
	for _, s := range Moves() {
		if s.Move == move && s.From == from && s.To == to {
			return true
		}
	}
	return false
}
