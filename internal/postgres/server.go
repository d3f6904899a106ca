package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Server is what a server says of itself. Skew is how far its clock is ahead of this process's, give or take half of
// Took, the time that the answer took.
type Server struct {
	Settings map[string]string
	Replica  bool
	Skew     time.Duration
	Took     time.Duration
}

const (
	settingsSQL = `SELECT name, setting FROM pg_settings WHERE name = ANY($1)`
	serverSQL   = `SELECT clock_timestamp(), pg_is_in_recovery()`
)

// ReadServer reads the named settings of the server at url, its role and its clock. A server that has no setting of a
// name leaves it out. The error is an *Unreachable when there is no connection.
func ReadServer(ctx context.Context, url string, names []string) (Server, error) {
	s := Server{Settings: map[string]string{}}
	err := look(ctx, url, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, settingsSQL, names)
		if err != nil {
			return fmt.Errorf("read settings: %w", classify(err))
		}
		var name, value string
		_, err = pgx.ForEachRow(rows, []any{&name, &value}, func() error {
			s.Settings[name] = value
			return nil
		})
		if err != nil {
			return fmt.Errorf("read settings: %w", classify(err))
		}
		before := time.Now()
		var there time.Time
		if err := conn.QueryRow(ctx, serverSQL).Scan(&there, &s.Replica); err != nil {
			return fmt.Errorf("read clock: %w", classify(err))
		}
		s.Took = time.Since(before)
		s.Skew = there.Sub(before.Add(s.Took / 2))
		return nil
	})
	return s, err
}
