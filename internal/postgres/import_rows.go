package postgres

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// importedItemsSQL keeps items in the order of their keys. Items come first in the order of locks, so this statement
// asks itself what the fence will tell.
const importedItemsSQL = `
INSERT INTO items (workspace_id, item_key, account, item_id, event_id, revision, landed_revision, content_hash, text, author,
                   session, at, at_text, task_id, created_at, updated_at)
SELECT @workspace, n.item_key, n.account, n.item_id, n.event_id, n.revision, n.landed, n.content_hash, n.text, n.author,
       n.session, n.at, n.at_text, n.task, n.created_at, n.updated_at
  FROM unnest(@keys::bytea[], @accounts::text[], @ids::text[], @events::text[], @revisions::int[], @landed::int[],
              @contents::bytea[], @texts::text[], @authors::text[], @sessions::text[], @ats::timestamptz[], @at_texts::text[],
              @tasks::uuid[], @created::timestamptz[], @updated::timestamptz[])
         AS n (item_key, account, item_id, event_id, revision, landed, content_hash, text, author, session, at, at_text,
               task, created_at, updated_at)
 WHERE EXISTS (SELECT FROM task_parts p WHERE p.task_id = @task AND p.part = @cursor)
   AND NOT EXISTS (SELECT FROM erasures e WHERE e.workspace_id = @workspace)
 ORDER BY n.item_key
    ON CONFLICT (workspace_id, item_key) DO NOTHING`

// importedTask stands for a task that an imported row came from and that is in this database: rows of one task stay
// together, but none refers to that task, whatever the snapshot says.
func importedTask(l worker.Lease, event uuid.UUID) uuid.UUID { return uuid.NewSHA1(l.TaskID, event[:]) }

func addImportedItems(b *batch, l worker.Lease, items []command.SnapshotItem, kept *int64) {
	n := len(items)
	if n == 0 {
		return
	}
	keys, contents, tasks := make([][]byte, n), make([][]byte, n), make([]uuid.UUID, n)
	accounts, ids, events, texts := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	authors, sessions, atTexts := make([]string, n), make([]string, n), make([]string, n)
	revisions, landed := make([]int32, n), make([]int32, n)
	ats, created, updated := make([]time.Time, n), make([]time.Time, n), make([]time.Time, n)
	for i, s := range items {
		item := s.Item()
		key, content := item.Key(), item.Content()
		keys[i], contents[i], tasks[i], events[i] = key[:], content[:], s.Event, item.EventID(l.WorkspaceID)
		accounts[i], ids[i], texts[i], authors[i], sessions[i], atTexts[i] = s.Account, s.ItemID, s.Text, s.Author, s.Session, s.AtText
		revisions[i], landed[i] = int32(s.Revision), int32(s.LandedRevision) // #nosec G115 -- checked
		ats[i], created[i], updated[i] = s.At, earlier(s.CreatedAt, l.AcceptedAt), s.UpdatedAt
	}
	b.exec("import items", importedItemsSQL, pgx.NamedArgs{
		"workspace": l.WorkspaceID, "task": l.TaskID, "cursor": l.Cursor, "keys": keys, "accounts": accounts, "ids": ids,
		"events": events, "revisions": revisions, "landed": landed, "contents": contents, "texts": texts, "authors": authors,
		"sessions": sessions, "ats": ats, "at_texts": atTexts, "tasks": tasks, "created": created, "updated": updated,
	}, func(rows int64) error {
		*kept = rows
		return nil
	})
}

// importedLanesSQL takes the lanes of imported records in their order. What is written to them later is dated behind
// all that they have.
const importedLanesSQL = `
INSERT INTO lanes AS l (workspace_id, lane, next_seq, last_accepted_at)
SELECT @workspace, n.lane, 1, n.latest
  FROM unnest(@lanes::bytea[], @latest::timestamptz[]) AS n (lane, latest)
 ORDER BY n.lane
    ON CONFLICT (workspace_id, lane) DO UPDATE SET last_accepted_at = greatest(l.last_accepted_at, excluded.last_accepted_at)`

func addImportedLanes(b *batch, workspace uuid.UUID, memories []command.SnapshotMemory) {
	latest := map[memory.Lane]time.Time{}
	for _, m := range memories {
		lane := m.Scope().Lane()
		for _, at := range []time.Time{m.AcceptedAt, m.SaidAt} {
			if at.After(latest[lane]) {
				latest[lane] = at
			}
		}
	}
	lanes, ats := make([][]byte, 0, len(latest)), make([]time.Time, 0, len(latest))
	for lane := range latest {
		lanes = append(lanes, lane[:])
	}
	slices.SortFunc(lanes, bytes.Compare)
	for _, lane := range lanes {
		ats = append(ats, latest[memory.Lane(lane)])
	}
	if len(lanes) > 0 {
		b.exec("import lanes", importedLanesSQL, pgx.NamedArgs{"workspace": workspace, "lanes": lanes, "latest": ats}, nil)
	}
}

// importedRecordsSQL writes records as they were, with their terms if they are current. A record whose id is taken is
// left out. What an erase has left of the history of a record that comes back gives way to the history that comes with it:
// each version of a record has one row.
const importedRecordsSQL = `
WITH r AS (
  SELECT * FROM unnest(@ids::uuid[], @tasks::uuid[], @users::text[], @agents::text[], @runs::text[], @apps::text[],
                       @lanes::bytea[], @texts::text[], @types::text[], @roles::text[], @keys::bytea[], @metadata::text[],
                       @event_dates::timestamptz[], @versions::int[], @accepted::timestamptz[], @said::timestamptz[],
                       @valid_from::timestamptz[], @valid_to::timestamptz[], @superseded::uuid[], @expiries::timestamptz[],
                       @deleted::timestamptz[], @item_keys::bytea[], @item_ids::text[], @created::timestamptz[],
                       @updated::timestamptz[], @terms::text[], @counts::text[], @lengths::int[],
                       @categories::text[], @verdicts::text[], @reasons::text[], @said_of::timestamptz[])
           AS r (id, task_id, user_id, agent_id, run_id, app_id, lane, text, type, role, content_key, metadata, event_date,
                 version, accepted_at, said_at, valid_from, valid_to, superseded_by, expires_at, deleted_at, item_key,
                 item_id, created_at, updated_at, terms, counts, length, categories, feedback, reason, feedback_at)
), m AS (
  INSERT INTO memories (id, workspace_id, task_id, user_id, agent_id, run_id, app_id, lane, text, type, role, content_key,
                        metadata, event_date, version, accepted_at, said_at, valid_from, valid_to, superseded_by, expires_at,
                        deleted_at, item_key, item_id, created_at, updated_at, categories)
  SELECT id, @workspace, task_id, user_id, agent_id, run_id, app_id, lane, text, type, role, content_key, metadata::json,
         event_date, version, accepted_at, said_at, valid_from, valid_to, superseded_by, expires_at, deleted_at, item_key,
         item_id, created_at, updated_at, categories::text[]
    FROM r ORDER BY id
  ON CONFLICT (id) DO NOTHING
  RETURNING id, version, content_key, deleted_at
), t AS (
  INSERT INTO memory_terms (memory_id, workspace_id, version, content_key, terms, counts, length)
  SELECT m.id, @workspace, m.version, m.content_key, string_to_array(r.terms, ' '),
         string_to_array(r.counts, ' ')::smallint[], r.length
    FROM m JOIN r ON r.id = m.id
   WHERE m.deleted_at IS NULL
), f AS (
  INSERT INTO memory_feedback (memory_id, workspace_id, feedback, reason, at)
  SELECT m.id, @workspace, r.feedback, r.reason, r.feedback_at
    FROM m JOIN r ON r.id = m.id
   WHERE m.deleted_at IS NULL AND r.feedback IS NOT NULL
  ON CONFLICT (memory_id) DO NOTHING
), h AS (
  DELETE FROM memory_history h USING m WHERE h.workspace_id = @workspace AND h.memory_id = m.id
)
SELECT count(*) FROM m`

// importedHistorySQL writes the history of records that are the workspace's. A row whose id is taken, by what an erase has
// left of the original for instance, gets an id of its own.
const importedHistorySQL = `
INSERT INTO memory_history (id, workspace_id, memory_id, task_id, ordinal, event, version, old_text, new_text, at)
SELECT CASE WHEN row_number() OVER (PARTITION BY h.id) > 1 OR EXISTS (SELECT FROM memory_history x WHERE x.id = h.id)
            THEN h.spare ELSE h.id END,
       @workspace, h.memory_id, h.task_id, h.ordinal, h.event, h.version, h.old_text, h.new_text, h.at
  FROM unnest(@ids::uuid[], @spare::uuid[], @memories::uuid[], @tasks::uuid[], @ordinals::int[], @events::text[], @versions::int[],
              @olds::text[], @news::text[], @ats::timestamptz[])
         AS h (id, spare, memory_id, task_id, ordinal, event, version, old_text, new_text, at)
  JOIN memories m ON m.id = h.memory_id AND m.workspace_id = @workspace
 WHERE NOT EXISTS (SELECT FROM memory_history x
                    WHERE x.workspace_id = @workspace AND x.memory_id = h.memory_id AND x.version = h.version)
 ORDER BY h.id
    ON CONFLICT (id) DO NOTHING`

// importRecords writes the records of the piece with history, terms and vectors, and answers how many it left out.
func (tx *Tx) importRecords(ctx context.Context, l worker.Lease, piece *importPiece, vectorModel string, vectors []model.Vector, now *time.Time) (int64, error) {
	kept := int64(0)
	b := &batch{}
	if len(piece.memories) > 0 {
		b.query("import records", importedRecordsSQL, importedRecords(l, piece.memories), one(&kept))
	}
	if len(piece.history) > 0 {
		history := importedHistory(l, piece.history)
		b.exec("import history", importedHistorySQL, history, nil)
		b.exec("import rest of history", importedHistorySQL, history, nil) // ids that were taken while the first one ran
	}
	projected := make([]worker.Projection, 0, len(vectors))
	for i, vector := range vectors {
		m := piece.memories[piece.vectors[i]]
		projected = append(projected, worker.Projection{RecordID: m.ID, Version: m.Version, Vector: vector})
	}
	addVectors(b, l.WorkspaceID, vectorModel, projected, now)
	if err := tx.send(ctx, b); err != nil {
		return 0, err
	}
	missing := int64(len(piece.memories)) - kept
	if missing == 0 {
		return 0, nil
	}
	b = &batch{}
	addLeftOut(b, l, missing)
	return missing, tx.send(ctx, b)
}

// earlier returns the earlier of two times. What is imported was accepted before the import was, whatever another host's
// clock said, so that an erase that comes after the import covers it.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func importedRecords(l worker.Lease, memories []command.SnapshotMemory) pgx.NamedArgs {
	n := len(memories)
	ids, tasks, superseded := make([]uuid.UUID, n), make([]uuid.UUID, n), make([]*uuid.UUID, n)
	users, agents, runs, apps := make([]*string, n), make([]*string, n), make([]*string, n), make([]*string, n)
	types, roles, metadata, itemIDs := make([]*string, n), make([]*string, n), make([]*string, n), make([]*string, n)
	texts, terms, counts := make([]string, n), make([]string, n), make([]string, n)
	lanes, keys, itemKeys := make([][]byte, n), make([][]byte, n), make([][]byte, n)
	versions, lengths := make([]int32, n), make([]int32, n)
	categories, verdicts, reasons, saidOf := make([]string, n), make([]*string, n), make([]*string, n), make([]*time.Time, n)
	accepted, said, from := make([]time.Time, n), make([]time.Time, n), make([]time.Time, n)
	created, updated := make([]time.Time, n), make([]time.Time, n)
	dates, to, expiries, deleted := make([]*time.Time, n), make([]*time.Time, n), make([]*time.Time, n), make([]*time.Time, n)
	for i, m := range memories {
		lane, key, words := m.Scope().Lane(), memory.KeyOf(m.Text), memory.TermsOf(m.Text)
		ids[i], tasks[i], superseded[i], lanes[i], keys[i] = m.ID, m.Event, m.SupersededBy, lane[:], key[:]
		users[i], agents[i], runs[i], apps[i] = m.UserID, m.AgentID, m.RunID, m.AppID
		texts[i], types[i], roles[i], itemIDs[i] = m.Text, m.FactType, m.Role, m.ItemID
		if m.Metadata != nil {
			text := string(m.Metadata)
			metadata[i] = &text
		}
		if m.ItemID != nil && m.UserID != nil {
			item := command.ItemKeyOf(*m.UserID, *m.ItemID)
			itemKeys[i] = item[:]
		}
		categories[i] = textArray(m.Categories)
		if f := m.Feedback; f != nil {
			verdicts[i], reasons[i], saidOf[i] = &f.Verdict, f.Reason, &f.At
		}
		versions[i], lengths[i] = int32(m.Version), int32(words.Length) // #nosec G115 -- checked
		terms[i], counts[i] = strings.Join(words.Terms, " "), joinCounts(words.Counts)
		accepted[i], said[i], from[i], created[i], updated[i] = earlier(m.AcceptedAt, l.AcceptedAt), m.SaidAt, m.ValidFrom, m.CreatedAt, m.UpdatedAt
		dates[i], to[i], expiries[i], deleted[i] = m.EventDate, m.ValidTo, m.ExpiresAt, m.DeletedAt
	}
	return pgx.NamedArgs{
		"workspace": l.WorkspaceID, "ids": ids, "tasks": tasks, "users": users, "agents": agents, "runs": runs, "apps": apps,
		"lanes": lanes, "texts": texts, "types": types, "roles": roles, "keys": keys, "metadata": metadata,
		"event_dates": dates, "versions": versions, "accepted": accepted, "said": said, "valid_from": from, "valid_to": to,
		"superseded": superseded, "expiries": expiries, "deleted": deleted, "item_keys": itemKeys, "item_ids": itemIDs,
		"created": created, "updated": updated, "terms": terms, "counts": counts, "lengths": lengths,
		"categories": categories, "verdicts": verdicts, "reasons": reasons, "said_of": saidOf,
	}
}

func importedHistory(l worker.Lease, history []command.SnapshotHistory) pgx.NamedArgs {
	n := len(history)
	ids, spare, memories, tasks := make([]uuid.UUID, n), make([]uuid.UUID, n), make([]uuid.UUID, n), make([]uuid.UUID, n)
	ordinals, versions := make([]int32, n), make([]int32, n)
	events, olds, news, ats := make([]string, n), make([]*string, n), make([]*string, n), make([]time.Time, n)
	for i, h := range history {
		ids[i], memories[i], tasks[i], ordinals[i], events[i] = h.ID, h.MemoryID, h.Event, h.Ordinal, h.Change
		spare[i] = memory.HistoryID(l.TaskID, int(l.Cursor)*command.SnapshotPartLines+i)
		versions[i], olds[i], news[i], ats[i] = int32(h.Version), h.OldText, h.NewText, h.At // #nosec G115 -- checked
	}
	return pgx.NamedArgs{
		"workspace": l.WorkspaceID, "ids": ids, "spare": spare, "memories": memories, "tasks": tasks, "ordinals": ordinals, "events": events,
		"versions": versions, "olds": olds, "news": news, "ats": ats,
	}
}
