package task

import "github.com/google/uuid"

// Hint is a wakeup for one task: nothing but names, no text. Seq grows with every transaction that makes the
// task claimable, so that no hint is ever swallowed as a duplicate of an earlier reason.
type Hint struct {
	TaskID      uuid.UUID
	WorkspaceID uuid.UUID
	Seq         int64
	Priority    string
	// Origin is where in a trace the hint was published, zero for none.
	Origin Origin
}
