package postgres

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// lookConnect and lookBound bound an operator's look at the server: it is near or it is down.
	lookConnect = 5 * time.Second
	lookBound   = 30 * time.Second
)

// Unreachable says why no connection could be made, without the URL.
type Unreachable struct{ reason string }

func (u *Unreachable) Error() string { return u.reason }

// look opens one plain connection for looking at the server itself and hands it to f, all within lookBound.
func look(ctx context.Context, url string, f func(ctx context.Context, conn *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, lookBound)
	defer cancel()
	cfg, err := pgx.ParseConfig(url)
	if err != nil { // it quotes the URL with its password
		return &Unreachable{"the database URL cannot be read: write it like postgres://user:password@host:5432/holdfast"}
	}
	cfg.ConnectTimeout = lookConnect
	cfg.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe // the URL may lead to a pooler (ADR 0007)
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		return &Unreachable{fmt.Sprintf("the server at %s refuses: SQLSTATE %s", cfg.Host, pgErr.Code)}
	}
	if reason := distrust(err); reason != "" {
		return &Unreachable{fmt.Sprintf("no connection to %s:%d: %s", cfg.Host, cfg.Port, reason)}
	}
	if err != nil {
		return &Unreachable{fmt.Sprintf("no server answers at %s:%d", cfg.Host, cfg.Port)}
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return f(ctx, conn)
}

const tablesSQL = `
SELECT c.oid::regclass::text
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p')
 ORDER BY 1`

// FindText counts, for every table of the database, the rows in which text stands: as text, or as the bytes of a
// binary column. Tables without any are left out. It reads every row, so it is for proofs on small databases.
func FindText(ctx context.Context, url, text string) (rows map[string]int, tables int, err error) {
	rows = map[string]int{}
	err = look(ctx, url, func(ctx context.Context, conn *pgx.Conn) error {
		found, err := conn.Query(ctx, tablesSQL)
		if err != nil {
			return fmt.Errorf("list tables: %w", classify(err))
		}
		names, err := pgx.CollectRows(found, pgx.RowTo[string])
		if err != nil {
			return fmt.Errorf("list tables: %w", classify(err))
		}
		tables = len(names)
		for _, name := range names {
			// The name comes from the catalogue, quoted by regclass; the alias is no column's name, so that it is the row.
			sql := "SELECT count(*) FROM " + name + " whole_row WHERE position($1 IN whole_row::text) > 0 OR position($2 IN whole_row::text) > 0"
			var n int
			if err := conn.QueryRow(ctx, sql, asInRow(text), hex.EncodeToString([]byte(text))).Scan(&n); err != nil {
				return fmt.Errorf("search table %s: %w", name, classify(err))
			}
			if n > 0 {
				rows[name] = n
			}
		}
		return nil
	})
	return rows, tables, err
}

// asInRow is how a text column shows inside a row that is written as text: quotes and backslashes are doubled.
func asInRow(text string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `""`).Replace(text)
}
