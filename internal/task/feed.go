package task

import (
	"time"

	"github.com/google/uuid"
)

// FeedPlace is a place in the feed of a workspace: behind one entry, or, with an XID alone, before everything of that
// transaction and later ones. Places of one database are in order: XID, then TaskID, Generation and Claim. The zero
// place is the beginning. XID never wraps around.
type FeedPlace struct {
	XID        uint64
	TaskID     uuid.UUID
	Generation int
	Claim      int // 0 for the end of a run
}

// FeedOutcome says what the feed tells of a task.
type FeedOutcome string

// The outcomes. Retrying is one claim that ended without an outcome, after which the task is tried again.
const (
	FeedSucceeded FeedOutcome = "succeeded"
	FeedFailed    FeedOutcome = "failed"
	FeedRetrying  FeedOutcome = "retrying"
)

// FeedEntry tells that a run of a task ended, or that it is tried again. What the task looks like now is read like any
// event, by Place.TaskID: it may have moved on, or be gone.
type FeedEntry struct {
	Place   FeedPlace
	Kind    Kind
	Outcome FeedOutcome
	At      time.Time // by the database's clock; the order of entries is that of their places
}

// FeedPage is what a feed has behind a place. The next page begins at Next, which lies behind Entries also when there
// are none: what is gone or isn't told is passed over. More tells that there is more to read at once.
type FeedPage struct {
	Entries []FeedEntry
	Next    FeedPlace
	More    bool
	// Held is how long the oldest end waits that is committed but can't be told yet, because a transaction that began
	// earlier is still open somewhere in the database server; zero when none waits.
	Held time.Duration
}
