package postgres

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-memory/holdfast/internal/fault"
)

const (
	// queueBound is how long a request waits for a connection. A transaction takes milliseconds, so whoever has waited
	// for a second meets a database that can't keep up: to be told so is worth more than to wait on.
	queueBound = time.Second
	// queuePlaces is how many wait for each connection at most: with transactions of 30 ms the last of them waits for
	// the second that it may.
	queuePlaces = 32
)

// errBusy is why a request was refused before anything was sent.
const errBusy fault.Plain = "no database connection came free in time"

// queue bounds who waits for a connection and for how long.
type queue struct {
	places chan struct{}
	shed   atomic.Uint64
}

// Shedding returns the same store over the same pool for callers who are better refused than kept waiting: whoever
// gets no connection within a second, or finds too many waiting, is answered with a fault UNAVAILABLE, and nothing was
// sent. The pool is closed by the store that it comes from.
func (db *DB) Shedding() *DB {
	shedding := &DB{
		pool: db.pool, lockTimeout: db.lockTimeout, stmtTimeout: db.stmtTimeout, aloneBound: db.aloneBound, now: db.now,
		backlog: db.backlog, sealer: db.sealer,
		queue: &queue{places: make(chan struct{}, queuePlaces*int(db.pool.Config().MaxConns))},
	}
	if db.accepts != nil {
		shedding.accepts = newAccepts(shedding)
		shedding.watchGroups(db.seen)
	}
	return shedding
}

// Shed is how many callers got no connection in time.
func (db *DB) Shed() uint64 {
	if db.queue == nil {
		return 0
	}
	return db.queue.shed.Load()
}

// acquire borrows a connection.
func (db *DB) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	if db.queue == nil {
		return db.pool.Acquire(ctx)
	}
	select {
	case db.queue.places <- struct{}{}:
		defer func() { <-db.queue.places }()
	default:
		return nil, db.queue.refuse()
	}
	bounded, cancel := context.WithTimeout(ctx, queueBound)
	defer cancel()
	conn, err := db.pool.Acquire(bounded)
	if err != nil && ctx.Err() == nil && errors.Is(bounded.Err(), context.DeadlineExceeded) {
		return nil, db.queue.refuse()
	}
	return conn, err
}

func (q *queue) refuse() error {
	q.shed.Add(1)
	return fault.Wrap(fault.UnavailableNow, errBusy)
}
