package postgres

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/operator"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// The deletion of a workspace is the one erase without a scope: its fence covers everything, other erases too. Callers
// can't ask for it, as their erases need a scope.

// deletes tells whether the erase is the deletion of its workspace.
func deletes(l worker.Lease) bool { return l.Scope.Empty() }

// beginDeletionSQL makes the workspace unknown to its keys. It is neither suspended nor paused any more, so that its deletion is claimed;
// the fence keeps everything else from being.
const beginDeletionSQL = `
UPDATE workspaces SET deletion = @task, suspended_at = NULL, paused_at = NULL, extraction = '{}' WHERE id = @workspace AND deletion IS NULL`

const revokeAllSQL = `
UPDATE api_keys SET revoked_at = coalesce(revoked_at, (SELECT coalesce(@now::timestamptz, clock_timestamp())))
 WHERE workspace_id = @workspace`

const deleteEndpointsSQL = `
UPDATE webhooks SET deleted_at = (SELECT coalesce(@now::timestamptz, clock_timestamp())), old_secret = NULL, old_secret_until = NULL
 WHERE workspace_id = @workspace AND deleted_at IS NULL`

// DeleteWorkspace begins to delete the workspace with everything in it: from now on its keys are unknown and nothing of
// it is claimed. The event of the answer does the rest, which can't be stopped; the name is free when it has ended. Doing
// it again changes nothing and answers the same event. ErrNoWorkspace for an unknown id or name. The hint is for whoever
// can publish it.
func (db *DB) DeleteWorkspace(ctx context.Context, idOrName string) (Workspace, *task.Hint, error) {
	found, err := db.Workspace(ctx, idOrName)
	if err != nil || found.Deletion != nil {
		return found, nil, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return Workspace{}, nil, fmt.Errorf("make event id: %w", err)
	}
	ctx = access.As(ctx, access.ActorOf(ctx)) // the repeat is the same occasion
	var begun bool
	for range 2 { // the repeat of an unknown COMMIT finds the deletion, or begins it
		if begun, err = db.beginDeletion(ctx, found, id); err == nil {
			break
		}
	}
	failpoint.Hit("deletion.committed")
	if err != nil {
		return Workspace{}, nil, fmt.Errorf("delete workspace: %w", err)
	}
	found, err = db.Workspace(ctx, found.ID.String())
	if err != nil || !begun {
		return found, nil, err
	}
	return found, &task.Hint{TaskID: id, WorkspaceID: found.ID, Seq: 1, Priority: task.Bulk}, nil
}

func (db *DB) beginDeletion(ctx context.Context, w Workspace, id uuid.UUID) (begun bool, err error) {
	erasing := write.Erasing{TaskID: id, WorkspaceID: w.ID, Claim: write.Claim{
		KeyHash: sha256.Sum256([]byte("deletion/1 " + w.ID.String())), Fingerprint: sha256.Sum256([]byte("deletion/1")),
		FingerprintVersion: command.FingerprintVersion,
	}}
	err = db.InTxAlone(ctx, w.ID, func(ctx context.Context, tx *Tx) error {
		begun = false
		b := &batch{}
		b.exec("claim key", claimKeySQL, pgx.NamedArgs{
			"workspace": w.ID, "key_hash": erasing.Claim.KeyHash[:], "fingerprint": erasing.Claim.Fingerprint[:],
			"fingerprint_version": erasing.Claim.FingerprintVersion, "task": id, "retry": false,
		}, func(rows int64) error {
			begun = rows == 1
			return nil
		})
		if err := tx.send(ctx, b); err != nil || !begun { // who began it has finished with the gate
			return err
		}
		now := tx.db.now()
		args := pgx.NamedArgs{"workspace": w.ID, "task": id, "now": now}
		b = &batch{}
		b.exec("begin deletion", beginDeletionSQL, args, nil)
		b.exec("revoke keys", revokeAllSQL, args, nil)
		b.exec("delete webhooks", deleteEndpointsSQL, args, nil)
		addAct(ctx, b, now, act{w.ID, operator.DeleteWorkspace, w.ID.String(), map[string]any{"name": w.Name, "event": eventSubject(id)}})
		if err := tx.send(ctx, b); err != nil {
			return err
		}
		failpoint.Hit("deletion.in_tx")
		return tx.insertErase(ctx, erasing)
	})
	return begun, err
}

// livingSQL finds the workspace that is being deleted.
const livingSQL = `SELECT true FROM workspaces WHERE id = @workspace AND deletion IS NOT NULL`

// addLiving refuses a workspace that is being deleted: its caller was let in a moment before. It comes behind the gate
// in what keeps something without a key of its own. Fault INVALID_API_KEY.
func addLiving(b *batch, workspace uuid.UUID) {
	b.query("living workspace", livingSQL, pgx.NamedArgs{"workspace": workspace}, func(rows pgx.Rows) error {
		if rows.Next() {
			return fault.New(fault.InvalidAPIKey)
		}
		return nil
	})
}

// requireLiving is addLiving for what found no key that it could claim.
func (tx *Tx) requireLiving(ctx context.Context, workspace uuid.UUID) error {
	b := &batch{}
	addLiving(b, workspace)
	return tx.send(ctx, b)
}

// everyTaskSQL are the tasks m that a deletion is about: all but itself that have not been erased, or that were and still
// have the policy that they were accepted with, which is the workspace's own words.
const everyTaskSQL = `m.id <> @task AND (NOT m.erased OR m.policy <> '{}'::jsonb)`

// forgetPoliciesSQL comes behind the lock of the covered tasks. A task that another erase was about is locked here.
const forgetPoliciesSQL = `
UPDATE tasks SET policy = '{}' WHERE id = ANY(@ids::uuid[]) AND workspace_id = @workspace AND policy <> '{}'::jsonb`

const forgetArchivedPoliciesSQL = `
UPDATE tasks_archive SET policy = '{}' WHERE id = ANY(@ids::uuid[]) AND workspace_id = @workspace AND policy <> '{}'::jsonb`

// addForgetPolicies removes the policies of a deletion's piece.
func addForgetPolicies(b *batch, l worker.Lease, piece *erasePiece, sql string) {
	if deletes(l) {
		b.exec("forget policies", sql, pgx.NamedArgs{"ids": piece.ids, "workspace": l.WorkspaceID}, nil)
	}
}

// sendSome sends a batch that may be empty.
func (tx *Tx) sendSome(ctx context.Context, b *batch) error {
	if len(b.steps) == 0 {
		return nil
	}
	return tx.send(ctx, b)
}

// everyRecordSQL needs no order: what it finds is gone before it looks again.
const everyRecordSQL = `
SELECT m.id, m.created_at, m.lane, true
  FROM memories m
 WHERE m.workspace_id = @workspace AND m.deleted_at IS NULL AND m.accepted_at <= @erased_at
 LIMIT @limit`

const leftMessagesSQL = `SELECT id FROM webhook_deliveries WHERE workspace_id = @workspace LIMIT @limit`

// restWindow finds what is left of a deleted workspace beside tasks, records and items: the messages to its webhooks.
func (j EraseJob) restWindow(ctx context.Context, l worker.Lease, place erasePlace, piece *erasePiece) (erasePlace, error) {
	if !deletes(l) {
		return place.next(), nil
	}
	args := pgx.NamedArgs{"workspace": l.WorkspaceID, "limit": sweepPage}
	err := j.db.read(ctx, of(l.WorkspaceID), "messages left", leftMessagesSQL, args, func(rows pgx.Rows) (err error) {
		piece.ids, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		return err
	})
	if err != nil || len(piece.ids) == 0 {
		return place.next(), err
	}
	return place, nil
}

// dropMessagesSQL locks in id order, as the dispatcher may be removing the same.
const dropMessagesSQL = `
DELETE FROM webhook_deliveries
 WHERE id IN (SELECT d.id FROM webhook_deliveries d
               WHERE d.id = ANY(@ids::uuid[]) AND d.workspace_id = @workspace ORDER BY d.id FOR UPDATE)`

func (tx *Tx) eraseRest(ctx context.Context, l worker.Lease, piece *erasePiece) error {
	held := false
	b := &batch{}
	if err := piece.addMove(b, l, tx.db.now(), &held); err != nil {
		return err
	}
	b.exec("drop messages", dropMessagesSQL, pgx.NamedArgs{"ids": piece.ids, "workspace": l.WorkspaceID}, nil)
	if err := tx.send(ctx, b); err != nil {
		return err
	}
	if !held {
		return errNotHere
	}
	failpoint.Hit("erase.in_tx")
	return nil
}

// endWorkspaceSQL leaves the head of the books. The key of the fingerprints goes, so that none confirms a guess.
const endWorkspaceSQL = `
UPDATE workspaces
   SET name = 'deleted ' || id, deleted_at = (SELECT coalesce(@now::timestamptz, clock_timestamp())), extraction = '{}',
       fingerprint_key = sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8')),
       max_pending = NULL, rate_limit = NULL, lease_cap = NULL
 WHERE id = @workspace AND deletion = @task`

const dropKeysSQL = `DELETE FROM api_keys WHERE workspace_id = @workspace`

const dropEndpointsSQL = `DELETE FROM webhooks WHERE workspace_id = @workspace`

// addEndWorkspace ends a deletion together with its event: what it leaves is the books, the shells of events until
// their retention, and the log of acts.
func addEndWorkspace(b *batch, l worker.Lease, now *time.Time) {
	args := pgx.NamedArgs{"workspace": l.WorkspaceID, "task": l.TaskID, "now": now}
	b.exec("drop webhooks", dropEndpointsSQL, args, nil)
	b.exec("drop API keys", dropKeysSQL, args, nil)
	b.exec("drop data keys", dropDataKeysSQL, args, nil)
	b.exec("end workspace", endWorkspaceSQL, args, nil)
}
