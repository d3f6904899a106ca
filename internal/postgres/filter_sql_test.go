package postgres

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/memory"
)

// TestFilterSQL holds that what a caller sends is an argument and never text of a statement.
func TestFilterSQL(t *testing.T) {
	t.Parallel()
	compiled := func(value string) string {
		filter, err := memory.ParseFilter(fmt.Appendf(nil, `{"user_id":%[1]q,"OR":[{"memory":{"contains":%[1]q}},{"memory":{"icontains":%[1]q}},
			{"metadata.%[2]s":%[1]q},{"metadata.%[2]s":{"contains":%[1]q,"icontains":%[1]q,"gt":7,"in":[%[1]q,true]}},
			{"NOT":{"type":{"in":[%[1]q,"x"]}}}]}`, value, value))
		if err != nil {
			t.Fatal(err)
		}
		args := pgx.NamedArgs{}
		sql := inFilter(filter, args)
		if len(args) < 10 {
			t.Fatalf("%d arguments", len(args))
		}
		return sql
	}
	one, other := compiled("canary"), compiled("x' OR true --")
	if one != other || strings.Contains(one, "canary") {
		t.Fatalf("%s\nand\n%s", one, other)
	}
}
