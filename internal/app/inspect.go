package app

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-memory/holdfast/internal/model"
)

const (
	// lookConnect and lookBound bound an operator's look at the server: it is near or it is down.
	lookConnect = 5 * time.Second
	lookBound   = 30 * time.Second
)

// connect opens one plain connection for looking at the server itself. Its error holds no URL.
func connect(ctx context.Context, url model.Secret) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(url.Reveal())
	if err != nil {
		return nil, errors.New("the database URL cannot be read: write it like postgres://user:password@host:5432/holdfast")
	}
	cfg.ConnectTimeout = lookConnect
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err == nil {
		return conn, nil
	}
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		return nil, fmt.Errorf("the server at %s refuses: SQLSTATE %s", cfg.Host, pgErr.Code)
	}
	return nil, fmt.Errorf("no server answers at %s:%d", cfg.Host, cfg.Port)
}

const tablesSQL = `
SELECT c.oid::regclass::text
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p')
 ORDER BY 1`

// FindText counts, for every table of the database, the rows in which text stands: as text, or as the bytes of a
// binary column. Tables without any are left out. It reads every row, so it is for proofs on small databases.
func FindText(ctx context.Context, url model.Secret, text string) (rows map[string]int, tables int, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookBound)
	defer cancel()
	conn, err := connect(ctx, url)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	found, err := conn.Query(ctx, tablesSQL)
	if err != nil {
		return nil, 0, fmt.Errorf("list tables: %w", err)
	}
	names, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		return nil, 0, fmt.Errorf("list tables: %w", err)
	}
	rows = map[string]int{}
	for _, name := range names {
		// The name comes from the catalogue, quoted by regclass; the alias is no column's name, so that it is the row.
		sql := "SELECT count(*) FROM " + name + " whole_row WHERE position($1 IN whole_row::text) > 0 OR position($2 IN whole_row::text) > 0"
		var n int
		if err := conn.QueryRow(ctx, sql, asInRow(text), hex.EncodeToString([]byte(text))).Scan(&n); err != nil {
			return nil, 0, fmt.Errorf("search table %s: %w", name, err)
		}
		if n > 0 {
			rows[name] = n
		}
	}
	return rows, len(names), nil
}

// asInRow is how a text column shows inside a row that is written as text: quotes and backslashes are doubled.
func asInRow(text string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `""`).Replace(text)
}
