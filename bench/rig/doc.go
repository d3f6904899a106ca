// Package rig is the bench's own machine room: a private PostgreSQL that is set as in production (fsync on, on a real
// disk), NATS in this process, the built binaries, and what is counted at them: bytes of write-ahead log, flushes,
// statements, round trips and the CPU that others took meanwhile.
//
// Rules it guards: it touches no server that it did not start, and everything it starts ends with this process. It may
// import internal/localdev and internal/postgres of Holdfast.
package rig
