package postgres

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/seal"
)

// Sealing says how payloads are encrypted. Without a ring nothing is sealed, and what is sealed stays closed.
type Sealing struct {
	Ring *seal.Ring
	// OpenOnly opens what is sealed and seals nothing new: the way to turn encryption off.
	OpenOnly bool
}

const (
	// sealedKeys bounds the keys that a process holds, in use and for reading: a few thousand workspaces at work.
	sealedKeys = 4_096
	// readingTime is how long a key is held that was opened for reading. Opening it again costs microseconds.
	readingTime = 10 * time.Minute
	// lastingTime is how long the key without a day is held for writing; reading it again is one statement.
	lastingTime = time.Hour
)

// errNoDayKey and errNoLastingKey roll a transaction back that would seal something and has no key for it. The key is
// then made by a statement of its own, and the transaction runs again.
const (
	errNoDayKey     verdict = "the workspace has no key of the day in this process"
	errNoLastingKey verdict = "the workspace has no lasting key in this process"
)

// sealer seals what is written and opens what is read.
type sealer struct {
	Sealing
	days    *seal.Cache // by workspace: the key of its day
	lasting *seal.Cache // by workspace
	reading *seal.Cache // by key
}

func newSealer(s Sealing) *sealer {
	return &sealer{
		Sealing: s, days: seal.NewCache(sealedKeys, nil), lasting: seal.NewCache(sealedKeys, nil),
		reading: seal.NewCache(sealedKeys, nil),
	}
}

func (s *sealer) seals() bool { return s.Ring != nil && !s.OpenOnly }

// masters are the master keys that this process has, for the statements that look for work.
func (s *sealer) masters() []string {
	if s.Ring == nil {
		return []string{}
	}
	return s.Ring.Names()
}

// dayAfresh forgets the keys that a workspace writes with.
func (s *sealer) dayAfresh(workspace uuid.UUID) {
	s.days.Drop(workspace)
	s.lasting.Drop(workspace)
}

// The places of what is sealed.
func atCommand(workspace, id uuid.UUID) seal.Place {
	return seal.Place{Workspace: workspace, Row: id, Column: "tasks.command"}
}

func atPlan(workspace, id uuid.UUID) seal.Place {
	return seal.Place{Workspace: workspace, Row: id, Column: "plans.body"}
}

func atPart(workspace, id uuid.UUID, part int) seal.Place {
	return seal.Place{Workspace: workspace, Row: id, Column: "task_parts.body", Part: part}
}

func atSecret(workspace, id uuid.UUID) seal.Place {
	return seal.Place{Workspace: workspace, Row: id, Column: "webhooks.secret"}
}

// seal returns what is to be stored of a text: sealed with the key of the day, or as it is. Fault INVALID_BODY for a text
// that would be taken for sealed: only a snapshot, which nobody has read yet, can be one.
func (tx *Tx) seal(at seal.Place, text []byte) ([]byte, error) {
	s := tx.db.sealer
	if _, looks := seal.KeyOf(text); looks {
		return nil, fault.At(fault.InvalidBody, "", "lines of JSON")
	}
	if !s.seals() {
		return text, nil
	}
	key, ok := s.days.Get(at.Workspace)
	if !ok {
		return nil, errNoDayKey
	}
	return key.Seal(at, text), nil
}

// sealSame is seal for random bytes that live long and are compared: with the workspace's lasting key, every time the
// same.
func (tx *Tx) sealSame(at seal.Place, random []byte) ([]byte, error) {
	s := tx.db.sealer
	if !s.seals() {
		return random, nil
	}
	key, ok := s.lasting.Get(at.Workspace)
	if !ok {
		return nil, errNoLastingKey
	}
	return key.SealSame(at, random), nil
}

// sealedSame hands what sealSame makes of random bytes to a statement that is a transaction of its own, and again when the
// key is missing or was retired meanwhile.
func (db *DB) sealedSame(ctx context.Context, at seal.Place, random []byte, store func(stored []byte) error) error {
	tx := &Tx{db: db}
	for run := 0; ; run++ {
		stored, err := tx.sealSame(at, random)
		if err == nil {
			err = store(stored)
		}
		again, err := db.sealedAgain(ctx, at.Workspace, err)
		if !again || run == sealRuns {
			return err
		}
	}
}

// wrappedSQL begins what reads a data key, and a column with its id and a bracket end it: the id of its master key, and the
// key under it. Null for plain bytes.
const wrappedSQL = `(SELECT ARRAY[convert_to(k.master_key, 'UTF8'), k.wrapped] FROM data_keys k WHERE k.id = `

// openableSQL tells of a row t whether this process has what its payload needs.
const openableSQL = `(t.data_key IS NULL
          OR EXISTS (SELECT FROM data_keys k WHERE k.id = t.data_key AND k.master_key = ANY(@master_keys::text[])))`

// signableSQL tells of the row t of a delivery whether this process has what its webhook's secret needs.
const signableSQL = `NOT EXISTS (SELECT FROM webhook_deliveries d
                       JOIN webhooks w ON w.id = d.webhook_id AND w.workspace_id = d.workspace_id
                       JOIN data_keys k ON k.id = w.data_key
                      WHERE d.task_id = t.id AND k.master_key <> ALL(@master_keys::text[]))`

// open returns a text as it was before it was stored. Wrapped is what wrappedSQL read beside it. An error is
// seal.ErrUnreadable.
func (s *sealer) open(at seal.Place, stored []byte, wrapped [][]byte) ([]byte, error) {
	id, sealed := seal.KeyOf(stored)
	if !sealed {
		return stored, nil
	}
	key, ok := s.reading.Get(id)
	if !ok {
		switch {
		case s.Ring == nil:
			return nil, seal.ErrNoMaster
		case len(wrapped) != 2:
			return nil, seal.ErrNoKey
		}
		var err error
		key, err = s.Ring.Unwrap(id, at.Workspace, seal.Wrapped{Master: string(wrapped[0]), Key: wrapped[1]})
		if err != nil {
			return nil, err
		}
		s.reading.Put(id, key, readingTime)
	}
	return key.Open(at, stored)
}

// dataKeySQL makes the key of the workspace's day, or its lasting one, unless there is one. What another transaction
// makes at the same moment it doesn't see; the next run does.
const dataKeySQL = `
WITH clock AS (
  SELECT coalesce(@now::timestamptz, clock_timestamp()) AT TIME ZONE 'UTC' AS at
), day AS (
  SELECT CASE WHEN NOT @lasting THEN at::date END AS day,
         extract(epoch FROM at::date + interval '1 day' - at)::float8 AS seconds FROM clock
), made AS (
  INSERT INTO data_keys (id, workspace_id, day, master_key, wrapped, created_at)
  SELECT @id, @workspace, day.day, @master, @wrapped, (SELECT coalesce(@now::timestamptz, clock_timestamp())) FROM day
  ON CONFLICT (workspace_id, day) DO NOTHING
  RETURNING id, master_key, wrapped
)
SELECT k.id, k.master_key, k.wrapped, day.seconds
  FROM (SELECT id, master_key, wrapped FROM made
        UNION ALL
        SELECT d.id, d.master_key, d.wrapped FROM data_keys d, day
         WHERE d.workspace_id = @workspace AND d.day IS NOT DISTINCT FROM day.day) k, day`

// sealRuns bounds how often a transaction runs again because of its keys: it may lack both kinds, and find each retired
// once.
const sealRuns = 4

// dataKeyRuns bounds how often a key is looked for that somebody else was making: once is enough, but for a key that is
// retired in between.
const dataKeyRuns = 3

// makeDataKey lets the process have the workspace's key: of the day for as long as the database says that the day lasts,
// or the lasting one. It is a transaction of its own, which is over before anything is sealed.
func (db *DB) makeDataKey(ctx context.Context, workspace uuid.UUID, lasting bool) error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	key, wrapped, err := db.sealer.Ring.NewKey(id, workspace)
	if err != nil {
		return err
	}
	for range dataKeyRuns {
		var found uuid.UUID
		var there seal.Wrapped
		var seconds float64
		err := db.alone(ctx, of(workspace), "make data key", dataKeySQL, pgx.NamedArgs{
			"id": id, "workspace": workspace, "master": wrapped.Master, "wrapped": wrapped.Key, "lasting": lasting, "now": db.now(),
		}, func(rows pgx.Rows) error {
			for rows.Next() {
				if err := rows.Scan(&found, &there.Master, &there.Key, &seconds); err != nil {
					return err
				}
			}
			return nil
		})
		switch {
		case errors.Is(err, fault.ErrCommitUnknown), err == nil && found == uuid.Nil:
			continue // if it was made, the next run finds it
		case err != nil:
			return err
		case found != id:
			if key, err = db.sealer.Ring.Unwrap(found, workspace, there); err != nil {
				return &stepError{"open data key", fault.Wrap(fault.UnavailableNow, err)}
			}
		}
		db.sealer.keep(workspace, key, lasting, time.Duration(seconds*float64(time.Second)))
		return nil
	}
	return &stepError{"make data key", fault.Wrap(fault.UnavailableNow, fault.Plain("no answer tells whether it was made"))}
}

func (s *sealer) keep(workspace uuid.UUID, key seal.Key, lasting bool, left time.Duration) {
	if lasting {
		s.lasting.Put(workspace, key, lastingTime)
		return
	}
	s.days.Put(workspace, key, left)
}

// keyConstraints are those that keep a payload from outliving its key.
func keyConstraints() []string {
	return []string{"tasks_data_key", "plans_data_key", "task_parts_data_key", "webhooks_data_key"}
}

// sealedAgain tells whether a transaction is to run again because of a key: it lacked one, which is made here, or the one
// that it used was retired meanwhile. It answers false with the error that stands.
func (db *DB) sealedAgain(ctx context.Context, workspace uuid.UUID, err error) (bool, error) {
	e, ok := errors.AsType[*sqlError](err)
	switch {
	case ok && e.code == stateForeignKey && slices.Contains(keyConstraints(), e.constraint):
		db.sealer.dayAfresh(workspace)
		return true, err
	case errors.Is(err, errNoDayKey):
		made := db.makeDataKey(ctx, workspace, false)
		return made == nil, made
	case errors.Is(err, errNoLastingKey):
		made := db.makeDataKey(ctx, workspace, true)
		return made == nil, made
	}
	return false, err
}
