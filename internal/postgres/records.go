package postgres

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// repeatsSQL looks up live, unexpired records of the lane with the same content. Under the lane's lock it sees
// every record that a repeat could repeat, but for those that an open erase is about to remove.
const repeatsSQL = `
SELECT DISTINCT ON (m.content_key) m.content_key, m.id
  FROM memories m
 WHERE m.workspace_id = @workspace AND m.lane = @lane AND m.content_key = ANY(@keys::bytea[]) AND m.deleted_at IS NULL
   AND m.valid_to IS NULL
   AND (m.expires_at IS NULL OR m.expires_at > (SELECT coalesce(@now::timestamptz, clock_timestamp())))
   AND NOT ` + fencedRecordSQL + `
 ORDER BY m.content_key, m.accepted_at, m.id`

// insertRecordsSQL writes records with their first history row and their terms.
const insertRecordsSQL = `
WITH r AS (
  SELECT * FROM unnest(@ids::uuid[], @ordinals::int[], @texts::text[], @types::text[], @roles::text[],
                       @keys::bytea[], @metadata::text[], @event_dates::timestamptz[], @history::uuid[],
                       @terms::text[], @counts::text[], @lengths::int[], @expiries::timestamptz[],
                       @categories::text[])
           AS r (id, ordinal, text, type, role, content_key, metadata, event_date, history_id, terms, counts, length,
                 expires_at, categories)
), clock AS (
  SELECT coalesce(@now::timestamptz, clock_timestamp()) AS at,
         coalesce(@accepted_at::timestamptz,
                  (SELECT last_accepted_at FROM lanes WHERE workspace_id = @workspace AND lane = @lane)) AS accepted_at
), m AS (
  INSERT INTO memories (id, workspace_id, task_id, user_id, agent_id, run_id, app_id, lane, text, type, role,
                        content_key, metadata, event_date, accepted_at, said_at, valid_from, expires_at, categories, created_at, updated_at)
  SELECT r.id, @workspace, @task, nullif(@user_id, ''), nullif(@agent_id, ''), nullif(@run_id, ''), nullif(@app_id, ''),
         @lane, r.text, nullif(r.type, ''), nullif(r.role, ''), r.content_key, r.metadata::json, r.event_date,
         clock.accepted_at, clock.accepted_at, clock.accepted_at, r.expires_at, r.categories::text[], clock.at, clock.at
    FROM r, clock
), h AS (
  INSERT INTO memory_history (id, workspace_id, memory_id, task_id, ordinal, event, version, old_text, new_text, at)
  SELECT r.history_id, @workspace, r.id, @task, r.ordinal, 'ADD', 1, NULL, r.text, clock.at FROM r, clock
)
INSERT INTO memory_terms (memory_id, workspace_id, version, content_key, terms, counts, length)
SELECT r.id, @workspace, 1, r.content_key, string_to_array(r.terms, ' '), string_to_array(r.counts, ' ')::smallint[], r.length FROM r`

// vectorsSQL writes vectors from the live records, only where a record still has the version that was projected or,
// as after a change of its metadata or its validity, still the same text, and never over a newer vector. Reading FOR
// SHARE holds off an edit until the vectors are committed.
const vectorsSQL = `
INSERT INTO memory_vectors AS v (memory_id, workspace_id, version, content_key, model, vector, skipped, made_at)
SELECT m.id, m.workspace_id, m.version, m.content_key, @model, p.vector, p.vector IS NULL,
       (SELECT coalesce(@now::timestamptz, clock_timestamp()))
  FROM unnest(@ids::uuid[], @versions::int[], @keys::bytea[], @vectors::bytea[]) AS p (id, version, content_key, vector)
  JOIN (SELECT id, workspace_id, version, content_key FROM memories
         WHERE id = ANY(@ids::uuid[]) AND workspace_id = @workspace AND deleted_at IS NULL
         ORDER BY id FOR SHARE) m
    ON m.id = p.id AND (m.version = p.version OR m.content_key = p.content_key)
ON CONFLICT (memory_id) DO UPDATE
   SET version = excluded.version, content_key = excluded.content_key, model = excluded.model,
       vector = excluded.vector, skipped = excluded.skipped, made_at = excluded.made_at
 WHERE v.version <= excluded.version`

// recordOwner is what all records of one command have in common. Without acceptedAt the command is being
// accepted in the same transaction and its lane's row knows the time.
type recordOwner struct {
	task       uuid.UUID
	workspace  uuid.UUID
	scope      memory.Scope
	lane       memory.Lane
	acceptedAt *time.Time
}

// addRepeats looks for repeats of the plan's inferred facts.
func addRepeats(b *batch, l worker.Lease, plan memory.Plan, now *time.Time, found *map[memory.ContentKey]uuid.UUID) {
	keys := make([][]byte, 0, len(plan.Records))
	for _, r := range plan.Records {
		if !r.Verbatim {
			key := memory.KeyOf(r.Text)
			keys = append(keys, key[:])
		}
	}
	*found = make(map[memory.ContentKey]uuid.UUID, len(keys))
	if len(keys) == 0 {
		return
	}
	b.query("repeats", repeatsSQL, pgx.NamedArgs{
		"workspace": l.WorkspaceID, "lane": l.Lane[:], "keys": keys, "now": now,
	}, func(rows pgx.Rows) error {
		clear(*found)
		for rows.Next() {
			var key []byte
			var id uuid.UUID
			if err := rows.Scan(&key, &id); err != nil {
				return err
			}
			if len(key) != len(memory.ContentKey{}) {
				return fmt.Errorf("content key of %d bytes", len(key))
			}
			(*found)[memory.ContentKey(key)] = id
		}
		return nil
	})
}

// recordRows are the columns of new records, one row for each.
type recordRows struct {
	owners, ordinals, lengths          []int32 // owners number the commands that the records are of
	ids, history                       []uuid.UUID
	texts, types, roles, terms, counts []string
	categories                         []string
	keys                               [][]byte
	metadata                           []*string
	dates, expiries                    []*time.Time
}

func (rows *recordRows) add(owner int32, id uuid.UUID, r planned) {
	key := memory.KeyOf(r.Text)
	rows.owners = append(rows.owners, owner)
	rows.ids, rows.history, rows.keys = append(rows.ids, r.ID), append(rows.history, memory.HistoryID(id, r.ordinal)), append(rows.keys, key[:])
	rows.ordinals = append(rows.ordinals, int32(r.ordinal)) // #nosec G115 -- at most 500
	rows.texts, rows.types, rows.roles = append(rows.texts, r.Text), append(rows.types, string(r.Type)), append(rows.roles, r.Role)
	rows.dates, rows.expiries = append(rows.dates, r.EventDate), append(rows.expiries, r.ExpiresAt)
	rows.categories = append(rows.categories, textArray(r.Categories))
	var metadata *string
	if r.Metadata != nil {
		text := string(r.Metadata)
		metadata = &text
	}
	rows.metadata = append(rows.metadata, metadata)
	words := memory.TermsOf(r.Text)
	rows.terms, rows.counts = append(rows.terms, strings.Join(words.Terms, " ")), append(rows.counts, joinCounts(words.Counts))
	rows.lengths = append(rows.lengths, int32(words.Length)) // #nosec G115 -- bounded by the size of a body
}

func (rows *recordRows) args() pgx.NamedArgs {
	return pgx.NamedArgs{
		"ids": rows.ids, "ordinals": rows.ordinals, "texts": rows.texts, "types": rows.types, "roles": rows.roles,
		"keys": rows.keys, "metadata": rows.metadata, "event_dates": rows.dates, "expiries": rows.expiries,
		"categories": rows.categories, "history": rows.history, "terms": rows.terms, "counts": rows.counts, "lengths": rows.lengths,
	}
}

func addRecords(b *batch, owner recordOwner, added []planned, now *time.Time) {
	if len(added) == 0 {
		return
	}
	rows := &recordRows{}
	for _, r := range added {
		rows.add(0, owner.task, r)
	}
	args := rows.args()
	maps.Copy(args, pgx.NamedArgs{
		"workspace": owner.workspace, "task": owner.task, "user_id": owner.scope.UserID,
		"agent_id": owner.scope.AgentID, "run_id": owner.scope.RunID, "app_id": owner.scope.AppID,
		"lane": owner.lane[:], "accepted_at": owner.acceptedAt, "now": now,
	})
	b.exec("insert records", insertRecordsSQL, args, nil)
}

// textArray writes texts as the database writes an array of them: lists of lists have no type of their own.
func textArray(texts []string) string {
	quoted := make([]string, len(texts))
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	for i, text := range texts {
		quoted[i] = `"` + escape.Replace(text) + `"`
	}
	return "{" + strings.Join(quoted, ",") + "}"
}

func joinCounts(counts []int16) string {
	var text strings.Builder
	for i, c := range counts {
		if i > 0 {
			text.WriteByte(' ')
		}
		fmt.Fprintf(&text, "%d", c)
	}
	return text.String()
}

// vectorsOf pairs the records that were added with their vectors by their place in the plan.
func vectorsOf(added []planned, item worker.Commit) []worker.Projection {
	projected := make([]worker.Projection, 0, len(added))
	for _, r := range added {
		var v model.Vector
		if r.ordinal < len(item.Vectors) {
			v = item.Vectors[r.ordinal]
		}
		projected = append(projected, worker.Projection{RecordID: r.ID, Version: 1, Vector: v})
	}
	return projected
}

func addVectors(b *batch, workspace uuid.UUID, vectorModel string, projected []worker.Projection, now *time.Time) {
	if len(projected) == 0 {
		return
	}
	ids := make([]uuid.UUID, len(projected))
	versions := make([]int32, len(projected))
	keys, vectors := make([][]byte, len(projected)), make([][]byte, len(projected))
	for i, p := range projected {
		ids[i], versions[i], vectors[i] = p.RecordID, int32(p.Version), encodeVector(p.Vector) // #nosec G115 -- small
		if p.Key != nil {
			keys[i] = p.Key[:]
		}
	}
	b.exec("vectors", vectorsSQL, pgx.NamedArgs{
		"ids": ids, "versions": versions, "keys": keys, "vectors": vectors, "model": vectorModel, "workspace": workspace, "now": now,
	}, nil)
}

// encodeVector stores a vector as little-endian float32, nil for none.
func encodeVector(v model.Vector) []byte {
	if v == nil {
		return nil
	}
	body := make([]byte, 0, 4*len(v))
	for _, x := range v {
		body = binary.LittleEndian.AppendUint32(body, math.Float32bits(x))
	}
	return body
}

// decodeVector reads what encodeVector wrote.
func decodeVector(body []byte) (model.Vector, error) {
	if len(body)%4 != 0 {
		return nil, fmt.Errorf("a vector of %d bytes", len(body))
	}
	v := make(model.Vector, 0, len(body)/4)
	for i := 0; i < len(body); i += 4 {
		v = append(v, math.Float32frombits(binary.LittleEndian.Uint32(body[i:])))
	}
	return v, nil
}
