package postgres

import (
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/memory"
)

// lockTargetsSQL locks live records of the workspace in id order; to a change, what an open erase covers is gone
// already. Their lanes are held before.
const lockTargetsSQL = `
SELECT m.id, m.version, m.text
  FROM memories m
 WHERE m.workspace_id = @workspace AND m.id = ANY(@ids::uuid[]) AND ` + liveSQL + `
   AND NOT ` + fencedRecordSQL + `
 ORDER BY m.id
   FOR UPDATE OF m`

// projectedSQL tells which records have a vector of their version. It comes after the statement that locked them,
// so that it sees the vectors that were written meanwhile.
const projectedSQL = `
SELECT v.memory_id
  FROM memories m
  JOIN memory_vectors v ON v.memory_id = m.id AND v.version = m.version
 WHERE m.workspace_id = @workspace AND m.id = ANY(@ids::uuid[])`

// editRecordsSQL changes locked records or ends them, with a history row each. What is null stays as it was; a new
// text was said when its command was accepted, and never before the text that it replaces.
const editRecordsSQL = `
WITH c AS (
  SELECT * FROM unnest(@ids::uuid[], @ordinals::int[], @history::uuid[], @ends::boolean[], @texts::text[],
                       @keys::bytea[], @metadata::text[], @dates::timestamptz[], @expiries::timestamptz[],
                       @endless::boolean[])
           AS c (id, ordinal, history_id, ends, text, content_key, metadata, event_date, expires_at, endless)
), clock AS (
  SELECT coalesce(@now::timestamptz, clock_timestamp()) AS at,
         coalesce(@said_at::timestamptz,
                  (SELECT last_accepted_at FROM lanes WHERE workspace_id = @workspace AND lane = @lane)) AS said_at
), h AS (
  INSERT INTO memory_history (id, workspace_id, memory_id, task_id, ordinal, event, version, old_text, new_text, at)
  SELECT c.history_id, @workspace, c.id, @task, c.ordinal, CASE WHEN c.ends THEN 'DELETE' ELSE 'UPDATE' END,
         m.version + 1, m.text, CASE WHEN NOT c.ends THEN coalesce(c.text, m.text) END, clock.at
    FROM c JOIN memories m ON m.id = c.id AND m.workspace_id = @workspace, clock
)
UPDATE memories AS m
   SET version = m.version + 1, text = coalesce(c.text, m.text), content_key = coalesce(c.content_key, m.content_key),
       metadata = coalesce(c.metadata::json, m.metadata), event_date = coalesce(c.event_date, m.event_date),
       expires_at = CASE WHEN NOT c.endless THEN coalesce(c.expires_at, m.expires_at) END,
       said_at = CASE WHEN c.text IS NULL THEN m.said_at ELSE greatest(m.said_at, clock.said_at) END,
       deleted_at = CASE WHEN c.ends THEN clock.at END, updated_at = clock.at
  FROM c, clock
 WHERE m.id = c.id AND m.workspace_id = @workspace`

// editTermsSQL gives records with a new text the terms of it.
const editTermsSQL = `
INSERT INTO memory_terms (memory_id, workspace_id, version, content_key, terms, counts, length)
SELECT m.id, m.workspace_id, m.version, m.content_key, string_to_array(c.terms, ' '), string_to_array(c.counts, ' ')::smallint[], c.length
  FROM unnest(@ids::uuid[], @terms::text[], @counts::text[], @lengths::int[]) AS c (id, terms, counts, length)
  JOIN memories m ON m.id = c.id AND m.workspace_id = @workspace
ON CONFLICT (memory_id) DO UPDATE
   SET version = excluded.version, content_key = excluded.content_key, terms = excluded.terms, counts = excluded.counts, length = excluded.length`

// keepProjectionsSQL carries the projections of records over that kept their text.
const keepProjectionsSQL = `
WITH m AS (
  SELECT id, version FROM memories WHERE workspace_id = @workspace AND id = ANY(@ids::uuid[])
), v AS (
  UPDATE memory_vectors AS v SET version = m.version FROM m WHERE v.memory_id = m.id AND v.version = m.version - 1
)
UPDATE memory_terms AS t SET version = m.version FROM m WHERE t.memory_id = m.id AND t.version = m.version - 1`

// dropProjectionsSQL removes what is kept beside records that have ended: their projections and what was said of them.
const dropProjectionsSQL = `
WITH f AS (
  DELETE FROM memory_feedback WHERE workspace_id = @workspace AND memory_id = ANY(@ids::uuid[])
), v AS (
  DELETE FROM memory_vectors WHERE workspace_id = @workspace AND memory_id = ANY(@ids::uuid[])
)
DELETE FROM memory_terms WHERE workspace_id = @workspace AND memory_id = ANY(@ids::uuid[])`

// target is a record that a change names, as it was found under its lock.
type target struct {
	version   int
	text      string
	projected bool
}

// addLockTargets locks the records and tells which of them are live, at which version, and which have their vector.
func addLockTargets(b *batch, workspace uuid.UUID, ids []uuid.UUID, now *time.Time, found map[uuid.UUID]target) {
	b.query("lock targets", lockTargetsSQL, pgx.NamedArgs{"workspace": workspace, "ids": ids, "now": now},
		func(rows pgx.Rows) error {
			clear(found)
			for rows.Next() {
				var id uuid.UUID
				var t target
				if err := rows.Scan(&id, &t.version, &t.text); err != nil {
					return err
				}
				found[id] = t
			}
			return nil
		})
	b.query("projected targets", projectedSQL, pgx.NamedArgs{"workspace": workspace, "ids": ids},
		func(rows pgx.Rows) error {
			for rows.Next() {
				var id uuid.UUID
				if err := rows.Scan(&id); err != nil {
					return err
				}
				if t, live := found[id]; live {
					t.projected = true
					found[id] = t
				}
			}
			return nil
		})
}

// edit is a change that applies, with its place in its command.
type edit struct {
	command.Change
	ordinal int
}

// editor is what all edits of one command have in common. Without saidAt the command is being accepted in the same
// transaction and the lane's row knows the time.
type editor struct {
	task      uuid.UUID
	workspace uuid.UUID
	lane      memory.Lane
	saidAt    *time.Time
}

// addEdits changes the records with their history, and their terms and vectors as far as these follow from what is
// there. Vectors of new texts are the caller's.
func addEdits(b *batch, by editor, edits []edit, now *time.Time) {
	n := len(edits)
	if n == 0 {
		return
	}
	ids, history, ordinals := make([]uuid.UUID, n), make([]uuid.UUID, n), make([]int32, n)
	ends, endless := make([]bool, n), make([]bool, n)
	texts, metadata := make([]*string, n), make([]*string, n)
	keys, dates, expiries := make([][]byte, n), make([]*time.Time, n), make([]*time.Time, n)
	for i, e := range edits {
		ids[i], history[i] = e.ID, memory.HistoryID(by.task, e.ordinal)
		ordinals[i] = int32(e.ordinal) // #nosec G115 -- at most command.MaxBatch
		ends[i], endless[i], texts[i], expiries[i] = e.Delete, e.NeverExpires, e.Content, e.ExpiresAt
		dates[i] = e.EventDate
		if e.Content != nil {
			key := memory.KeyOf(*e.Content)
			keys[i] = key[:]
		}
		if e.Metadata != nil {
			text := string(e.Metadata)
			metadata[i] = &text
		}
	}
	b.exec("edit records", editRecordsSQL, pgx.NamedArgs{
		"ids": ids, "ordinals": ordinals, "history": history, "ends": ends, "texts": texts, "keys": keys,
		"metadata": metadata, "dates": dates, "expiries": expiries, "endless": endless, "workspace": by.workspace, "task": by.task,
		"lane": by.lane[:], "said_at": by.saidAt, "now": now,
	}, nil)
	addEditedTerms(b, by.workspace, edits)
}

// addEditedTerms keeps terms and vectors in step with what the edits did.
func addEditedTerms(b *batch, workspace uuid.UUID, edits []edit) {
	var ended, kept, changed []uuid.UUID
	var terms, counts []string
	var lengths []int32
	for _, e := range edits {
		switch {
		case e.Delete:
			ended = append(ended, e.ID)
		case e.Content == nil:
			kept = append(kept, e.ID)
		default:
			words := memory.TermsOf(*e.Content)
			changed = append(changed, e.ID)
			terms, counts = append(terms, strings.Join(words.Terms, " ")), append(counts, joinCounts(words.Counts))
			lengths = append(lengths, int32(words.Length)) // #nosec G115 -- bounded by the size of a body
		}
	}
	if len(ended) > 0 {
		b.exec("drop projections", dropProjectionsSQL, pgx.NamedArgs{"workspace": workspace, "ids": ended}, nil)
	}
	if len(kept) > 0 {
		b.exec("keep projections", keepProjectionsSQL, pgx.NamedArgs{"workspace": workspace, "ids": kept}, nil)
	}
	if len(changed) > 0 {
		b.exec("edit terms", editTermsSQL, pgx.NamedArgs{
			"workspace": workspace, "ids": changed, "terms": terms, "counts": counts, "lengths": lengths,
		}, nil)
	}
}
