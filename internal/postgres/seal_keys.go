package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/operator"
	"github.com/holdfast-memory/holdfast/internal/repair"
	"github.com/holdfast-memory/holdfast/internal/seal"
)

// MasterKey is what the database says of one master key, compared with those of this process.
type MasterKey struct {
	Name       string
	Active     bool // new data keys are wrapped under it
	Configured bool
	Opens      bool // it opens the data key that was tried; true without any
	DataKeys   int64
	Payloads   int64      // what is sealed with them and still there, counted up to a bound
	Oldest     *time.Time // of its data keys
}

// Err says what is wrong with the key, nil if nothing is.
func (k MasterKey) Err() error {
	switch {
	case k.DataKeys > 0 && !k.Configured:
		return fmt.Errorf("master key %q is not configured, and data keys need it", k.Name)
	case !k.Opens:
		return fmt.Errorf("master key %q is another key than the one of this id that wrapped the data keys", k.Name)
	}
	return nil
}

// sampleKeysSQL reads the newest data key of each master key, by the index of master keys: ids are in the order of time.
const sampleKeysSQL = `
WITH RECURSIVE m (name) AS (
  (SELECT master_key FROM data_keys ORDER BY master_key LIMIT 1)
  UNION ALL
  SELECT (SELECT d.master_key FROM data_keys d WHERE d.master_key > m.name ORDER BY d.master_key LIMIT 1)
    FROM m WHERE m.name IS NOT NULL
)
SELECT m.name, k.id, k.workspace_id, k.wrapped
  FROM m, LATERAL (SELECT d.id, d.workspace_id, d.wrapped FROM data_keys d
                    WHERE d.master_key = m.name ORDER BY d.id DESC LIMIT 1) k
 WHERE m.name IS NOT NULL`

// CheckKeys tries one data key of each master key that data keys need, without counting anything. It answers the master
// keys that this process has too.
func (db *DB) CheckKeys(ctx context.Context) ([]MasterKey, error) {
	ring := db.sealer.Ring
	all := ringKeys(ring)
	err := db.read(ctx, everyone, "sample data keys", sampleKeysSQL, nil, func(rows pgx.Rows) error {
		for rows.Next() {
			var name string
			var id, workspace uuid.UUID
			var wrapped []byte
			if err := rows.Scan(&name, &id, &workspace, &wrapped); err != nil {
				return err
			}
			k := keyNamed(&all, name)
			k.DataKeys = 1 // at least
			if k.Configured {
				_, err := ring.Unwrap(id, workspace, seal.Wrapped{Master: name, Key: wrapped})
				k.Opens = err == nil
			}
		}
		return nil
	})
	return all, err
}

// ringKeys are the master keys of a ring as they are before the database is asked.
func ringKeys(ring *seal.Ring) []MasterKey {
	if ring == nil {
		return nil
	}
	var all []MasterKey
	for _, name := range ring.Names() {
		all = append(all, MasterKey{Name: name, Active: name == ring.Active(), Configured: true, Opens: true})
	}
	return all
}

// keyNamed finds the key of that name, or adds it as one that nobody has configured.
func keyNamed(all *[]MasterKey, name string) *MasterKey {
	for i := range *all {
		if (*all)[i].Name == name {
			return &(*all)[i]
		}
	}
	*all = append(*all, MasterKey{Name: name, Opens: true})
	return &(*all)[len(*all)-1]
}

// countedPayloads bounds the count of what is sealed: beyond it the number tells nobody more.
const countedPayloads = 10_000

const countKeysSQL = `
SELECT d.master_key, count(*), min(d.created_at),
       (SELECT count(*) FROM (
          (SELECT FROM data_keys k JOIN tasks t ON t.data_key = k.id WHERE k.master_key = d.master_key LIMIT @most)
          UNION ALL
          (SELECT FROM data_keys k JOIN plans p ON p.data_key = k.id WHERE k.master_key = d.master_key LIMIT @most)
          UNION ALL
          (SELECT FROM data_keys k JOIN task_parts p ON p.data_key = k.id WHERE k.master_key = d.master_key LIMIT @most)
          UNION ALL
          (SELECT FROM data_keys k JOIN webhooks w ON w.data_key = k.id WHERE k.master_key = d.master_key LIMIT @most)) s)
  FROM data_keys d GROUP BY d.master_key ORDER BY d.master_key`

// KeyStatus is CheckKeys with everything counted.
func (db *DB) KeyStatus(ctx context.Context) ([]MasterKey, error) {
	all, err := db.CheckKeys(ctx)
	if err != nil {
		return nil, err
	}
	err = db.read(ctx, everyone, "count data keys", countKeysSQL, pgx.NamedArgs{"most": countedPayloads}, func(rows pgx.Rows) error {
		for rows.Next() {
			var name string
			var keys, payloads int64
			var oldest time.Time
			if err := rows.Scan(&name, &keys, &oldest, &payloads); err != nil {
				return err
			}
			k := keyNamed(&all, name)
			oldest = oldest.UTC()
			k.DataKeys, k.Payloads, k.Oldest = keys, payloads, &oldest
		}
		return nil
	})
	return all, err
}

// ErrSealsNothing says that this process has no master keys.
var ErrSealsNothing = errors.New("no master keys are configured")

// Rotation is one page of a rotation. Failed are data keys that this process can't open, with the first reason.
type Rotation struct {
	Master string
	Done   int
	Failed int
	Reason error
	After  uuid.UUID // the next page begins behind it
	More   bool
}

const staleKeysSQL = `
SELECT id, workspace_id, master_key, wrapped FROM data_keys
 WHERE master_key <> @master AND id > @after
 ORDER BY id LIMIT @limit`

// rewrapSQL leaves a key alone that somebody else has rewrapped or retired meanwhile.
const rewrapSQL = `
UPDATE data_keys AS d SET master_key = @master, wrapped = n.wrapped
  FROM unnest(@ids::uuid[], @masters::text[], @wraps::bytea[]) AS n (id, master_key, wrapped)
 WHERE d.id = n.id
   AND d.master_key = n.master_key
RETURNING d.id`

// RotateKeys wraps up to limit data keys behind a place under the active master key, in one transaction. What they have
// sealed stays as it is. It may be broken off at any moment and begun anew.
func (db *DB) RotateKeys(ctx context.Context, after uuid.UUID, limit int) (Rotation, error) {
	ring := db.sealer.Ring
	if ring == nil {
		return Rotation{}, ErrSealsNothing
	}
	page := Rotation{Master: ring.Active()}
	var ids []uuid.UUID
	var masters []string
	var wraps [][]byte
	args := pgx.NamedArgs{"master": ring.Active(), "after": after, "limit": limit}
	err := db.read(ctx, everyone, "stale data keys", staleKeysSQL, args, func(rows pgx.Rows) error {
		seen := 0
		for rows.Next() {
			var id, workspace uuid.UUID
			var w seal.Wrapped
			if err := rows.Scan(&id, &workspace, &w.Master, &w.Key); err != nil {
				return err
			}
			seen++
			page.After = id
			moved, err := ring.Rewrap(id, workspace, w)
			if err != nil {
				page.Failed++
				if page.Reason == nil {
					page.Reason = fmt.Errorf("data key %s under master key %q: %w", id, w.Master, err)
				}
				continue
			}
			ids, masters, wraps = append(ids, id), append(masters, w.Master), append(wraps, moved.Key)
		}
		page.More = seen == limit
		return nil
	})
	if err != nil || len(ids) == 0 {
		return page, err
	}
	args = pgx.NamedArgs{"master": ring.Active(), "ids": ids, "masters": masters, "wraps": wraps}
	a := act{name: operator.RotateEncryption, subject: ring.Active()}
	err = db.recorded(ctx, a, "rewrap data keys", rewrapSQL, args, func(rows pgx.Rows) error {
		page.Done = 0
		for rows.Next() {
			page.Done++
		}
		return nil
	})
	failpoint.Hit("rotate.committed")
	return page, err
}

// unusedKeySQL tells of a data key k that nothing refers to it.
const unusedKeySQL = `NOT EXISTS (SELECT FROM tasks t WHERE t.data_key = k.id)
   AND NOT EXISTS (SELECT FROM plans p WHERE p.data_key = k.id)
   AND NOT EXISTS (SELECT FROM task_parts p WHERE p.data_key = k.id)
   AND NOT EXISTS (SELECT FROM webhooks w WHERE w.data_key = k.id)`

// retireKeysSQL removes keys of days that are over, and lasting ones, that nothing refers to. An hour is left to processes
// that began something before midnight, or have made a lasting key for something; what comes later all the same is refused
// by the database and sealed anew.
const retireKeysSQL = `
WITH clock AS (
  SELECT coalesce(@now::timestamptz, clock_timestamp()) - interval '1 hour' AS at
)
DELETE FROM data_keys
 WHERE id IN (SELECT k.id FROM data_keys k, clock
               WHERE (k.day < (clock.at AT TIME ZONE 'UTC')::date OR k.day IS NULL AND k.created_at < clock.at)
                 AND ` + unusedKeySQL + `
               ORDER BY k.id LIMIT @limit FOR UPDATE OF k SKIP LOCKED)
RETURNING id`

// RetireDataKeys implements repair.Retention.
func (db *DB) RetireDataKeys(ctx context.Context, limit int) (repair.Swept, error) {
	gone := 0
	err := db.alone(ctx, unbound, "retire data keys", retireKeysSQL, pgx.NamedArgs{"now": db.now(), "limit": limit}, func(rows pgx.Rows) error {
		for rows.Next() {
			gone++
		}
		return nil
	})
	if err != nil {
		return repair.Swept{}, err // rolled back, or unknown: the next round finds what is left
	}
	return repair.Swept{Found: gone, Fixed: gone, More: gone == limit}, nil
}

// dropDataKeysSQL ends the keys of a workspace that is deleted. One that something still refers to goes with that.
const dropDataKeysSQL = `DELETE FROM data_keys k WHERE k.workspace_id = @workspace AND ` + unusedKeySQL
