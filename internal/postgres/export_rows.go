package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

const (
	// exportLimit bounds the rows of a piece: with the lines of their records at most 400.
	exportLimit = 200
	// exportBytes ends a piece that is long already. The last row may exceed it by a greatest text.
	exportBytes = 1 << 20
)

// exportRecordsSQL walks the history of the workspace in the order of its index, because each record begins there and
// no other index has all records of a workspace. A record comes with the first row of its history. Rows whose record is
// gone, or isn't part of the snapshot, are passed over, also when it went after its first rows had been written.
const exportRecordsSQL = `
WITH page AS MATERIALIZED (
  SELECT h.id, h.memory_id, h.task_id, h.ordinal, h.event, h.version, h.old_text, h.new_text, h.at
    FROM memory_history h
   WHERE h.workspace_id = @workspace AND (h.memory_id, h.version, h.id) > (@memory, @version, @history)
   ORDER BY h.memory_id, h.version, h.id
   LIMIT @limit
), opened AS (
  SELECT page.*, coalesce(lag(memory_id) OVER (ORDER BY memory_id, version, id), @memory) <> memory_id AS opens FROM page
), full_rows AS (
  SELECT o.*, m.id AS record, m.task_id AS record_task, m.user_id, m.agent_id, m.run_id, m.app_id, m.text, m.type, m.role,
         m.metadata::text AS metadata, m.event_date, m.version AS record_version, m.accepted_at, m.said_at, m.valid_from,
         m.valid_to, m.superseded_by, m.expires_at, m.deleted_at, m.item_id, m.categories, m.created_at, m.updated_at,
         f.feedback, f.reason AS feedback_reason, f.at AS feedback_at,
         sum(coalesce(octet_length(o.old_text), 0) + coalesce(octet_length(o.new_text), 0)
             + CASE WHEN o.opens THEN coalesce(octet_length(m.text), 0) + coalesce(octet_length(m.metadata::text), 0) ELSE 0 END)
           OVER (ORDER BY o.memory_id, o.version, o.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
    FROM opened o
    LEFT JOIN memories m ON m.id = o.memory_id AND m.workspace_id = @workspace AND m.accepted_at <= @at
          AND NOT ` + fencedRecordSQL + `
    LEFT JOIN memory_feedback f ON f.memory_id = m.id AND f.workspace_id = m.workspace_id
)
SELECT id, memory_id, task_id, ordinal, event, version, old_text, new_text, at, opens,
       record, record_task, user_id, agent_id, run_id, app_id, coalesce(text, ''), type, role, metadata, event_date,
       coalesce(record_version, 0), coalesce(accepted_at, at), coalesce(said_at, at), coalesce(valid_from, at), valid_to,
       superseded_by, expires_at, deleted_at, item_id, categories, coalesce(created_at, at), coalesce(updated_at, at),
       feedback, feedback_reason, feedback_at
  FROM full_rows
 WHERE coalesce(before, 0) < @bytes
 ORDER BY memory_id, version, id`

// exportRecords writes the next records with their history, and answers how many rows it has passed.
func (tx *Tx) exportRecords(ctx context.Context, l worker.Lease, at time.Time, p *partWriter) (int, error) {
	read := 0
	b := &batch{}
	b.query("export records", exportRecordsSQL, pgx.NamedArgs{
		"workspace": l.WorkspaceID, "memory": p.place.Memory, "version": p.place.Version, "history": p.place.History,
		"limit": exportLimit, "bytes": exportBytes, "at": at,
	}, func(rows pgx.Rows) error {
		for rows.Next() {
			read++
			if err := p.record(rows); err != nil {
				return err
			}
		}
		return nil
	})
	return read, tx.send(ctx, b)
}

// record writes one row of exportRecordsSQL.
func (p *partWriter) record(rows pgx.Rows) error {
	var h command.SnapshotHistory
	var m command.SnapshotMemory
	var opens bool
	var record, event *uuid.UUID
	var metadata, verdict, reason *string
	var said *time.Time
	err := rows.Scan(&h.ID, &h.MemoryID, &h.Event, &h.Ordinal, &h.Change, &h.Version, &h.OldText, &h.NewText, &h.At, &opens,
		&record, &event, &m.UserID, &m.AgentID, &m.RunID, &m.AppID, &m.Text, &m.FactType, &m.Role, &metadata, &m.EventDate,
		&m.Version, &m.AcceptedAt, &m.SaidAt, &m.ValidFrom, &m.ValidTo, &m.SupersededBy, &m.ExpiresAt, &m.DeletedAt,
		&m.ItemID, &m.Categories, &m.CreatedAt, &m.UpdatedAt, &verdict, &reason, &said)
	if err != nil {
		return err
	}
	switch {
	case record == nil:
		p.place.Cap = 0
	case opens:
		m.ID, m.Event, p.place.Cap = *record, *event, m.Version
		if metadata != nil {
			m.Metadata = []byte(*metadata)
		}
		for _, t := range []*time.Time{&m.AcceptedAt, &m.SaidAt, &m.ValidFrom, &m.CreatedAt, &m.UpdatedAt} {
			*t = t.UTC()
		}
		inUTC(m.EventDate, m.ValidTo, m.ExpiresAt, m.DeletedAt)
		if verdict != nil && said != nil {
			m.Feedback = &command.SnapshotFeedback{Verdict: *verdict, Reason: reason, At: said.UTC()}
		}
		p.add(command.SnapshotLine{Memory: &m})
		p.place.Written.Memories++
	}
	p.place.Memory, p.place.Version, p.place.History = h.MemoryID, h.Version, h.ID
	if h.Version > p.place.Cap { // its record isn't there, or was written before this change
		return p.err
	}
	h.At = h.At.UTC()
	p.add(command.SnapshotLine{History: &h})
	p.place.Written.History++
	return p.err
}

// exportItemsSQL says of each item what has landed, as its latest task tells it: tasks are no part of a snapshot.
const exportItemsSQL = `
WITH page AS MATERIALIZED (
  SELECT i.*, t.stage, coalesce(t.accepted_at, i.created_at) AS accepted_at
    FROM items i
    LEFT JOIN LATERAL (SELECT t.stage, t.accepted_at FROM all_tasks t
                        WHERE t.id = i.task_id AND t.workspace_id = i.workspace_id LIMIT 1) t ON true
   WHERE i.workspace_id = @workspace AND i.item_key > @key AND i.created_at <= @at
   ORDER BY i.item_key
   LIMIT @limit
), sized AS (
  SELECT page.*, sum(octet_length(text))
           OVER (ORDER BY item_key ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
    FROM page
)
SELECT m.item_key, m.account, m.item_id, m.task_id, m.revision,
       CASE WHEN m.stage IS NOT NULL AND m.stage <> 'accepted' THEN m.revision ELSE m.landed_revision END,
       m.text, m.author, m.session, m.at, m.at_text, m.created_at, m.updated_at,
       EXISTS (SELECT FROM erasures e,
              (SELECT m.workspace_id, m.accepted_at, m.account AS user_id, NULL::text AS agent_id, m.session AS run_id,
                      NULL::text AS app_id) AS t
         WHERE ` + coversSQL + `)
  FROM sized m
 WHERE coalesce(m.before, 0) < @bytes
 ORDER BY m.item_key`

// exportItems writes the next items and answers how many rows it has passed.
func (tx *Tx) exportItems(ctx context.Context, l worker.Lease, at time.Time, p *partWriter) (int, error) {
	key := p.place.Key
	if key == nil {
		key = []byte{}
	}
	read := 0
	b := &batch{}
	b.query("export items", exportItemsSQL, pgx.NamedArgs{
		"workspace": l.WorkspaceID, "key": key, "limit": exportLimit, "bytes": exportBytes, "at": at,
	}, func(rows pgx.Rows) error {
		for rows.Next() {
			read++
			var i command.SnapshotItem
			var going bool
			if err := rows.Scan(&p.place.Key, &i.Account, &i.ItemID, &i.Event, &i.Revision, &i.LandedRevision, &i.Text,
				&i.Author, &i.Session, &i.At, &i.AtText, &i.CreatedAt, &i.UpdatedAt, &going); err != nil {
				return err
			}
			if going {
				continue
			}
			i.At, i.CreatedAt, i.UpdatedAt = i.At.UTC(), i.CreatedAt.UTC(), i.UpdatedAt.UTC()
			p.add(command.SnapshotLine{Item: &i})
			p.place.Written.Items++
		}
		return p.err
	})
	return read, tx.send(ctx, b)
}
