package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// byName are the arguments of a statement by their names. Which place has which name is found out once for each statement
// of a connection: pgx alone reads the statement's text anew each time, which took a worker a thirteenth of its CPU.
type byName pgx.NamedArgs

const (
	// placesKey is where a connection keeps what it knows. It dies with the connection, and needs no lock.
	placesKey = "holdfast.places"
	// maxPlaces bounds the statements that a connection knows the places of: several times those of the code, since a
	// caller's filters make more of them. At the bound it begins anew.
	maxPlaces = 1_000
)

// places is a statement with numbers for names, and the name of each number.
type places struct {
	sql   string
	names []string
}

// RewriteQuery implements pgx.QueryRewriter.
func (n byName) RewriteQuery(ctx context.Context, conn *pgx.Conn, sql string, args []any) (string, []any, error) {
	data := conn.PgConn().CustomData()
	known, _ := data[placesKey].(map[string]places)
	p, found := known[sql]
	if !found {
		var complete bool
		var err error
		if p, complete, err = n.places(ctx, conn, sql); err != nil || !complete {
			return pgx.NamedArgs(n).RewriteQuery(ctx, conn, sql, args)
		}
		if known == nil || len(known) >= maxPlaces {
			known = map[string]places{}
			data[placesKey] = known
		}
		known[sql] = p
	}
	values := make([]any, len(p.names))
	for i, name := range p.names {
		values[i] = n[name]
	}
	return p.sql, values, nil
}

// places lets pgx put each name in the place of its value. It is not complete when a name of the statement has no
// argument: pgx sends null for it and doesn't say which it was.
func (n byName) places(ctx context.Context, conn *pgx.Conn, sql string) (p places, complete bool, err error) {
	names := make(pgx.NamedArgs, len(n))
	for name := range n {
		names[name] = name
	}
	rewritten, values, err := names.RewriteQuery(ctx, conn, sql, nil)
	if err != nil {
		return places{}, false, err
	}
	p = places{rewritten, make([]string, len(values))}
	for i, value := range values {
		name, given := value.(string)
		if !given {
			return places{}, false, nil
		}
		p.names[i] = name
	}
	return p, true, nil
}
