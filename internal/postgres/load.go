package postgres

import "time"

// Load is how busy a pool of connections is.
type Load struct {
	Open, Idle, InUse, Max int32
	Waits                  int64         // acquisitions that had to wait, so far
	Waited                 time.Duration // what they waited together
}

// Load tells how busy the pool is now.
func (db *DB) Load() Load {
	s := db.pool.Stat()
	return Load{
		Open: s.TotalConns(), Idle: s.IdleConns(), InUse: s.AcquiredConns(), Max: s.MaxConns(),
		Waits: s.EmptyAcquireCount(), Waited: s.EmptyAcquireWaitTime(),
	}
}

// watchGroups tells seen of every group that the store runs.
func (db *DB) watchGroups(seen func(what string, items int, waited time.Duration)) {
	db.seen = seen
	if seen == nil {
		return
	}
	of := func(what string) func(int, time.Duration) {
		return func(items int, waited time.Duration) { seen(what, items, waited) }
	}
	if db.accepts != nil {
		db.accepts.queue.Watch(of("accept"))
	}
	if db.steps != nil {
		db.steps.commits.Watch(of("commit"))
		db.steps.settles.Watch(of("settle"))
	}
	if db.claims != nil {
		db.claims.queue.Watch(of("claim"))
	}
}
