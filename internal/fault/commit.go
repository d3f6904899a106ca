package fault

import "errors"

// ErrCommitUnknown says that the answer to a COMMIT was lost: the transaction may or may not have happened.
// Who meets it repeats the same step, which finds out.
var ErrCommitUnknown = errors.New("the outcome of the commit is unknown")

// ErrLeaseLost says that the caller's lease on a task has ended: nothing was written, and nothing may be.
var ErrLeaseLost = errors.New("the lease is lost")
