package console_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/access"
)

func TestCredits(t *testing.T) {
	t.Parallel()
	w := setup(t)
	own := w.tenant("own")
	failed, waiting := w.event(own, "fails"), w.event(own, "waits")
	w.fail(failed)
	_, err := w.owner.Grant(t.Context(), own.id, `<script>alert(1)</script>`, 5)
	require.NoError(t, err)
	b := w.browser()
	b.signIn(own.key.Reveal())

	t.Run("AreShownWithTheirHoldsAndJournal", func(t *testing.T) {
		t.Parallel()
		page := b.get(own.root + "/credits")
		require.Equal(t, http.StatusOK, page.status)
		require.Contains(t, page.body, "<dd>103 ")
		require.Contains(t, page.body, "<dd>2 ")
		holds, journal, found := strings.Cut(page.body, `id="journal"`)
		require.True(t, found)
		require.Contains(t, holds, waiting)
		require.NotContains(t, holds, failed)
		for _, words := range []string{"<td>grant</td>", "<td>hold</td>", "<td>release</td>", failed, waiting, "start", "&lt;script&gt;alert(1)"} {
			require.Contains(t, journal, words)
		}
		require.NotContains(t, page.body, "<script>alert")
		require.NotContains(t, page.body, "canary")
	})

	t.Run("AreOnPages", func(t *testing.T) {
		t.Parallel()
		many := w.tenant("many") // with a first grant
		_, err := w.sql.Exec(t.Context(), `
INSERT INTO credit_grants (id, workspace_id, reference, amount, granted_at)
SELECT gen_random_uuid(), $1, 'grant ' || n, 1, now() - n * interval '1 minute' FROM generate_series(1, 59) n`, many.id)
		require.NoError(t, err)
		b := w.browser()
		b.signIn(many.key.Reveal())
		older := regexp.MustCompile(`<a href="([^"]*cursor=[^"]*)">Older`)
		first := b.get(many.root + "/credits").body
		require.Equal(t, 50, strings.Count(first, "<td>grant</td>"))
		next := older.FindStringSubmatch(first)[1]
		second := b.get(next).body
		require.Equal(t, 10, strings.Count(second, "<td>grant</td>"))
		require.Nil(t, older.FindStringSubmatch(second))
		require.Equal(t, http.StatusBadRequest, b.get(next+"x").status)
		require.Equal(t, http.StatusNotFound, b.get(own.root+"/credits").status)

		require.Contains(t, b.get(many.root+"/credits/books").body, "It does not.", "the account was not told")
		_, err = w.sql.Exec(t.Context(), `UPDATE credit_accounts SET available = available + 59 WHERE workspace_id = $1`, many.id)
		require.NoError(t, err)
		page := b.get(many.root + "/credits/books").body
		require.Contains(t, page, "All 60 entries were added up: they give what the account has.")
	})

	t.Run("AddUp", func(t *testing.T) {
		t.Parallel()
		page := b.get(own.root + "/credits/books")
		require.Equal(t, http.StatusOK, page.status)
		require.Contains(t, page.body, "It does.")
		require.Contains(t, page.body, "<dt>Granted</dt><dd>105</dd><dt>Held</dt><dd>4</dd><dt>Charged</dt><dd>0</dd><dt>Given back</dt><dd>2</dd>")

		wrong := w.tenant("wrong")
		w.event(wrong, "k")
		_, err := w.sql.Exec(t.Context(), `UPDATE credit_accounts SET held = held - 1, available = available + 1 WHERE workspace_id = $1`, wrong.id)
		require.NoError(t, err)
		b := w.browser()
		b.signIn(wrong.key.Reveal())
		require.Contains(t, b.get(wrong.root+"/credits/books").body, "It does not.", "held for nobody")
	})

	t.Run("AreNotAddedUpBeyondABound", func(t *testing.T) {
		t.Parallel()
		long := w.tenant("long")
		_, err := w.sql.Exec(t.Context(), `
INSERT INTO credit_grants (id, workspace_id, reference, amount) SELECT gen_random_uuid(), $1, 'g' || n, 1 FROM generate_series(1, 20001) n`, long.id)
		require.NoError(t, err)
		b := w.browser()
		b.signIn(long.key.Reveal())
		page := b.get(long.root + "/credits/books").body
		require.Contains(t, page, "more than the 20,000 entries")
		require.NotContains(t, page, "It does")
	})

	t.Run("AreThereForWhoMayReadThem", func(t *testing.T) {
		t.Parallel()
		workspace, err := w.owner.Workspace(t.Context(), "own")
		require.NoError(t, err)
		b := w.browser()
		b.signIn(w.keyOf(workspace, access.OperationsRead, access.MemoryRead).key.Reveal())
		for _, path := range []string{"/credits", "/credits/books"} {
			require.Equal(t, http.StatusForbidden, b.get(own.root+path).status)
		}
		require.NotContains(t, b.get(own.root+"/events").body, `href="`+own.root+`/credits"`)
		accountant := w.browser()
		accountant.signIn(w.keyOf(workspace, access.CreditsRead).key.Reveal())
		page := accountant.get(own.root + "/credits").body
		require.Contains(t, page, failed, "the journal names the event")
		require.NotContains(t, page, "/events/", "which this key may not see")
		require.NotContains(t, page, `id="holds"`)
	})
}
