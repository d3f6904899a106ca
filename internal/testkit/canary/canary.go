// Package canary finds words in whatever a system has written. A test sends words that nothing else has, one in each
// place where input enters, and looks for them in every output: where one is that may not be there, it tells whose
// content has got out. It is for tests only and knows nothing of Holdfast but that its tables are in the schema public.
package canary

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"

	"github.com/jackc/pgx/v5"
)

// wordBytes make a word that no two tests share and nobody guesses.
const wordBytes = 10

// New returns a word that nothing else on the machine has: small letters and digits with a digit at its end, so that
// neither an encoding of text nor a stemmer changes it.
func New() string {
	b := make([]byte, wordBytes)
	_, _ = rand.Read(b) // never fails: it ends the process instead
	return "cny" + hex.EncodeToString(b) + "9"
}

const tablesSQL = `
SELECT quote_ident(table_name) FROM information_schema.tables
 WHERE table_schema = 'public' AND table_type = 'BASE TABLE' ORDER BY table_name`

// Tables returns every row of every table as text, readable as Readable makes it.
func Tables(ctx context.Context, conn *pgx.Conn) (map[string][]byte, error) {
	rows, err := conn.Query(ctx, tablesSQL)
	if err != nil {
		return nil, fmt.Errorf("list tables: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("list tables: %w", err)
	}
	tables := make(map[string][]byte, len(names))
	for _, name := range names {
		var text bytes.Buffer
		if _, err := conn.PgConn().CopyTo(ctx, &text, "COPY (SELECT x::text FROM "+name+" x) TO STDOUT"); err != nil {
			return nil, fmt.Errorf("read table %s: %w", name, err)
		}
		tables[name] = Readable(text.Bytes())
	}
	return tables, nil
}

// Readable returns the text and, behind it, the bytes that stand in it as hexadecimal digits.
func Readable(text []byte) []byte {
	binary := regexp.MustCompile(`\\x[0-9a-f]{36,}`) // as PostgreSQL writes bytes: those of a word at least
	readable := slices.Clone(text)
	for _, digits := range binary.FindAll(text, -1) {
		digits = digits[2:]
		raw := make([]byte, len(digits)/2)
		if _, err := hex.Decode(raw, digits[:2*len(raw)]); err != nil {
			continue // the pattern takes digits alone
		}
		readable = append(append(readable, '\n'), raw...)
	}
	return readable
}

// Find returns every word of a pattern in a text once, in order.
func Find(text []byte, pattern *regexp.Regexp) []string {
	words := []string{}
	for _, word := range pattern.FindAll(text, -1) {
		words = append(words, string(word))
	}
	slices.Sort(words)
	return slices.Compact(words)
}
