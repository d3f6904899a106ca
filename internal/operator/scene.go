package operator

import "time"

// Scene is who works now and what failed lately, over all workspaces.
type Scene struct {
	Workers []BusyWorker
	// Failures are the newest of the last ten minutes, the newest first.
	Failures []RecentFailure
}

// BusyWorker is a worker that has leases.
type BusyWorker struct {
	Name   string
	Leases int
	// Expired of them have run out: the worker is late, or dead.
	Expired int
	// Longest is how long ago its oldest claim was made.
	Longest time.Duration
}

// RecentFailure is an event that failed.
type RecentFailure struct {
	At        time.Time
	Event     string
	Workspace string
	Code      string
}
