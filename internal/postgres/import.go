package postgres

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// notEmptySQL tells what keeps an import out of a workspace. An erase that is under way would cover records that come
// after it; another import would bring records of its own.
const notEmptySQL = `
SELECT EXISTS (SELECT FROM memories WHERE workspace_id = @workspace)
    OR EXISTS (SELECT FROM items WHERE workspace_id = @workspace)
    OR EXISTS (SELECT FROM erasures WHERE workspace_id = @workspace)
    OR EXISTS (SELECT FROM tasks WHERE workspace_id = @workspace AND stage IN ('accepted', 'committed') AND kind = 'import'
                AND completed_at IS NULL AND id <> @task)`

// AcceptImport implements write.ImportStore.
func (db *DB) AcceptImport(ctx context.Context, item write.Acceptance, parts write.Parts) write.Accepted {
	var answer write.Accepted
	var err error
	for range keyRuns { // the key that was found may be retired meanwhile
		err = db.InTxAlone(ctx, item.WorkspaceID, func(ctx context.Context, tx *Tx) error {
			answer = write.Accepted{TaskID: item.TaskID, Status: task.EventPending}
			holder, err := tx.claimKey(ctx, item.WorkspaceID, item.TaskID, item.Claim, false)
			if err != nil {
				return err
			}
			if holder != nil {
				answer.Replayed = true
				return tx.readReplay(ctx, item.WorkspaceID, *holder, &answer)
			}
			return tx.insertImport(ctx, item, parts, &answer)
		})
		if !errors.Is(err, errRetired) {
			break
		}
	}
	failpoint.Hit("import.accepted")
	switch {
	case errors.Is(err, errRetired):
		return write.Accepted{Refused: fault.Wrap(fault.IdempotencyInProgress, err)}
	case err != nil:
		return write.Accepted{Refused: err}
	}
	return answer
}

func (tx *Tx) insertImport(ctx context.Context, item write.Acceptance, parts write.Parts, answer *write.Accepted) error {
	if err := tx.requireEmpty(ctx, item.WorkspaceID, item.TaskID); err != nil {
		return err
	}
	place := 0
	err := parts(func(part []byte) error { // one at a time: the whole is never in memory
		body, err := tx.seal(atPart(item.WorkspaceID, item.TaskID, place), part)
		if err != nil {
			return err
		}
		b := &batch{}
		b.exec("insert part", insertPartSQL, pgx.NamedArgs{
			"task": item.TaskID, "part": place, "workspace": item.WorkspaceID, "body": body,
		}, nil)
		place++
		return tx.send(ctx, b)
	})
	if err != nil {
		return err
	}
	return tx.insertAccepted(ctx, item, answer)
}

// requireEmpty answers a fault WORKSPACE_NOT_EMPTY unless the import may have the workspace. It needs the gate alone.
func (tx *Tx) requireEmpty(ctx context.Context, workspace, id uuid.UUID) error {
	taken := false
	b := &batch{}
	b.query("workspace not empty", notEmptySQL, pgx.NamedArgs{"workspace": workspace, "task": id}, one(&taken))
	if err := tx.send(ctx, b); err != nil {
		return err
	}
	if taken {
		return fault.New(fault.WorkspaceNotEmpty)
	}
	return nil
}

// takenIDsSQL finds ids that belong to a record already, here or in another workspace: ids of records are unique in a
// database.
const takenIDsSQL = `SELECT id FROM memories WHERE id = ANY(@ids::uuid[])`

// takenIDs answers those of the ids that belong to a record already.
func (db *DB) takenIDs(ctx context.Context, ids []uuid.UUID) ([]uuid.UUID, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var taken []uuid.UUID
	err := db.read(ctx, unbound, "taken ids", takenIDsSQL, pgx.NamedArgs{"ids": ids}, func(rows pgx.Rows) (err error) {
		taken, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		return err
	})
	return taken, err
}
