package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
)

// lockJudgedSQL holds a live record that no open erase covers, so that who ends it waits and then removes the feedback
// with it.
const lockJudgedSQL = `
SELECT m.id
  FROM memories m
 WHERE m.id = @memory AND m.workspace_id = @workspace AND ` + liveSQL + `
   AND NOT ` + fencedRecordSQL + `
   FOR SHARE OF m`

const giveFeedbackSQL = `
INSERT INTO memory_feedback AS f (memory_id, workspace_id, feedback, reason, at)
VALUES (@memory, @workspace, @verdict, @reason, (SELECT coalesce(@now::timestamptz, clock_timestamp())))
ON CONFLICT (memory_id) DO UPDATE SET feedback = excluded.feedback, reason = excluded.reason, at = excluded.at
RETURNING f.at`

const takeBackFeedbackSQL = `DELETE FROM memory_feedback WHERE memory_id = @memory AND workspace_id = @workspace`

// GiveFeedback implements write.FeedbackStore.
func (db *DB) GiveFeedback(ctx context.Context, workspace uuid.UUID, feedback command.Feedback) (*time.Time, error) {
	var at *time.Time
	err := db.InTx(ctx, workspace, func(ctx context.Context, tx *Tx) error {
		at = nil
		live := false
		args := pgx.NamedArgs{"memory": feedback.Memory, "workspace": workspace, "now": tx.db.now()}
		b := &batch{}
		b.query("lock judged", lockJudgedSQL, args, func(rows pgx.Rows) error {
			live = rows.Next()
			return nil
		})
		if err := tx.send(ctx, b); err != nil {
			return err
		}
		if !live {
			return fault.New(fault.MemoryNotFound)
		}
		b = &batch{}
		if feedback.Verdict == nil {
			b.exec("take back feedback", takeBackFeedbackSQL, args, nil)
			return tx.send(ctx, b)
		}
		args["verdict"], args["reason"] = string(*feedback.Verdict), feedback.Reason
		b.query("give feedback", giveFeedbackSQL, args, func(rows pgx.Rows) error {
			said, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[time.Time])
			said = said.UTC()
			at = &said
			return err
		})
		return tx.send(ctx, b)
	})
	if err != nil {
		return nil, err
	}
	return at, nil
}
