package postgres

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// Statements whose plans the tests look at.
const (
	MemoriesSQL     = memoriesSQL + " AND m.user_id = @user_id" + newestSQL
	EntriesSQL      = entriesSQL
	EntriesAfterSQL = entriesAfterSQL
	FactsSQL        = factsSQL
	ItemsSQL        = itemsSQL
	FeedSQL         = feedSQL
	LeasesSQL       = leasesSQL
)

// EventsSQL lists events of one status, all of them when it is empty.
func EventsSQL(status task.EventStatus) string { return ofStatus(eventsSQL, status) }

// DueSQL finds due tasks of those who are asked for.
func DueSQL(among worker.Among) string { return dueAmong(among) }

// NextHeadSQL passes a lane on, ClaimSQL claims one task.
const NextHeadSQL = nextHeadSQL

// ClaimSQL claims one task by its id.
func ClaimSQL() string { return fmt.Sprintf(claimSQL, "") }

// ClaimGroupSQL claims several tasks by their ids, behind PlanForManySQL.
const (
	ClaimGroupSQL  = claimGroupSQL
	PlanForManySQL = planForManySQL
)

// ClaimApart is how many claims are under way without company.
const ClaimApart = claimApart

// ClaimAlone claims one task by itself.
func (db *DB) ClaimAlone(ctx context.Context, who worker.Claimant, ask worker.ClaimAsk, skipLocked bool) worker.Claimed {
	return db.claim(ctx, asking{who, ask, skipLocked})
}

// ClaimGroup claims in one group, and alone what falls out of it; grouped counts what the group answered.
func (db *DB) ClaimGroup(ctx context.Context, who []worker.Claimant, asks []worker.ClaimAsk, skipLocked bool) (answers []worker.Claimed, grouped int) {
	all := make([]asking, len(asks))
	for i, ask := range asks {
		all[i] = asking{who[i], ask, skipLocked}
	}
	answers = make([]worker.Claimed, len(asks))
	for i, c := range db.claimGroup(ctx, all) {
		answers[i] = db.claimAfter(ctx, all[i], c)
		if !c.alone && !c.lost {
			grouped++
		}
	}
	return answers, grouped
}

// ClaimLone asks in the place of a group and tells whether the caller is sent to ask alone.
func (db *DB) ClaimLone(ctx context.Context, who worker.Claimant, ask worker.ClaimAsk) bool {
	return db.claims.run(ctx, []asking{{who, ask, false}})[0].alone
}

// Alike tells whether two claimants may share a statement.
func Alike(a, b worker.Claimant) bool { return alike(a, b) }

// Exhaust is the move of whoever found a task exhausted a moment ago.
func (db *DB) Exhaust(ctx context.Context, id uuid.UUID, maxAttempts int) (*worker.Rescued, error) {
	return db.exhaust(ctx, id, maxAttempts)
}

// LockLane takes a lane's row in the transaction.
func LockLane(ctx context.Context, tx *Tx, workspace uuid.UUID, lane memory.Lane) error {
	b := &batch{}
	b.exec("take lane", takeLaneSQL, pgx.NamedArgs{"workspace": workspace, "lane": lane[:], "now": nil}, nil)
	return tx.send(ctx, b)
}

// OfItems tells whether a piece of an erase is about items.
func OfItems(state any) bool {
	piece, ok := state.(*erasePiece)
	return ok && piece.at == phaseItems
}

// Setting reads a setting inside the transaction.
func Setting(ctx context.Context, tx *Tx, name string) (string, error) {
	var value string
	b := &batch{}
	b.query("setting", `SELECT current_setting(@name)`, pgx.NamedArgs{"name": name}, func(rows pgx.Rows) error {
		var err error
		value, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[string])
		return err
	})
	return value, tx.send(ctx, b)
}

// FeedArgs are the arguments of FeedSQL.
func FeedArgs(workspace uuid.UUID, after *task.FeedPlace, limit int) pgx.NamedArgs {
	return feedArgs(workspace, after, limit, nil)
}

// FeedInTx reads the feed as a step of a transaction.
func (db *DB) FeedInTx(ctx context.Context, workspace uuid.UUID, after *task.FeedPlace, limit int) (page task.FeedPage, err error) {
	err = db.InTx(ctx, workspace, func(ctx context.Context, tx *Tx) error {
		b := &batch{}
		addFeed(b, workspace, after, limit, db.now(), &page)
		return tx.send(ctx, b)
	})
	return page, err
}

// AcceptGroup accepts the items in one group, and alone what falls out of it; grouped counts what the group answered.
func (db *DB) AcceptGroup(ctx context.Context, items []write.Acceptance) (answers []write.Accepted, grouped int) {
	answers = make([]write.Accepted, len(items))
	for i, g := range db.acceptGroup(ctx, items) {
		if answers[i] = g.Accepted; g.alone {
			answers[i] = db.accept(ctx, items[i], db.lockTimeout)
			continue
		}
		grouped++
	}
	return answers, grouped
}

// SeenInGroup is whose credit accounts a transaction of these workspaces sees.
func (db *DB) SeenInGroup(ctx context.Context, workspaces []uuid.UUID) (seen []uuid.UUID, err error) {
	err = db.inGroup(ctx, workspaces, func(ctx context.Context, tx *Tx) error {
		b := &batch{}
		b.query("look", `SELECT workspace_id FROM credit_accounts`, nil, func(rows pgx.Rows) (err error) {
			seen, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
			return err
		})
		return tx.send(ctx, b)
	})
	return seen, err
}

// CommitGroup commits the plans in one group, and alone what falls out of it; grouped counts what the group answered.
func (db *DB) CommitGroup(ctx context.Context, items []worker.Commit) (answers []worker.Done, grouped int) {
	return apartFrom(ctx, db.commitGroup(ctx, items), items, db.commit)
}

// SettleGroup is CommitGroup for settlements.
func (db *DB) SettleGroup(ctx context.Context, items []worker.Settle) (answers []worker.Done, grouped int) {
	return apartFrom(ctx, db.settleGroup(ctx, items), items, db.settle)
}

func apartFrom[I any](ctx context.Context, stepped []stepped, items []I, alone func(context.Context, I) worker.Done) (answers []worker.Done, grouped int) {
	answers = make([]worker.Done, len(items))
	for i, s := range stepped {
		if answers[i] = s.Done; s.alone {
			answers[i] = alone(ctx, items[i])
			continue
		}
		grouped++
	}
	return answers, grouped
}
