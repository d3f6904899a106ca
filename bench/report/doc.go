// Package report holds the target table and what a run found for it, and prints both.
//
// It imports nothing of Holdfast and of the bench only what describes the machine.
package report
