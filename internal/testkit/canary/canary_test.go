package canary_test

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/testkit/canary"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

func TestTables(t *testing.T) {
	t.Parallel()
	pool := testkit.Postgres(t)
	words := map[string]string{}
	for _, kind := range []string{"text", "bytea", "jsonb", "text[]", "bytea[]"} {
		words[kind] = canary.New()
	}
	if _, err := pool.Exec(t.Context(), `CREATE TABLE "odd name" AS SELECT $1::text AS a, convert_to($2, 'UTF8') AS b,
		jsonb_build_object('x', $3::text) AS c, ARRAY[$4::text] AS d, ARRAY[convert_to($5, 'UTF8')] AS e`,
		words["text"], words["bytea"], words["jsonb"], words["text[]"], words["bytea[]"]); err != nil {
		t.Fatal(err)
	}
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	tables, err := canary.Tables(t.Context(), conn.Conn())
	if err != nil {
		t.Fatal(err)
	}
	for kind, word := range words {
		if !bytes.Contains(tables[`"odd name"`], []byte(word)) {
			t.Errorf("a word in a column of the type %s is not found", kind)
		}
		if bytes.Contains(tables["tasks"], []byte(word)) {
			t.Errorf("a word is found in another table")
		}
	}
	found := canary.Find(tables[`"odd name"`], regexp.MustCompile(`cny[0-9a-f]{20}9`))
	if len(found) != len(words) || !slices.IsSorted(found) {
		t.Errorf("found %v of %v", found, words)
	}
}
