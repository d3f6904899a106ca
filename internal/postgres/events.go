package postgres

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// eventStatusSQL is the public status of the task t by the database's clock (@now replaces it in tests). It is
// the only place that says what a client sees: get, list, filter and replay use it.
const eventStatusSQL = `(CASE
    WHEN t.status = 'succeeded' THEN 'SUCCEEDED'
    WHEN t.status = 'failed' THEN 'FAILED'
    WHEN t.status = 'running' AND t.lease_until > (SELECT coalesce(@now::timestamptz, clock_timestamp())) THEN 'RUNNING'
    WHEN t.starts > 0 THEN 'RETRYING'
    ELSE 'PENDING' END)`

// eventColumnsSQL lists what an event shows of the task t. Results belong to success alone and take their text
// from the live records, so that the text of what is gone is gone here too. Usage is that of the current run.
const eventColumnsSQL = `
       t.id, t.kind, t.user_id, t.agent_id, t.run_id, t.app_id, t.erased, t.outcome, t.claims, t.generation,
       CASE WHEN t.status <> 'succeeded' THEN t.error_class END,
       CASE WHEN t.status <> 'succeeded' THEN t.error_code END,
       t.status = 'failed' AND t.command IS NULL,
       (t.counts ->> 'done')::bigint, (t.counts ->> 'total')::bigint, (t.counts ->> 'line')::bigint,
       t.accepted_at, t.updated_at, t.started_at, t.committed_at, t.completed_at,
       CASE WHEN t.status = 'pending' AND t.run_after > (SELECT coalesce(@now::timestamptz, clock_timestamp())) THEN t.run_after END,
       result.ordinals, result.records, result.changes, result.texts, result.errors,
       coalesce(run.amount, 0), coalesce(closing.settled, 0), coalesce(closing.released, 0),
       spent.calls, spent.tokens_in, spent.tokens_out`

// eventJoinsSQL joins what eventColumnsSQL needs to the task t.
const eventJoinsSQL = `
  LEFT JOIN task_runs run ON run.task_id = t.id AND run.generation = t.generation
  LEFT JOIN credit_closings closing ON closing.task_id = t.id AND closing.generation = t.generation
 CROSS JOIN LATERAL (
       SELECT coalesce(sum(a.provider_calls), 0)::bigint AS calls, coalesce(sum(a.tokens_in), 0)::bigint AS tokens_in,
              coalesce(sum(a.tokens_out), 0)::bigint AS tokens_out
         FROM task_attempts a WHERE a.task_id = t.id AND a.generation = t.generation) spent
 CROSS JOIN LATERAL (
       SELECT array_agg(r.ordinal ORDER BY r.ordinal) AS ordinals, array_agg(r.record_id ORDER BY r.ordinal) AS records,
              array_agg(r.event ORDER BY r.ordinal) AS changes, array_agg(m.text ORDER BY r.ordinal) AS texts,
              array_agg(coalesce(r.error_code, '') ORDER BY r.ordinal) AS errors
         FROM task_results r
         LEFT JOIN memories m ON m.id = r.record_id AND m.workspace_id = r.workspace_id AND m.deleted_at IS NULL
               AND (m.expires_at IS NULL OR m.expires_at > (SELECT coalesce(@now::timestamptz, clock_timestamp())))
        WHERE r.task_id = t.id AND t.status = 'succeeded') result`

// EventReader reads events. It implements recall.EventStore.
type EventReader struct {
	db          *DB
	maxAttempts int
}

// EventReader returns a reader that shows maxAttempts as every event's budget of crashes.
func (db *DB) EventReader(maxAttempts int) *EventReader { return &EventReader{db, maxAttempts} }

const eventSQL = `
SELECT ` + eventStatusSQL + `,` + eventColumnsSQL + `
  FROM all_tasks t` + eventJoinsSQL + `
 WHERE t.id = @id AND t.workspace_id = @workspace
 LIMIT 1`

// Event answers an event of the workspace, wherever its task is kept, or a fault EVENT_NOT_FOUND.
func (r *EventReader) Event(ctx context.Context, workspace, id uuid.UUID) (recall.Event, error) {
	event, found, err := r.one(ctx, workspace, "read event", eventSQL, pgx.NamedArgs{"id": id, "workspace": workspace, "now": r.db.now()})
	if err != nil {
		return recall.Event{}, err
	}
	if !found {
		return recall.Event{}, fault.New(fault.EventNotFound)
	}
	return event, nil
}

const eventByKeySQL = `
SELECT ` + eventStatusSQL + `,` + eventColumnsSQL + `
  FROM idempotency_keys k
  JOIN all_tasks t ON t.id = k.task_id AND t.workspace_id = k.workspace_id` + eventJoinsSQL + `
 WHERE k.workspace_id = @workspace AND k.key_hash = @key_hash
 LIMIT 1`

// EventByKey answers the event that a key began or retried; false if the workspace doesn't know the key.
func (r *EventReader) EventByKey(ctx context.Context, workspace uuid.UUID, keyHash [sha256.Size]byte) (recall.Event, bool, error) {
	return r.one(ctx, workspace, "read event by key", eventByKeySQL,
		pgx.NamedArgs{"workspace": workspace, "key_hash": keyHash[:], "now": r.db.now()})
}

func (r *EventReader) one(ctx context.Context, workspace uuid.UUID, name, sql string, args pgx.NamedArgs) (recall.Event, bool, error) {
	var events []recall.Event
	err := r.db.read(ctx, of(workspace), name, sql, args, func(rows pgx.Rows) (err error) {
		events, err = pgx.CollectRows(rows, r.scan)
		return err
	})
	if err != nil || len(events) == 0 {
		return recall.Event{}, false, err
	}
	return events[0], true, nil
}

// openStagesSQL is the stages of what is open: the index of that has a range for each.
const openStagesSQL = `unnest(ARRAY['accepted', 'committed']) AS open (stage)`

// eventsSQL walks one index range for each kind, newest first, and takes the page from their tops. A page is
// cut before the details are joined.
const eventsSQL = `
WITH page AS MATERIALIZED (
  SELECT top.* FROM unnest(@kinds::text[]) AS wanted (kind)%[1]s
   CROSS JOIN LATERAL (
         SELECT t.*, ` + eventStatusSQL + ` AS event_status
           FROM all_tasks t
          WHERE t.workspace_id = @workspace AND t.kind = wanted.kind
            AND (t.accepted_at, t.id) < (coalesce(@after_at::timestamptz, 'infinity'),
                                         coalesce(@after_id::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
            AND (@status::text = '' OR ` + eventStatusSQL + ` = @status)%[2]s
          ORDER BY t.accepted_at DESC, t.id DESC
          LIMIT @limit) top
   ORDER BY top.accepted_at DESC, top.id DESC
   LIMIT @limit)
SELECT t.event_status,` + eventColumnsSQL + `
  FROM page t` + eventJoinsSQL + `
 ORDER BY t.accepted_at DESC, t.id DESC`

// ofStatus completes eventsSQL, or what walks like it, with the part of a status filter that an index knows: open and failed
// tasks are rare among the rest.
func ofStatus(sql string, status task.EventStatus) string {
	ranges, condition := "", ""
	switch status {
	case task.EventPending, task.EventRunning, task.EventRetrying:
		ranges, condition = " CROSS JOIN "+openStagesSQL, " AND t.completed_at IS NULL AND t.stage = open.stage"
	case task.EventFailed:
		condition = " AND t.status = 'failed'"
	case task.EventSucceeded:
		condition = " AND t.status = 'succeeded'"
	}
	return fmt.Sprintf(sql, ranges, condition)
}

// Events answers one page of the workspace's events, newest first; what is accepted meanwhile moves no page.
func (r *EventReader) Events(ctx context.Context, workspace uuid.UUID, query recall.EventQuery) (recall.EventPage, error) {
	kinds := make([]string, len(query.Kinds))
	for i, kind := range query.Kinds {
		kinds[i] = string(kind)
	}
	args := pgx.NamedArgs{
		"workspace": workspace, "kinds": kinds, "status": string(query.Status), "limit": query.Limit + 1, "now": r.db.now(),
	}
	setAfter(args, query.After)
	var page recall.EventPage
	err := r.db.read(ctx, of(workspace), "read events", ofStatus(eventsSQL, query.Status), args, func(rows pgx.Rows) (err error) {
		page.Events, err = pgx.CollectRows(rows, r.scan)
		return err
	})
	if err != nil {
		return recall.EventPage{}, err
	}
	if len(page.Events) > query.Limit {
		page.Events = page.Events[:query.Limit]
		last := page.Events[query.Limit-1]
		page.Next = &recall.Place{At: last.AcceptedAt, ID: last.ID}
	}
	for i := range page.Events {
		if query.Status != "" { // the filter has read the clock a moment before the column
			page.Events[i].Status = query.Status
		}
	}
	return page, nil
}

// setAfter sets the place that a page begins after, the top without one.
func setAfter(args pgx.NamedArgs, place *recall.Place) {
	args["after_at"], args["after_id"] = nil, nil
	if place != nil {
		args["after_at"], args["after_id"] = place.At, place.ID
	}
}

func (r *EventReader) scan(row pgx.CollectableRow) (recall.Event, error) {
	e := recall.Event{MaxAttempts: r.maxAttempts, Results: []memory.Result{}}
	var user, agent, run, app, outcome, class, code *string
	var ordinals []int
	var records []uuid.UUID
	var changes []memory.Change
	var texts []*string
	var refusals []string
	var done, total, line *int64
	err := row.Scan(&e.Status, &e.ID, &e.Kind, &user, &agent, &run, &app, &e.Erased, &outcome, &e.Attempts, &e.Generation,
		&class, &code, &e.InputGone, &done, &total, &line, &e.AcceptedAt, &e.UpdatedAt, &e.StartedAt, &e.CommittedAt, &e.CompletedAt,
		&e.NextAttemptAt, &ordinals, &records, &changes, &texts, &refusals, &e.Usage.Reserved, &e.Usage.Settled, &e.Usage.Released,
		&e.Usage.ProviderCalls, &e.Usage.TokensIn, &e.Usage.TokensOut)
	if err != nil {
		return recall.Event{}, err
	}
	e.Progress = progressOf(done, total, line)
	if !e.Erased {
		e.Scope = &memory.Scope{UserID: orEmpty(user), AgentID: orEmpty(agent), RunID: orEmpty(run), AppID: orEmpty(app)}
	}
	e.Outcome, e.ErrorClass, e.ErrorCode = task.Outcome(orEmpty(outcome)), task.Class(orEmpty(class)), task.ErrorCode(orEmpty(code))
	for i, id := range records {
		e.Results = append(e.Results, memory.Result{Ordinal: ordinals[i], RecordID: id, Change: changes[i], Text: texts[i], Error: refusals[i]})
	}
	e.AcceptedAt, e.UpdatedAt = e.AcceptedAt.UTC(), e.UpdatedAt.UTC()
	inUTC(e.StartedAt, e.CommittedAt, e.CompletedAt, e.NextAttemptAt)
	return e, nil
}

// progressOf is what the counts of a task in pieces say, nil if there are none.
func progressOf(done, total, line *int64) *recall.Progress {
	if total == nil && line == nil {
		return nil
	}
	p := &recall.Progress{}
	for _, n := range []struct {
		counted *int64
		shown   *int64
	}{{done, &p.Done}, {total, &p.Total}, {line, &p.Line}} {
		if n.counted != nil {
			*n.shown = *n.counted
		}
	}
	return p
}

// orEmpty returns what a nullable column holds, empty without a value.
func orEmpty(column *string) string {
	if column == nil {
		return ""
	}
	return *column
}
