package postgres

import (
	"math"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/fault"
)

const (
	// pendingAge is how long a count of what a workspace has waiting is good for: other processes accept too.
	pendingAge = time.Second
	// pendingPace stretches it for large counts, so that counting costs a workspace less than a hundredth of its time:
	// ten thousand index entries are read in about five milliseconds.
	pendingPace = pendingAge / 10_000
	// pendingShare is the part of the room found that a process gives away before it counts again: eight processes
	// that have counted at the same moment stay below the limit together.
	pendingShare = 8
	// maxStandings bounds the memory of what is known of workspaces; what is forgotten is counted again.
	maxStandings = 10_000
)

// countPendingSQL counts what a workspace has accepted and not yet committed, at most one more than its limit. What
// waits for a receiver outside is not of the workspace's making and doesn't count. The order keeps the planner on the
// index: without one it may read a whole table for the first rows that fit.
const countPendingSQL = `
WITH w AS MATERIALIZED (
  SELECT coalesce((SELECT max_pending FROM workspaces WHERE id = @workspace), @standard::int) AS most
)
SELECT w.most, CASE WHEN w.most > 0 THEN (
         SELECT count(*) FROM (
           (SELECT FROM tasks t
             WHERE t.workspace_id = @workspace AND t.stage = 'accepted' AND t.completed_at IS NULL AND t.kind < 'webhook_delivery'
             ORDER BY t.kind, t.accepted_at DESC, t.id DESC LIMIT w.most + 1)
           UNION ALL
           (SELECT FROM tasks t
             WHERE t.workspace_id = @workspace AND t.stage = 'accepted' AND t.completed_at IS NULL AND t.kind > 'webhook_delivery'
             ORDER BY t.kind, t.accepted_at DESC, t.id DESC LIMIT w.most + 1)
           LIMIT w.most + 1) p) ELSE 0 END
  FROM w`

// backlog keeps the workspaces of one process below their limits of waiting tasks. The decision is a count within the
// accepting transaction; what a count has found lets further acceptances go without one, the fewer the less room
// there is.
type backlog struct {
	standard int // the limit of a workspace without one of its own; 0 is no limit

	mu    sync.Mutex
	known map[uuid.UUID]standing
}

// standing is what the last count of a workspace has found.
type standing struct {
	most  int       // its limit
	full  bool      // nothing more is taken
	left  int       // how many tasks may be accepted without a count
	began time.Time // when the count began that found it
	until time.Time // when it is too old
}

func newBacklog(standard int) *backlog {
	return &backlog{standard: standard, known: map[uuid.UUID]standing{}}
}

// admit tells whether the transaction that accepts so many tasks must count first. One that comes when a count is too
// old counts for all that come while it does. Fault TOO_MANY_PENDING for a workspace that is known to be full.
func (l *backlog) admit(workspace uuid.UUID, tasks int, now time.Time) (count bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, known := l.known[workspace]
	switch {
	case !known:
		return true, nil
	case !now.Before(s.until):
		s.until = now.Add(pendingAge)
		l.known[workspace] = s
		return true, nil
	case s.full:
		return false, tooManyPending(s.most)
	case s.left < tasks:
		return true, nil
	}
	s.left -= tasks
	l.known[workspace] = s
	return false, nil
}

// counted takes what a count has found that began then, and decides about so many tasks. One that was overtaken decides
// about its own alone: what it found is older than what is known. Fault TOO_MANY_PENDING.
func (l *backlog) counted(workspace uuid.UUID, tasks, most, waiting int, began time.Time) error {
	s := standing{most: most, left: math.MaxInt, began: began, until: began.Add(max(pendingAge, time.Duration(waiting)*pendingPace))}
	room := most - waiting
	refused := most > 0 && room < tasks
	switch {
	case refused:
		s.full, s.left = room <= 0, max(0, room)/pendingShare
	case most > 0:
		s.left = (room - tasks) / pendingShare
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.known) >= maxStandings {
		clear(l.known)
	}
	if !l.known[workspace].began.After(began) {
		l.known[workspace] = s
	}
	if refused {
		return tooManyPending(most)
	}
	return nil
}

func tooManyPending(most int) error {
	refusal := fault.New(fault.TooManyPending)
	refusal.Details, refusal.RetryAfter = map[string]any{"limit": most}, pendingAge
	return refusal
}

// addRoom makes the transaction take so many tasks only if the workspace has room for them. It comes before the
// lane's lock, which a refusal needn't wait for.
func (tx *Tx) addRoom(b *batch, workspace uuid.UUID, tasks int) error {
	return tx.addRoomOr(b, workspace, tasks, func(refusal error) error { return refusal })
}

// addRoomOr is addRoom with a say in what becomes of a refusal: what refuse makes of it ends the transaction, here or when
// the count is read.
func (tx *Tx) addRoomOr(b *batch, workspace uuid.UUID, tasks int, refuse func(error) error) error {
	if tasks == 0 {
		return nil
	}
	now := time.Now()
	if set := tx.db.now(); set != nil {
		now = *set
	}
	count, err := tx.db.backlog.admit(workspace, tasks, now)
	switch {
	case err != nil:
		return refuse(err)
	case !count:
		return nil
	}
	b.query("count pending", countPendingSQL, pgx.NamedArgs{"workspace": workspace, "standard": tx.db.backlog.standard},
		func(rows pgx.Rows) error {
			var most, waiting int
			for rows.Next() {
				if err := rows.Scan(&most, &waiting); err != nil {
					return err
				}
			}
			if err := tx.db.backlog.counted(workspace, tasks, most, waiting, now); err != nil {
				return refuse(err)
			}
			return nil
		})
	return nil
}
