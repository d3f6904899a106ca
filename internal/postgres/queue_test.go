package postgres_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/postgres"
)

// small opens a store with so many connections that sheds, and the store that it is a view of.
func (w *world) small(conns int32, cfg postgres.Config) (shedding, plain *postgres.DB) {
	w.t.Helper()
	cfg.URL, cfg.MaxConns, cfg.LockTimeout, cfg.StatementTimeout = w.url, conns, time.Minute, time.Minute
	db, err := postgres.Open(w.t.Context(), cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(db.Close)
	return db.Shedding(), db
}

// slow makes transactions of the workspace wait with their connections until the returned function is called, and
// starts so many that have one.
func (w *world) slow(db *postgres.DB, n int) (release func()) {
	w.t.Helper()
	ctx := context.Background()
	gate, err := w.sql.Begin(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	id := w.caller.Workspace.ID
	if _, err := gate.Exec(ctx, `SELECT pg_advisory_xact_lock(('x' || encode(substr(uuid_send($1), 9, 8), 'hex'))::bit(64)::bigint)`, id); err != nil {
		w.t.Fatal(err)
	}
	done := make(chan error, n)
	for i := range n {
		go func() { done <- w.tryAccept(db, w.caller, "slow-"+keyName(i)) }()
	}
	for one[int](w, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) < n {
		if ctx := w.t.Context(); ctx.Err() != nil {
			w.t.Fatal("the slow ones never waited")
		}
	}
	return sync.OnceFunc(func() {
		if err := gate.Rollback(ctx); err != nil {
			w.t.Error(err)
		}
		for range n {
			if err := <-done; err != nil {
				w.t.Errorf("a slow one: %v", err)
			}
		}
	})
}

func TestShedding(t *testing.T) {
	t.Parallel()
	t.Run("WhoGetsNoConnectionIsRefusedInTime", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1_000)
		other := w.workspace(1_000)
		db, plain := w.small(2, postgres.Config{})
		release := w.slow(plain, 2)
		defer release()
		began := time.Now()
		together(200, func(i int) {
			var err error
			if i%2 == 0 {
				err = w.tryAccept(db, other, keyName(i))
			} else {
				_, err = db.Balance(t.Context(), other.Workspace.ID)
			}
			if !fault.Is(err, fault.UnavailableNow) || errors.Is(err, fault.ErrCommitUnknown) {
				t.Errorf("without a connection: %v", err)
			}
		})
		if took := time.Since(began); took > 10*time.Second { // the bound is one second, the machine may be busy
			t.Errorf("it took %s", took)
		}
		if n := db.Shed(); n != 200 {
			t.Errorf("%d were counted", n)
		}
		if n := one[int](w, `SELECT count(*) FROM idempotency_keys`); n != 0 {
			t.Errorf("%d keys were kept", n)
		}
		release()
		for i := range 10 {
			if err := w.tryAccept(db, other, keyName(i)); err != nil {
				t.Errorf("after the release: %v", err)
			}
		}
	})
	t.Run("TooManyWaitingAreRefusedAtOnce", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1_000)
		db, plain := w.small(1, postgres.Config{})
		release := w.slow(plain, 1)
		defer release()
		var others sync.WaitGroup
		for range 32 {
			others.Go(func() {
				if _, err := db.Balance(t.Context(), uuid.New()); !fault.Is(err, fault.UnavailableNow) {
					t.Errorf("one that waited: %v", err)
				}
			})
		}
		for full := false; !full && db.Shed() == 0; {
			full = db.Queued() == 32
		}
		shed := db.Shed()
		_, err := db.Balance(t.Context(), uuid.New())
		if !fault.Is(err, fault.UnavailableNow) || shed > 0 || db.Shed() != 1 {
			t.Errorf("the one too many: %v, %d refused before and %d with it", err, shed, db.Shed())
		}
		others.Wait()
	})
	t.Run("AFloodOnAFewConnectionsKeepsWhatItTook", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10_000)
		w.limit(200)
		db, _ := w.small(4, postgres.Config{})
		var taken, full, busy atomic.Int64
		together(500, func(i int) {
			switch err := w.tryAccept(db, w.caller, keyName(i)); {
			case err == nil:
				taken.Add(1)
			case fault.Is(err, fault.TooManyPending):
				full.Add(1)
			case fault.Is(err, fault.UnavailableNow):
				busy.Add(1)
			default:
				t.Errorf("neither taken nor refused: %v", err)
			}
		})
		if n := one[int64](w, `SELECT count(*) FROM tasks`); n != taken.Load() || n == 0 || n > 204 {
			t.Errorf("%d tasks of %d taken", n, taken.Load())
		}
		if busy.Load() == 0 || full.Load()+busy.Load()+taken.Load() != 500 {
			t.Errorf("%d taken, %d full, %d busy", taken.Load(), full.Load(), busy.Load())
		}
		w.books()
	})
}
