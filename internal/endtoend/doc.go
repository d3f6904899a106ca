// Package endtoend holds the tests that run Holdfast as its users do: the real binaries as processes, a real
// PostgreSQL and NATS, HTTP from outside, and SIGKILL. It has no code of its own; it may import everything, and
// nothing imports it.
package endtoend
