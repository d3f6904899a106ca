package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/task"
)

// pausedSQL is true while the provider p is paused for who claims at clock.at. After the pause, and for half of its length,
// ever more claims get through, so that not everything that has waited comes back in one moment. What an operator stopped is
// paused until an operator lets it go on. How far into the time after the pause this one asks, in [0,1), and a bracket end
// it.
const pausedSQL = `(p.stopped_at IS NOT NULL
            OR clock.at < p.paused_until + least((p.paused_until - p.updated_at) / 2, interval '30 seconds') * `

// pauseSQL never shortens a pause.
const pauseSQL = `
INSERT INTO provider_pauses AS p (provider, paused_until, class, updated_at)
VALUES (@provider, (SELECT coalesce(@now::timestamptz, clock_timestamp())) + make_interval(secs => @seconds), @class,
        (SELECT coalesce(@now::timestamptz, clock_timestamp())))
ON CONFLICT (provider) DO UPDATE
   SET paused_until = greatest(p.paused_until, excluded.paused_until), class = excluded.class,
       updated_at = excluded.updated_at`

const outageSQL = `
INSERT INTO provider_pauses AS p (provider, paused_until, class, in_a_row, updated_at)
VALUES (@provider, (SELECT coalesce(@now::timestamptz, clock_timestamp())), @class, 1,
        (SELECT coalesce(@now::timestamptz, clock_timestamp())))
ON CONFLICT (provider) DO UPDATE
   SET in_a_row = p.in_a_row + 1, class = excluded.class, updated_at = excluded.updated_at
RETURNING in_a_row`

const healthySQL = `UPDATE provider_pauses SET in_a_row = 0 WHERE provider = @provider AND in_a_row > 0`

// Pause implements worker.Providers.
func (db *DB) Pause(ctx context.Context, provider string, class task.Class, d time.Duration) error {
	return db.alone(ctx, unbound, "pause provider", pauseSQL, pgx.NamedArgs{
		"provider": provider, "class": string(class), "seconds": inSeconds(d), "now": db.now(),
	}, noRows)
}

// Outage implements worker.Providers.
func (db *DB) Outage(ctx context.Context, provider string, class task.Class) (int, error) {
	var inARow int
	err := db.alone(ctx, unbound, "count outage", outageSQL, pgx.NamedArgs{
		"provider": provider, "class": string(class), "now": db.now(),
	}, func(rows pgx.Rows) error {
		var err error
		inARow, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
		return err
	})
	return inARow, err
}

// Healthy implements worker.Providers.
func (db *DB) Healthy(ctx context.Context, provider string) error {
	return db.alone(ctx, unbound, "provider is healthy", healthySQL, pgx.NamedArgs{"provider": provider}, noRows)
}

func noRows(rows pgx.Rows) error {
	for rows.Next() { // a statement without RETURNING has none; draining hears its error
	}
	return nil
}
