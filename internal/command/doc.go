// Package command is what a caller asked for: limits, strict reading, normalising, the idempotency key's rules
// and the fingerprint that tells whether two requests are the same command. It is pure: no clock, no I/O.
//
// Rules it guards: input is either a valid command or a fault with pointer and rule, never with the value;
// equal commands have equal fingerprints whatever their member order, white space and spelled-out defaults
// (I1). It may import fault, memory and JSON libraries.
package command
