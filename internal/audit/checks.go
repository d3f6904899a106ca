package audit

import (
	"fmt"
	"slices"
	"strings"
)

// Check is one named question to the database.
type Check struct {
	Name string
	// Invariant is the one of the design that it proves.
	Invariant string
	// Proves says in words what holds when there is no finding.
	Proves string
}

// Names of the checks, for stores.
const (
	Keys        = "keys"
	Runs        = "runs"
	States      = "states"
	Leases      = "leases"
	Plans       = "plans"
	Results     = "results"
	Records     = "records"
	History     = "history"
	Outcomes    = "outcomes"
	Terms       = "terms"
	Vectors     = "vectors"
	Failed      = "failed"
	Closings    = "closings"
	Balances    = "balances"
	Checkpoints = "checkpoints"
	Input       = "input"
	Erased      = "erased"
	Leftovers   = "leftovers"
	Fences      = "fences"
	Attempts    = "attempts"
	Order       = "order"
	Heads       = "heads"
	Supersede   = "supersede"
	Tenancy     = "tenancy"
	Archive     = "archive"
	Webhooks    = "webhooks"
	Items       = "items"
	Acts        = "acts"
	Stuck       = "stuck"
)

// Checks returns the catalogue, in the order of the invariants.
func Checks() []Check {
	return []Check{
		{Keys, "I1", "every key has its event and every event its key, one to one"},
		{Runs, "I2, I7", "every event has one run for each generation, open while it has not ended, and ended as it has"},
		{States, "I3, I6", "status, stage, outcome, input and end of every event fit together"},
		{Leases, "I3", "an event has a lease exactly while it runs, and no expired one is left lying"},
		{Plans, "I4", "every commit has its plan, and its results are what the plan says"},
		{Results, "I4, I5", "every change that a commit tells of has its history, and the other way round, without gaps"},
		{Records, "I4, I5", "every memory comes from a result of its event and has its lane and time"},
		{History, "I4, I5", "every version of a memory has its history, and the memory is what the last one says"},
		{Outcomes, "I5", "the outcome of an event is what its results amount to"},
		{Terms, "I5", "every live memory can be found by its words as it reads now, and nothing else can"},
		{Vectors, "I5", "every live memory has its vector or waits for it, and nothing else has one"},
		{Failed, "I6", "an event without a commit has left nothing"},
		{Closings, "I7", "every run that ended was settled or released once, in full, and nothing else was"},
		{Balances, "I7", "balances are what the journal says, and holds are those of the open runs"},
		{Checkpoints, "I7", "the sums that reconciliation goes on from are those of the journal"},
		{Input, "I8", "nothing of an input is kept after success, after its retention, or in the archive"},
		{Erased, "I8", "what was erased names nobody, and a finished erase has left nothing of its lane"},
		{Leftovers, "I8", "no text is kept of a memory that is gone"},
		{Fences, "I8", "an erase has its fence exactly while it runs"},
		{Attempts, "I9", "every claim that ended has one attempt, and crashes end an event in time"},
		{Order, "I10", "commands of one lane were committed in the order in which they were accepted"},
		{Heads, "I10", "a lane whose commands wait has one head, the first of them"},
		{Supersede, "I10", "what was superseded was said before"},
		{Tenancy, "I12", "whatever belongs together belongs to one workspace"},
		{Archive, "I2, I8", "an event is in one table, and the archive holds only what has ended"},
		{Webhooks, "I2", "every delivery has its event and webhook, and no webhook is ahead of what has happened"},
		{Items, "I3", "an item points to the event of its revision, and only that one can still change it"},
		{Acts, "operators", "the log of acts tells of what was done to keys, credits, workspaces and events, and of nothing else"},
		{Stuck, "liveness", "what is due is done"},
	}
}

// selected returns the checks of the names, in the catalogue's order, all for none.
func selected(names []string) ([]Check, error) {
	all := Checks()
	if len(names) == 0 {
		return all, nil
	}
	known := make([]string, len(all))
	for i, check := range all {
		known[i] = check.Name
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("audit: there is no such check; there are %s", strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(all, func(c Check) bool { return !slices.Contains(names, c.Name) }), nil
}
