package console_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/access"
)

// hostile is what nobody but somebody hostile would write.
const hostile = `"><script>alert(1)</script><img src=x onerror=alert(1)>`

var keyField = regexp.MustCompile(`name="key" value="(console-[A-Z2-7]{26})"`)

// formKey is the key that the form on the page was made with.
func (r reply) formKey(t *testing.T) string {
	t.Helper()
	found := keyField.FindStringSubmatch(r.body)
	require.NotNil(t, found, r.body)
	return found[1]
}

func (w *world) count(sql string, args ...any) (n int) {
	w.t.Helper()
	require.NoError(w.t, w.sql.QueryRow(w.t.Context(), sql, args...).Scan(&n))
	return n
}

func (w *world) tasksOf(of tenant) int {
	w.t.Helper()
	return w.count(`SELECT count(*) FROM tasks WHERE workspace_id = $1`, of.id)
}

func TestPlayground(t *testing.T) {
	t.Parallel()
	w := setup(t)

	t.Run("AMessageIsOneEventUnderAKeyOfTheServer", func(t *testing.T) {
		t.Parallel()
		own := w.tenant("one-event")
		b := w.browser()
		b.signIn(own.key.Reveal())
		page := b.get(own.root + "/playground")
		key := page.formKey(t)
		require.Equal(t, 2, strings.Count(page.body, key), "it is shown too")
		require.NotEqual(t, key, b.get(own.root+"/playground").formKey(t))
		var at string
		for range 2 {
			got := b.post(own.root+"/playground", "key", key, "user", " lea ", "text", canary+"\r\nand at one", "infer", "on")
			require.Equal(t, http.StatusSeeOther, got.status, got.body)
			require.True(t, at == "" || at == got.header.Get("Location"), "pressed twice it is one event")
			at = got.header.Get("Location")
		}
		require.Equal(t, 1, w.tasksOf(own))
		query := mustQuery(t, at)
		require.Equal(t, "lea", query.Get("user"))
		id := strings.TrimPrefix(query.Get("event"), "evt_")
		require.Equal(t, 1, w.count(`SELECT count(*) FROM tasks WHERE id = $1::uuid AND user_id = 'lea' AND kind = 'memory_infer'`, id))
		shown := b.get(at)
		require.Equal(t, http.StatusOK, shown.status)
		for _, words := range []string{"Accepted", "2 credits held", `hx-trigger="every 1s"`, "/events/" + query.Get("event"), key, `value="lea"`} {
			require.Contains(t, shown.body, words)
		}
		require.NotContains(t, shown.body, "canary", "an input is not shown from storage")
		require.NotContains(t, at, "canary")
		w.fail(query.Get("event"))
		live := b.with("Hx-Request", "true").get(at)
		require.Contains(t, live.body, "OUTPUT_INVALID")
		require.NotContains(t, live.body, "hx-get", "what has ended is not asked for again")
	})

	t.Run("AMessageIsStoredAsItIsAndFound", func(t *testing.T) {
		t.Parallel()
		own := w.tenant("as-it-is")
		b := w.browser()
		b.signIn(own.key.Reveal())
		got := b.post(own.root+"/playground", "key", b.get(own.root+"/playground").formKey(t), "user", "lea", "text", "lea lives in Oslo\r\n"+hostile)
		require.Equal(t, http.StatusSeeOther, got.status, got.body)
		at := got.header.Get("Location")
		page := b.get(at)
		require.Contains(t, page.body, "succeeded")
		require.NotContains(t, page.body, " checked", "the form keeps the choice")
		page = b.get(at + "&q=" + url.QueryEscape("Oslo"))
		require.Contains(t, page.body, "lea lives in Oslo\n"+html.EscapeString(hostile))
		require.Contains(t, page.body, "score ")
		require.NotContains(t, page.body, "<script>alert")
		require.NotContains(t, page.body, "<img src=x")
		require.Contains(t, b.get(own.root+"/playground?user=max&q=Oslo").body, "Nothing is found.")
		w.remember(own, "max", "max lives in Oslo")
		require.NotContains(t, b.get(at+"&q=Oslo").body, "max lives")
	})

	t.Run("WhatIsRefusedComesBackAsItWasTyped", func(t *testing.T) {
		t.Parallel()
		own := w.tenant("refused")
		b := w.browser()
		b.signIn(own.key.Reveal())
		key := b.get(own.root + "/playground").formKey(t)
		got := b.post(own.root+"/playground", "key", key, "user", " ", "text", hostile, "infer", "on")
		require.Equal(t, http.StatusBadRequest, got.status)
		require.Contains(t, got.body, "/user_id")
		require.Contains(t, got.body, html.EscapeString(hostile)+"</textarea>")
		require.NotContains(t, got.body, "<script>alert")
		require.Equal(t, key, got.formKey(t))
		require.Equal(t, http.StatusBadRequest, b.post(own.root+"/playground", "key", key, "user", "lea", "text", " \r\n").status)
		require.Equal(t, http.StatusBadRequest, b.post(own.root+"/playground", "key", "", "user", "lea", "text", "x").status)
		require.Zero(t, w.tasksOf(own))
		require.Equal(t, http.StatusSeeOther, b.post(own.root+"/playground", "key", key, "user", "lea", "text", "one").status)
		got = b.post(own.root+"/playground", "key", key, "user", "lea", "text", "another one")
		require.Equal(t, http.StatusConflict, got.status)
		require.Contains(t, got.body, "another one</textarea>")
		require.NotEqual(t, key, got.formKey(t), "the next attempt is another command")
		require.Equal(t, 1, w.tasksOf(own))
	})

	t.Run("AnOperatorWritesUnlessItIsSuspended", func(t *testing.T) {
		t.Parallel()
		own := w.tenant("operated-playground")
		token, err := w.owner.CreateOperator(t.Context(), "ann")
		require.NoError(t, err)
		b := w.browser()
		b.signIn(token.Reveal())
		key := b.get(own.root + "/playground").formKey(t)
		got := b.post(own.root+"/playground", "key", key, "user", "lea", "text", "x", "infer", "on")
		require.Equal(t, http.StatusSeeOther, got.status, got.body)
		require.Contains(t, b.get(got.header.Get("Location")).body, "2 credits held")
		_, err = w.owner.SuspendWorkspace(t.Context(), own.id.String(), true)
		require.NoError(t, err)
		key = b.get(own.root + "/playground").formKey(t)
		got = b.post(own.root+"/playground", "key", key, "user", "lea", "text", "another", "infer", "on")
		require.Equal(t, http.StatusForbidden, got.status)
		require.Contains(t, got.body, "another</textarea>")
		require.Equal(t, 1, w.tasksOf(own))
	})

	t.Run("IsForWhoMayWrite", func(t *testing.T) {
		t.Parallel()
		own, other := w.tenant("may"), w.tenant("other-may")
		theirs := w.event(other, "k")
		made, err := w.owner.Workspace(t.Context(), "may")
		require.NoError(t, err)
		reader, writer := w.keyOf(made, access.MemoryRead, access.OperationsRead), w.keyOf(made, access.MemoryWrite)
		b := w.browser()
		b.signIn(reader.key.Reveal())
		require.NotContains(t, b.get(own.root+"/now").body, "/playground")
		require.Equal(t, http.StatusForbidden, b.get(own.root+"/playground").status)
		require.Equal(t, http.StatusForbidden, b.post(own.root+"/playground", "key", "k", "user", "lea", "text", "x").status)

		b = w.browser()
		b.cookie = b.send(http.MethodPost, "/console/sign-in", url.Values{"secret": {writer.key.Reveal()}}).cookie
		page := b.get(own.root + "/playground")
		require.NotContains(t, page.body, `id="q"`)
		require.NotContains(t, b.get(own.root+"/playground?q=Oslo").body, "Nothing is found.")
		got := b.post(own.root+"/playground", "key", page.formKey(t), "user", "lea", "text", "x")
		require.Equal(t, http.StatusSeeOther, got.status)
		require.Contains(t, b.get(got.header.Get("Location")).body, "This key may not see events.")
		require.Equal(t, 1, w.tasksOf(own))

		full := w.browser()
		full.signIn(own.key.Reveal())
		require.Equal(t, http.StatusNotFound, full.get(own.root+"/playground?event="+theirs).status)
		require.Equal(t, http.StatusNotFound, full.get(other.root+"/playground").status)
		require.Equal(t, http.StatusNotFound, full.post(other.root+"/playground", "key", "k", "user", "lea", "text", "x").status)
		require.Equal(t, http.StatusForbidden, full.send(http.MethodPost, own.root+"/playground", url.Values{"key": {"k"}, "user": {"lea"}, "text": {"x"}}).status)
		require.Equal(t, http.StatusForbidden, full.with("Sec-Fetch-Site", "cross-site").post(own.root+"/playground", "key", "k", "user", "lea", "text", "x").status)
		require.Equal(t, 1, w.tasksOf(own))
		require.Equal(t, 1, w.tasksOf(other))
	})
}

func mustQuery(t *testing.T, address string) url.Values {
	t.Helper()
	parsed, err := url.Parse(address)
	require.NoError(t, err)
	return parsed.Query()
}
