// Package peers runs the systems that Holdfast is measured beside, each as its own documentation advises and with its
// fastest settings: a bare INSERT, pgbench, River, DBOS, graphile-worker, pg-boss and mem0's engine.
//
// Where a peer does the same work as Holdfast it writes the same rows and the same ledger (books.go). It imports
// nothing of Holdfast.
package peers
