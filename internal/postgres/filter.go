package postgres

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/memory"
)

// inFilter returns one more condition on the record m, or none, and sets its arguments. Its text is made of constants
// and of the names of arguments: equal filters with other values share a statement. Every comparison is true or
// false, never unknown, so that NOT turns each around.
func inFilter(filter *memory.Filter, args pgx.NamedArgs) string {
	if filter == nil {
		return ""
	}
	c := filterCompiler{args: args}
	return " AND " + c.node(*filter)
}

type filterCompiler struct {
	args pgx.NamedArgs
	used int
}

func (c *filterCompiler) node(f memory.Filter) string {
	switch f.Op {
	case memory.FilterAll:
		return c.group(f.Of, " AND ")
	case memory.FilterAny:
		return c.group(f.Of, " OR ")
	case memory.FilterNone:
		return "NOT " + c.group(f.Of, " OR ")
	case memory.FilterEqual, memory.FilterIn, memory.FilterGreater, memory.FilterAtLeast, memory.FilterLess,
		memory.FilterAtMost, memory.FilterContains, memory.FilterContainsFolded:
	}
	if f.Field == memory.FilterMetadata {
		return c.metadata(f)
	}
	if f.Field == memory.FilterCategories {
		return c.categories(f)
	}
	return c.column(f)
}

// categories tells whether the record is filed under one of the names, or, for null, under none.
func (c *filterCompiler) categories(f memory.Filter) string {
	if f.Values[0].Kind == memory.FilterNull {
		return "m.categories = '{}'"
	}
	names := make([]string, len(f.Values))
	for i, v := range f.Values {
		names[i] = v.Text
	}
	return "m.categories && " + c.arg(names) + "::text[]"
}

func (c *filterCompiler) group(of []memory.Filter, joined string) string {
	parts := make([]string, len(of))
	for i, f := range of {
		parts[i] = c.node(f)
	}
	return "(" + strings.Join(parts, joined) + ")"
}

// arg names an argument. The names are of this package's own making.
func (c *filterCompiler) arg(value any) string {
	name := fmt.Sprintf("filter_%d", c.used)
	c.used++
	c.args[name] = value
	return "@" + name
}

// filterColumn is the column of a field; a field without one is never met.
func filterColumn(field memory.FilterField) string {
	switch field {
	case memory.FilterID:
		return "m.id::text"
	case memory.FilterUser:
		return "m.user_id"
	case memory.FilterAgent:
		return "m.agent_id"
	case memory.FilterRun:
		return "m.run_id"
	case memory.FilterApp:
		return "m.app_id"
	case memory.FilterType:
		return "m.type"
	case memory.FilterRole:
		return "m.role"
	case memory.FilterItem:
		return "m.item_id"
	case memory.FilterText:
		return "m.text"
	case memory.FilterVersion:
		return "m.version"
	case memory.FilterCreatedAt:
		return "m.created_at"
	case memory.FilterUpdatedAt:
		return "m.updated_at"
	case memory.FilterEventDate:
		return "m.event_date"
	case memory.FilterExpiresAt:
		return "m.expires_at"
	case memory.FilterMetadata, memory.FilterCategories:
	}
	return "NULL::text"
}

func (c *filterCompiler) column(f memory.Filter) string {
	column := filterColumn(f.Field)
	switch f.Op {
	case memory.FilterContains:
		return decided(`position(` + c.arg(f.Values[0].Text) + `::text IN ` + column + `) > 0`)
	case memory.FilterContainsFolded:
		return decided(column + ` ~ ` + c.arg(anyCase(f.Values[0].Text)) + `::text`)
	case memory.FilterIn, memory.FilterEqual, memory.FilterGreater, memory.FilterAtLeast, memory.FilterLess,
		memory.FilterAtMost, memory.FilterAll, memory.FilterAny, memory.FilterNone:
	}
	parts := make([]string, len(f.Values))
	for i, v := range f.Values {
		switch v.Kind {
		case memory.FilterNull:
			parts[i] = column + " IS NULL"
		case memory.FilterInstant:
			parts[i] = column + comparison(f.Op) + c.arg(v.Time) + "::timestamptz"
		case memory.FilterNumber:
			parts[i] = column + comparison(f.Op) + c.arg(v.Text) + "::text::numeric"
		case memory.FilterString, memory.FilterBoolean:
			parts[i] = column + comparison(f.Op) + c.arg(v.Text) + "::text"
		}
	}
	return decided(strings.Join(parts, " OR "))
}

// decided makes a condition that could be unknown false.
func decided(condition string) string { return "coalesce(" + condition + ", false)" }

func comparison(op memory.FilterOp) string {
	switch op {
	case memory.FilterGreater:
		return " > "
	case memory.FilterAtLeast:
		return " >= "
	case memory.FilterLess:
		return " < "
	case memory.FilterAtMost:
		return " <= "
	case memory.FilterEqual, memory.FilterIn, memory.FilterContains, memory.FilterContainsFolded, memory.FilterAll,
		memory.FilterAny, memory.FilterNone:
	}
	return " = "
}

// metadata compares what stands at a path of the caller's metadata, by its own type: numbers as numbers, texts that
// are times as instants if the bound is one.
func (c *filterCompiler) metadata(f memory.Filter) string {
	path := c.arg(f.Path) + "::text[]"
	there, text := "m.metadata_b #> "+path, "m.metadata_b #>> "+path
	first := f.Values[0]
	switch f.Op {
	case memory.FilterContains:
		inText := "false"
		if first.Kind == memory.FilterString {
			inText = `position(` + c.arg(first.Text) + `::text IN ` + text + `) > 0`
		}
		return decided(`CASE jsonb_typeof(` + there + `) WHEN 'string' THEN ` + inText +
			` WHEN 'array' THEN (` + there + `) @> ` + c.arg("["+first.JSON+"]") + `::text::jsonb END`)
	case memory.FilterContainsFolded:
		return decided(`CASE WHEN jsonb_typeof(` + there + `) = 'string' THEN (` + text + `) ~ ` +
			c.arg(anyCase(first.Text)) + `::text END`)
	case memory.FilterGreater, memory.FilterAtLeast, memory.FilterLess, memory.FilterAtMost:
		if first.Kind == memory.FilterInstant {
			return decided(instantSQL(there, text) + comparison(f.Op) + c.arg(first.Time) + "::timestamptz")
		}
		return decided(`CASE WHEN jsonb_typeof(` + there + `) = 'number' THEN (` + text + `)::numeric` +
			comparison(f.Op) + c.arg(first.Text) + `::text::numeric END`)
	case memory.FilterEqual, memory.FilterIn, memory.FilterAll, memory.FilterAny, memory.FilterNone:
	}
	if first.Kind == memory.FilterNull {
		return `coalesce(jsonb_typeof(` + there + `), 'null') = 'null'`
	}
	values := make([]string, len(f.Values))
	for i, v := range f.Values {
		values[i] = v.JSON
	}
	return decided(there + ` = ANY(` + c.arg(values) + `::text[]::jsonb[])`)
}

// instantSQL is the instant that a text of RFC 3339 with an offset names, NULL for any other text. It is added up
// from its numbers, because a cast of the 31st of February ends the statement.
func instantSQL(there, text string) string {
	return `(SELECT CASE WHEN jsonb_typeof(` + there + `) = 'string' AND t.text ~ '^(?!0000)\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[Tt]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$'
   THEN ((substr(t.text, 1, 4) || '-01-01')::timestamp
         + make_interval(months => substr(t.text, 6, 2)::int - 1, days => substr(t.text, 9, 2)::int - 1,
                         hours => substr(t.text, 12, 2)::int, mins => substr(t.text, 15, 2)::int,
                         secs => substring(t.text from '^.{17}(\d\d(?:\.\d+)?)')::float8)
         - coalesce(substring(t.text from '[+-]\d\d:\d\d$'), '0')::interval) AT TIME ZONE 'UTC' END
  FROM (SELECT ` + text + ` AS text) t)`
}

// anyCase is a regular expression that finds text with its letters in any case. The database's own folding depends
// on the locale it was made with; in the plain one it knows the letters of English only.
func anyCase(text string) string {
	var pattern strings.Builder
	for _, r := range text {
		forms := string(r)
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			forms += string(other)
		}
		switch {
		case forms != string(r):
			pattern.WriteString("[" + forms + "]")
		case r < unicode.MaxASCII && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsSpace(r):
			pattern.WriteString(`\` + forms)
		default:
			pattern.WriteString(forms)
		}
	}
	return pattern.String()
}
