// Package audit looks whether a database is as Holdfast promises: every invariant of the design is a named check over
// one snapshot, and what contradicts it is told with the events that it is about.
//
// Rules it guards: an audit only reads, and a state that the service reaches lawfully, however busy it is, is never a
// finding; a check that could not be finished is never clean; the audit's whole time is bounded, because its snapshot
// holds back vacuum. Deadlines are decided by the database's clock as it was when the snapshot was taken (I11).
//
// It imports nothing of Holdfast.
package audit
