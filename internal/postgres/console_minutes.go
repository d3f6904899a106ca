package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/operator"
)

const (
	// minuteRows bounds what is read of the last hour: sixty rows of a hundred processes.
	minuteRows = 6_000
	// standingEnds bounds the ended events that are looked at.
	standingEnds = 5_000
)

const addMinuteSQL = `
INSERT INTO process_minutes (at, process, span_ms, accepted, replayed, refused, accept_times, succeeded, retried, failed, given_back,
                             hints_published, hints_failed, hints_repaired, model_calls, model_times, model_errors, busy)
VALUES ((SELECT coalesce(@now::timestamptz, clock_timestamp())), @process, @span, @accepted, @replayed, @refused, @accept_times,
        @succeeded, @retried, @failed, @given_back, @published, @unpublished, @repaired, @calls, @model_times, @errors, @busy)`

// AddMinute keeps what a process did.
func (db *DB) AddMinute(ctx context.Context, m operator.ProcessMinute) error {
	failures := m.ModelErrors
	if failures == nil {
		failures = map[string]int64{}
	}
	return db.alone(ctx, unbound, "add minute", addMinuteSQL, pgx.NamedArgs{
		"now": db.now(), "process": m.Process, "span": max(1, m.Span.Milliseconds()), "accepted": m.Accepted, "replayed": m.Replayed,
		"refused": m.Refused, "accept_times": counted(m.AcceptTimes), "succeeded": m.Succeeded, "retried": m.Retried, "failed": m.Failed,
		"given_back": m.GivenBack, "published": m.HintsPublished, "unpublished": m.HintsFailed, "repaired": m.HintsFixed,
		"calls": m.ModelCalls, "model_times": counted(m.ModelTimes), "errors": failures, "busy": m.Busy,
	}, ignore)
}

// counted is never null.
func counted(t operator.Times) []int64 {
	if t == nil {
		return []int64{}
	}
	return t
}

const minutesSQL = `
SELECT at, process, span_ms, accepted, replayed, refused, accept_times, succeeded, retried, failed, given_back, hints_published,
       hints_failed, hints_repaired, model_calls, model_times, model_errors, busy
  FROM process_minutes
 WHERE at > (SELECT coalesce(@now::timestamptz, clock_timestamp())) - make_interval(secs => @window)
 ORDER BY at DESC, process
 LIMIT @limit`

// Minutes answers what the processes did within the window, the newest first.
func (db *DB) Minutes(ctx context.Context, window time.Duration) ([]operator.ProcessMinute, error) {
	var minutes []operator.ProcessMinute
	args := pgx.NamedArgs{"now": db.now(), "window": inSeconds(window), "limit": minuteRows}
	err := db.read(ctx, unbound, "read minutes", minutesSQL, args, func(rows pgx.Rows) (err error) {
		minutes, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (m operator.ProcessMinute, err error) {
			var span int64
			err = row.Scan(&m.At, &m.Process, &span, &m.Accepted, &m.Replayed, &m.Refused, &m.AcceptTimes, &m.Succeeded, &m.Retried, &m.Failed,
				&m.GivenBack, &m.HintsPublished, &m.HintsFailed, &m.HintsFixed, &m.ModelCalls, &m.ModelTimes, &m.ModelErrors, &m.Busy)
			m.At, m.Span = m.At.UTC(), time.Duration(span)*time.Millisecond
			return m, err
		})
		return err
	})
	return minutes, err
}

// standingSQL costs the same however large the tables are.
const standingSQL = `
WITH clock AS MATERIALIZED (
  SELECT coalesce(@now::timestamptz, clock_timestamp()) AS at
), open AS MATERIALIZED (
  SELECT t.status, t.ready, t.run_after, t.starts, t.lease_until FROM task_states t
   WHERE t.completed_at IS NULL
   ORDER BY t.workspace_id, t.stage, t.kind, t.accepted_at DESC, t.id DESC
   LIMIT @rows
), ended AS MATERIALIZED (
  SELECT t.status, t.accepted_at, t.completed_at FROM task_states t
   WHERE t.completed_at > (SELECT at FROM clock) - interval '1 minute'
   ORDER BY t.completed_at DESC, t.id DESC
   LIMIT @ends
), done AS (
  SELECT percentile_cont(ARRAY[0.5, 0.99]) WITHIN GROUP (ORDER BY extract(epoch FROM completed_at - accepted_at)::float8) AS at
    FROM ended WHERE status = 'succeeded'
)
SELECT (SELECT count(*) FROM open WHERE status = 'pending' AND starts = 0),
       (SELECT count(*) FROM open WHERE status = 'running' AND lease_until > (SELECT at FROM clock)),
       (SELECT count(*) FROM open WHERE status = 'pending' AND starts > 0 OR status = 'running' AND lease_until <= (SELECT at FROM clock)),
       (SELECT count(*) FROM open WHERE status = 'pending' AND ready AND run_after <= (SELECT at FROM clock)),
       (SELECT count(*) FROM open WHERE status = 'running' AND lease_until <= (SELECT at FROM clock)),
       (SELECT count(*) FROM ended WHERE status = 'succeeded'), (SELECT count(*) FROM ended WHERE status = 'failed'),
       coalesce((SELECT at[1] FROM done), 0), coalesce((SELECT at[2] FROM done), 0)`

// Standing answers how the whole service stands.
func (db *DB) Standing(ctx context.Context) (operator.Standing, error) {
	facts, err := db.Facts(ctx)
	if err != nil {
		return operator.Standing{}, err
	}
	s := operator.Standing{OldestDue: facts.OldestDue}
	args := pgx.NamedArgs{"now": db.now(), "rows": healthRows, "ends": standingEnds}
	err = db.read(ctx, unbound, "read standing", standingSQL, args, func(rows pgx.Rows) error {
		for rows.Next() {
			var p50, p99 float64
			if err := rows.Scan(&s.Waiting, &s.Running, &s.Retrying, &s.Due, &s.Expired, &s.Succeeded, &s.Failed, &p50, &p99); err != nil {
				return err
			}
			s.DoneP50, s.DoneP99 = fromSeconds(p50), fromSeconds(p99)
		}
		return nil
	})
	return s, err
}

const minuteKeptSQL = `
SELECT EXISTS (SELECT FROM service_minutes
                WHERE minute = date_trunc('minute', (SELECT coalesce(@now::timestamptz, clock_timestamp())), 'UTC'))`

const keepStandingSQL = `
INSERT INTO service_minutes (minute, waiting, running, retrying, due, expired, oldest_ms, succeeded, failed, done_p50_ms, done_p99_ms)
VALUES (date_trunc('minute', (SELECT coalesce(@now::timestamptz, clock_timestamp())), 'UTC'), @waiting, @running, @retrying, @due,
        @expired, @oldest, @succeeded, @failed, @p50, @p99)
ON CONFLICT (minute) DO NOTHING`

// KeepStanding keeps how the service stands in this minute, unless another process has.
func (db *DB) KeepStanding(ctx context.Context) error {
	kept := false
	err := db.read(ctx, unbound, "look for minute", minuteKeptSQL, pgx.NamedArgs{"now": db.now()}, func(rows pgx.Rows) error {
		for rows.Next() {
			if err := rows.Scan(&kept); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || kept {
		return err
	}
	s, err := db.Standing(ctx)
	if err != nil {
		return err
	}
	return db.alone(ctx, unbound, "keep standing", keepStandingSQL, pgx.NamedArgs{
		"now": db.now(), "waiting": s.Waiting, "running": s.Running, "retrying": s.Retrying, "due": s.Due, "expired": s.Expired,
		"oldest": s.OldestDue.Milliseconds(), "succeeded": s.Succeeded, "failed": s.Failed, "p50": s.DoneP50.Milliseconds(),
		"p99": s.DoneP99.Milliseconds(),
	}, ignore)
}

const standingsSQL = `
SELECT minute, waiting, running, retrying, due, expired, oldest_ms, succeeded, failed, done_p50_ms, done_p99_ms
  FROM service_minutes
 WHERE minute > (SELECT coalesce(@now::timestamptz, clock_timestamp())) - make_interval(secs => @window)
 ORDER BY minute
 LIMIT @limit`

// Standings answers how the service stood within the window, the oldest minute first.
func (db *DB) Standings(ctx context.Context, window time.Duration) ([]operator.ServiceMinute, error) {
	var all []operator.ServiceMinute
	args := pgx.NamedArgs{"now": db.now(), "window": inSeconds(window), "limit": minuteRows}
	err := db.read(ctx, unbound, "read standings", standingsSQL, args, func(rows pgx.Rows) (err error) {
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (m operator.ServiceMinute, err error) {
			var oldest, p50, p99 int64
			err = row.Scan(&m.Minute, &m.Waiting, &m.Running, &m.Retrying, &m.Due, &m.Expired, &oldest, &m.Succeeded, &m.Failed, &p50, &p99)
			m.Minute = m.Minute.UTC()
			m.OldestDue = time.Duration(oldest) * time.Millisecond
			m.DoneP50, m.DoneP99 = time.Duration(p50)*time.Millisecond, time.Duration(p99)*time.Millisecond
			return m, err
		})
		return err
	})
	return all, err
}
