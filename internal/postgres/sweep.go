package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-memory/holdfast/internal/repair"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// placed is a row of a scan that knows its place there.
type placed interface{ place() repair.Cursor }

// moveEach moves one row of a page after the other. Each has a transaction of its own, with its bounds, and its own
// error. When the database is away or the caller's time is over it stops, and the next step goes on behind the row that
// it stopped at. The answer holds what was moved even when there is an error.
func moveEach[R placed](
	ctx context.Context, db *DB, rows []R, page repair.Swept, move func(context.Context, R) (*worker.Rescued, error),
) ([]worker.Rescued, repair.Swept, error) {
	var moved []worker.Rescued
	var failed failures
	for _, row := range rows {
		page.Found++
		one, err := move(ctx, row)
		switch {
		case err == nil && one != nil:
			page.Fixed++
			moved = append(moved, *one)
		case err != nil:
			page.Failed++
			failed.add(fmt.Errorf("task %s: %w", row.place().ID, err))
		}
		if err != nil && db.away(ctx, err) {
			page.Next, page.More = row.place(), true
			break
		}
	}
	return moved, page, failed.join()
}

// away tells, after err, that the database can't be reached or the caller's time is over: there is no sense in going
// on with the next row.
func (db *DB) away(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return true
	}
	if state := stateOf(err); state != "" && state != stateAdminShutdown && state != stateCrashShutdown {
		return false // the server answered: it is about this row
	}
	return db.Ping(ctx) != nil
}

// failures joins the errors of rows. It keeps the first five, which are enough to see what is wrong.
type failures struct {
	first []error
	more  int
}

func (f *failures) add(err error) {
	if len(f.first) == 5 {
		f.more++
		return
	}
	f.first = append(f.first, err)
}

func (f *failures) join() error {
	if f.more == 0 {
		return errors.Join(f.first...)
	}
	return errors.Join(append(f.first, fmt.Errorf("and %d more", f.more))...)
}
