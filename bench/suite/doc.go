// Package suite is the order of a run: what is measured beside what, in how many rounds, and which rows of the target
// table that makes. Every case runs once in each round, in an order that the seed decides, and a row is the ratio of
// cases of the same round.
package suite
