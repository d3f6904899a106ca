package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/repair"
)

// keptMemoryExports bounds the definitions of a workspace, and memoryExportAge how long each is kept: who wants one
// again makes it again.
const (
	keptMemoryExports = 100
	memoryExportAge   = "7 days"
)

const defineMemoryExportSQL = `
INSERT INTO memory_exports (id, workspace_id, filter, filter_hash, created_at)
VALUES (@id, @workspace, @filter::text::json, @hash, (SELECT coalesce(@now::timestamptz, clock_timestamp())))
ON CONFLICT (id) DO NOTHING`

const forgetMemoryExportsSQL = `
DELETE FROM memory_exports e
 WHERE e.workspace_id = @workspace
   AND (e.created_at < (SELECT coalesce(@now::timestamptz, clock_timestamp())) - interval '` + memoryExportAge + `'
        OR e.id IN (SELECT id FROM memory_exports WHERE workspace_id = @workspace
                     ORDER BY created_at DESC, id DESC OFFSET @kept))`

// DefineMemoryExport implements write.MemoryExportStore.
func (db *DB) DefineMemoryExport(ctx context.Context, workspace, id uuid.UUID, filter memory.Filter) error {
	kept, hash, err := filterAsKept(filter)
	if err != nil {
		return err
	}
	return db.InTx(ctx, workspace, func(ctx context.Context, tx *Tx) error {
		now := tx.db.now()
		b := &batch{}
		addLiving(b, workspace)
		b.exec("define memory export", defineMemoryExportSQL, pgx.NamedArgs{
			"id": id, "workspace": workspace, "filter": string(kept), "hash": hash[:], "now": now,
		}, nil)
		b.exec("forget memory exports", forgetMemoryExportsSQL, pgx.NamedArgs{
			"workspace": workspace, "kept": keptMemoryExports, "now": now,
		}, nil)
		return tx.send(ctx, b)
	})
}

// filterAsKept returns the filter as JSON and what tells equal ones: the parser brings members into one order.
func filterAsKept(filter memory.Filter) ([]byte, [sha256.Size]byte, error) {
	kept, err := json.Marshal(filter)
	if err != nil {
		return nil, [sha256.Size]byte{}, fmt.Errorf("encode filter: %w", err)
	}
	return kept, sha256.Sum256(kept), nil
}

// forgetOldExportsSQL is for workspaces that define none any more. One that an erase removes meanwhile is its own.
const forgetOldExportsSQL = `
DELETE FROM memory_exports
 WHERE id IN (SELECT e.id FROM memory_exports e
               WHERE e.created_at < (SELECT coalesce(@now::timestamptz, clock_timestamp())) - interval '` + memoryExportAge + `'
               ORDER BY e.created_at LIMIT @limit FOR UPDATE SKIP LOCKED)
RETURNING id`

// ForgetExports implements repair.Retention.
func (db *DB) ForgetExports(ctx context.Context, limit int) (repair.Swept, error) {
	gone := 0
	err := db.alone(ctx, unbound, "forget exports", forgetOldExportsSQL, pgx.NamedArgs{"now": db.now(), "limit": limit}, func(rows pgx.Rows) error {
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

const memoryExportSQL = `
SELECT filter::text FROM memory_exports
 WHERE workspace_id = @workspace AND (@id::uuid IS NULL OR id = @id) AND (@hash::bytea IS NULL OR filter_hash = @hash)
   AND created_at >= (SELECT coalesce(@now::timestamptz, clock_timestamp())) - interval '` + memoryExportAge + `'
 ORDER BY created_at DESC, id DESC
 LIMIT 1`

// MemoryExport implements recall.MemoryExportStore.
func (db *DB) MemoryExport(ctx context.Context, workspace, id uuid.UUID) (*memory.Filter, error) {
	return db.memoryExport(ctx, workspace, &id, nil)
}

// HasMemoryExport implements recall.MemoryExportStore.
func (db *DB) HasMemoryExport(ctx context.Context, workspace uuid.UUID, filter memory.Filter) (bool, error) {
	_, hash, err := filterAsKept(filter)
	if err != nil {
		return false, err
	}
	found, err := db.memoryExport(ctx, workspace, nil, hash[:])
	return found != nil, err
}

func (db *DB) memoryExport(ctx context.Context, workspace uuid.UUID, id *uuid.UUID, hash []byte) (*memory.Filter, error) {
	var kept []byte
	args := pgx.NamedArgs{"workspace": workspace, "id": id, "hash": hash, "now": db.now()}
	err := db.read(ctx, of(workspace), "read memory export", memoryExportSQL, args, func(rows pgx.Rows) error {
		for rows.Next() {
			if err := rows.Scan(&kept); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || kept == nil {
		return nil, err
	}
	var filter memory.Filter
	if err := json.Unmarshal(kept, &filter); err != nil {
		return nil, fmt.Errorf("read filter: %w", err)
	}
	return &filter, nil
}

// Matching implements recall.MemoryExportStore.
func (db *DB) Matching(ctx context.Context, workspace uuid.UUID, filter memory.Filter, after *recall.Place, limit int) (recall.MemoryPage, error) {
	args := pgx.NamedArgs{"workspace": workspace, "limit": limit + 1, "now": db.now()}
	setAfter(args, after)
	records, err := db.records(ctx, workspace, "read matching records", memoriesSQL+inFilter(&filter, args)+newestSQL, args)
	if err != nil {
		return recall.MemoryPage{}, err
	}
	return memoryPage(records, limit), nil
}
