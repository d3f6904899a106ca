package endtoend

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/testkit/canary"
)

// ghost is what a workspace would have that there never was: nothing of it is anywhere, and all of it looks the same.
func (b belongings) ghost() belongings {
	never := belongings{}
	known := regexp.MustCompile(uuidForm)
	for name, value := range b {
		switch {
		case strings.HasPrefix(name, "to_") || name == "place":
			raw, _ := base64.RawURLEncoding.DecodeString(value)
			_, _ = rand.Read(raw) // never fails
			never[name] = base64.RawURLEncoding.EncodeToString(raw)
		case strings.HasPrefix(value, "ev_"):
			never[name] = "ev_" + hex.EncodeToString(random(8))
		case name == "key":
			never[name] = hex.EncodeToString(random(6))
		case name == "address":
			never[name] = "127.0.0.1:9" // nobody listens
		case known.MatchString(value):
			never[name] = known.ReplaceAllStringFunc(value, func(string) string { return uuid.Must(uuid.NewV7()).String() })
		default:
			never[name] = canary.New()
		}
	}
	return never
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}

const uuidForm = `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`

// plainly is an answer without what differs between any two, and with the asker's words put back to their names.
func (b belongings) plainly(a answer) string {
	text := fmt.Sprintf("%d %s", a.status, a.body)
	for _, name := range []string{"Content-Type", "Retry-After", "Idempotent-Replayed", "Location", "Www-Authenticate", "Allow", "Preference-Applied"} {
		text += fmt.Sprintf("\n%s: %s", name, a.header.Values(name))
	}
	text += fmt.Sprintf("\nETag: %t", a.header.Get("ETag") != "")
	if id := a.header.Get("X-Request-Id"); id != "" {
		text = strings.ReplaceAll(text, id, "<request>")
	}
	byLength := slices.SortedFunc(maps.Keys(b), func(x, y string) int { return len(b[y]) - len(b[x]) })
	for _, name := range byLength {
		text = strings.ReplaceAll(text, b[name], "<asked>")
	}
	for form, name := range map[string]string{
		uuidForm: "<uuid>", `ev_[0-9a-f]{16}`: "<item event>", `whsec_[A-Za-z0-9+/=]+`: "<secret>",
		`\d{4}-\d\d-\d\dT[0-9:.]+Z`: "<time>", `"(PENDING|RUNNING|RETRYING)"`: "<unfinished>",
		`"(latency(_ms)?|tokens_(in|out))":[0-9.]+`: "<measured>",
	} {
		text = regexp.MustCompile(form).ReplaceAllString(text, name)
	}
	return text
}

// unasked is what of b is in an answer though the request didn't name it.
func (b belongings) unasked(a answer, request string) []string {
	said := string(a.body)
	for _, name := range []string{"Location", "ETag"} {
		said += "\n" + a.header.Get(name)
	}
	var found []string
	for name, value := range b {
		bare := regexp.MustCompile(`^(evt|mem|whk|msg)_`).ReplaceAllString(value, "")
		if strings.Contains(said, bare) && !strings.Contains(request, bare) {
			found = append(found, name)
		}
	}
	return found
}

// rowsSQL is how each table tells whose rows are whose.
const rowsSQL = `
SELECT quote_ident(t.table_name), EXISTS (SELECT FROM information_schema.columns c
        WHERE c.table_schema = 'public' AND c.table_name = t.table_name AND c.column_name = 'workspace_id')
  FROM information_schema.tables t WHERE t.table_schema = 'public' AND t.table_type = 'BASE TABLE' ORDER BY 1`

// rows is every row of a workspace in every table, byte for byte.
func (s *system) rows(workspace uuid.UUID) map[string]string {
	s.t.Helper()
	list, err := s.sql.Query(s.t.Context(), rowsSQL)
	if err != nil {
		s.t.Fatal(err)
	}
	owned := map[string]bool{}
	for list.Next() {
		var name string
		var ours bool
		if err := list.Scan(&name, &ours); err != nil {
			s.t.Fatal(err)
		}
		owned[name] = ours
	}
	if err := list.Err(); err != nil {
		s.t.Fatal(err)
	}
	rows := map[string]string{}
	for table, ours := range owned {
		column := "x.workspace_id"
		switch {
		case table == "workspaces":
			column = "x.id"
		case !ours: // nobody's
			continue
		}
		rows[table] = one[string](s, `SELECT coalesce(string_agg(x::text, E'\n' ORDER BY x::text), '') FROM `+table+` x WHERE `+column+` = $1`, workspace)
	}
	return rows
}

// changed names the tables in which two sets of rows differ.
func changed(before, after map[string]string) []string {
	var tables []string
	for table := range before {
		if before[table] != after[table] {
			tables = append(tables, table)
		}
	}
	slices.Sort(tables)
	return tables
}
