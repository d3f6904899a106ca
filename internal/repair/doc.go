// Package repair finds what nobody works on: expired leases, exhausted tasks, due tasks without a hint, input and
// events whose time is over, missing NATS topology, and books that do not agree.
//
// Rules it guards: repair finds, then calls the same move as everyone else and has no change of state of its own;
// every row is taken by a compare-and-set on what was seen, so that any number of repairers at once is harmless; one
// poisoned row never stops the rest of a pass, one failing pass never stops the others; every pass is bounded in rows
// and in time and goes on where it stopped; all deadlines are decided by the database's clock (I11). Money is only
// looked at here, never moved.
//
// It may import the domain packages and internal/worker for the words of the moves.
package repair
