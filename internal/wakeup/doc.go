// Package wakeup carries hints and notices over NATS. A hint says that a task may be claimed; a notice says that one has
// ended. Both only make things faster: PostgreSQL is the truth, and whoever waits for a hint or a notice also looks there.
//
// Rules it guards: a hint carries ids and trace context, no text and no secret; nothing here waits without a bound, NATS
// down or not; the stream and its consumers are created when missing and never changed; a hint's id is
// <task>:<hint_seq>, so that a second reason to run a task is never swallowed as a duplicate of the first; where TLS is
// asked for nothing goes in plain text; why there is no connection is said in words of its own, without an address.
//
// It is the only package that imports nats.go. Of this module it may import fault, failpoint, the domain and nats.
package wakeup
