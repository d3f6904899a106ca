// Package chaos is the kill harness: it runs Holdfast as real processes under seeded traffic, breaks everything that can
// break while the traffic runs, heals, waits for quiet, and then holds what is stored against what callers were told.
//
// Rules it guards: I1 to I12 from outside, with the same eyes as a caller (receipts, events) and as an operator (tables,
// logs, store, metrics). Every choice of traffic and faults comes from one seed, in a stream of its own for each actor, so
// that a failure can be replayed; what the scheduler does with it cannot. Every wait is bounded, and nothing is left
// running.
//
// Only its own tests run it (`make chaos`, docs/chaos.md). It may import everything below cmd.
package chaos
