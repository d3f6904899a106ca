package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Pooling is what stands between this process and the server at a URL.
type Pooling struct {
	// Pooled says that somebody answers who is not the server itself: a pooler.
	Pooled bool
	// Shared says that two connections of ours were served by one of the server's, which only a pooler in transaction (or
	// statement) mode does. A busy one may do so unseen.
	Shared bool
	// Started and Database tell servers and their databases apart.
	Started  time.Time
	Database string
}

// ReadPooling looks for a pooler at url. A pooler makes up the process id that a connection is told at its start; the
// server's own functions tell the true one. The error is an *Unreachable when there is no connection.
func ReadPooling(ctx context.Context, url string) (Pooling, error) {
	var p Pooling
	err := look(ctx, url, func(ctx context.Context, first *pgx.Conn) error {
		own, err := p.read(ctx, first)
		if err != nil || !p.Pooled {
			return err
		}
		// The first connection is open and idle, so its server connection is to be had if it isn't its own.
		return look(ctx, url, func(ctx context.Context, second *pgx.Conn) error {
			other, err := p.read(ctx, second)
			p.Shared = own == other
			return err
		})
	})
	return p, err
}

const poolingSQL = `SELECT pg_backend_pid(), pg_postmaster_start_time(), current_database()`

// read answers the server's process behind the connection.
func (p *Pooling) read(ctx context.Context, conn *pgx.Conn) (pid uint32, err error) {
	if err := conn.QueryRow(ctx, poolingSQL).Scan(&pid, &p.Started, &p.Database); err != nil {
		return 0, fmt.Errorf("read server process: %w", classify(err))
	}
	p.Pooled = conn.PgConn().PID() != pid
	return pid, nil
}

// SameAs tells whether both lead to one database of one server.
func (p Pooling) SameAs(other Pooling) bool {
	return p.Started.Equal(other.Started) && p.Database == other.Database
}

// errPooled refuses to migrate through a pooler that gives the lock's session to others.
var errPooled = errors.New("the URL leads to a pooler in transaction mode: migrations need the server itself, " +
	"set HOLDFAST_DATABASE_DIRECT_URL")
