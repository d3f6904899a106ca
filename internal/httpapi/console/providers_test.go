package console_test

import (
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/operator"
)

func TestProviders(t *testing.T) {
	t.Parallel()
	w := setup(t)
	token, err := w.owner.CreateOperator(t.Context(), "ann")
	require.NoError(t, err)
	_, err = w.sql.Exec(t.Context(), `
INSERT INTO provider_pauses (provider, paused_until, class, updated_at)
VALUES ('tired', clock_timestamp() + interval '1 hour', 'provider_timeout', clock_timestamp())`)
	require.NoError(t, err)
	pauses := func() []operator.Pause {
		work, err := w.owner.Work(t.Context())
		require.NoError(t, err)
		return work.Pauses
	}
	key, b := w.browser(), w.browser()
	key.signIn(w.tenant("own").key.Reveal())
	b.signIn(token.Reveal())
	const list = "/console/providers"

	require.Equal(t, http.StatusNotFound, key.get(list).status)
	for _, path := range []string{list, list + "/resume"} {
		require.Equal(t, http.StatusNotFound, key.post(path, "provider", "acme").status, path)
		require.Equal(t, http.StatusForbidden, b.send(http.MethodPost, path, url.Values{"provider": {"acme"}}).status, path)
		require.Equal(t, http.StatusForbidden, b.with("Sec-Fetch-Site", "cross-site").post(path, "provider", "acme").status, path)
	}
	page := b.get(list)
	require.Contains(t, page.body, "by the workers after provider timeout")
	require.NotContains(t, page.body, "Resume</button>", "what the workers made ends by itself")
	for _, wrong := range []string{"", "a\nb", strings.Repeat("x", 501)} {
		got := b.post(list, "provider", wrong, "reason", "kept text")
		require.Equal(t, http.StatusBadRequest, got.status, wrong)
		require.Contains(t, got.body, `value="kept text"`)
	}
	require.Len(t, pauses(), 1)

	for _, reason := range []string{"down", hostile} { // twice changes the reason only
		got := b.post(list, "provider", hostile, "reason", reason)
		require.Equal(t, http.StatusSeeOther, got.status, got.body)
		require.Contains(t, b.get(got.header.Get("Location")).body, "leave the provider alone")
	}
	require.Len(t, pauses(), 2)
	for _, path := range []string{list, "/console/now"} {
		page = b.get(path)
		require.Contains(t, page.body, "by hand: "+html.EscapeString(hostile), path)
		require.Contains(t, page.body, "provider timeout", path)
		require.NotContains(t, page.body, "<script>alert", path)
		require.NotContains(t, page.body, "<img src=x", path)
	}
	for _, other := range []string{"tired", "unknown", "a\x00", ""} {
		require.Equal(t, http.StatusSeeOther, b.post(list+"/resume", "provider", other).status, other)
	}
	require.Len(t, pauses(), 2)
	for range 2 {
		require.Equal(t, http.StatusSeeOther, b.post(list+"/resume", "provider", hostile).status)
	}
	require.NotContains(t, b.get("/console/now").body, "by hand")
	left := pauses()
	require.Len(t, left, 1)
	require.Equal(t, "tired", left[0].Provider)
	acts, err := w.owner.Acts(t.Context(), operator.ActQuery{Act: operator.ResumeProvider, Limit: 9})
	require.NoError(t, err)
	require.Len(t, acts.Acts, 1, "what goes on already is no act")
	require.Equal(t, "operator:ann", acts.Acts[0].Actor)
}
