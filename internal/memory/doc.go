// Package memory is the domain of what is remembered: scopes and lanes, records and their history, plans, and
// how a text is folded and cut into terms. It is pure: no clock, no I/O.
//
// Rules it guards: a lane is the exact scope tuple (I10); record ids come from the plan (I4); a history id is
// derived from task and ordinal, so that writing it twice is one row. It may import fault and text libraries.
package memory
