package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/operator"
)

// shownKey is a key in clear.
var shownKey = regexp.MustCompile(`hfk_[0-9A-Za-z]{12}_[0-9A-Za-z_-]+`)

// operator signs one in.
func (w *world) operator(name string) *browser {
	w.t.Helper()
	token, err := w.owner.CreateOperator(w.t.Context(), name)
	require.NoError(w.t, err)
	b := w.browser()
	b.signIn(token.Reveal())
	return b
}

// sendKey sends the form of a new key.
func (b *browser) sendKey(root, reference, name, expires string, permissions ...string) reply {
	b.w.t.Helper()
	return b.send(http.MethodPost, root+"/keys/new", url.Values{
		"csrf": {b.csrf}, "reference": {reference}, "name": {name}, "expires": {expires}, "permission": permissions,
	})
}

func (w *world) keys(of tenant) []operator.Key {
	w.t.Helper()
	all, err := w.owner.ListKeys(w.t.Context(), of.id)
	require.NoError(w.t, err)
	return all
}

func TestKeys(t *testing.T) {
	t.Parallel()

	t.Run("AreMadeOnceAndShownOnce", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		own := w.tenant("own")
		b := w.operator("ann")
		reference := b.keyOfForm(own.root + "/keys/new")
		tomorrow := time.Now().UTC().AddDate(0, 0, 2).Format(time.DateOnly)
		made := b.sendKey(own.root, reference, `<b>bot</b>`, tomorrow, "memory:read", "memory:write")
		require.Equal(t, http.StatusOK, made.status, made.body)
		require.Equal(t, "no-store", made.header.Get("Cache-Control"))
		require.Contains(t, made.body, "&lt;b&gt;bot&lt;/b&gt;")
		require.NotContains(t, made.body, "<b>bot")
		secret := shownKey.FindString(made.body)
		key, err := access.ParseKey(secret)
		require.NoError(t, err, made.body)
		caller, err := w.owner.Authenticate(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, own.id, caller.Workspace.ID)
		require.Equal(t, []access.Permission{access.MemoryRead, access.MemoryWrite}, caller.Permissions)

		again := b.sendKey(own.root, reference, `<b>bot</b>`, tomorrow, "memory:read", "memory:write")
		require.Equal(t, http.StatusOK, again.status)
		require.NotContains(t, again.body, secret)
		require.Contains(t, again.body, "made before")
		require.Equal(t, http.StatusConflict, b.sendKey(own.root, reference, "another", "", "admin").status)
		keys := w.keys(own)
		require.Len(t, keys, 2)
		require.Equal(t, tomorrow, keys[1].ExpiresAt.Format(time.DateOnly))
		for _, path := range []string{"/keys", "/keys/new", "/keys/" + key.ID() + "/revoke", "/events"} {
			page := b.get(own.root + path)
			require.Equal(t, http.StatusOK, page.status, path)
			require.Empty(t, shownKey.FindAllString(page.body, -1), path)
			require.NotContains(t, page.body, "<b>bot", path)
		}
		require.Contains(t, b.get(own.root+"/keys").body, "hfk_"+key.ID())
		acts, err := w.owner.Acts(t.Context(), operator.ActQuery{Workspace: own.id, Act: operator.CreateKey, Actor: "operator:ann", Limit: 9})
		require.NoError(t, err)
		require.Len(t, acts.Acts, 1)
		require.Equal(t, key.ID(), acts.Acts[0].Subject)
	})

	t.Run("AreMadeOfWhatMakesSense", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		own := w.tenant("own")
		b := w.operator("ann")
		reference := b.keyOfForm(own.root + "/keys/new")
		for name, got := range map[string]reply{
			"no permission":      b.sendKey(own.root, reference, "x", ""),
			"unknown permission": b.sendKey(own.root, reference, "x", "", "all"),
			"no reference":       b.sendKey(own.root, "", "x", "", "admin"),
			"past":               b.sendKey(own.root, reference, "x", "2020-01-01", "admin"),
			"no day":             b.sendKey(own.root, reference, "x", "soon", "admin"),
		} {
			require.Equal(t, http.StatusBadRequest, got.status, name)
		}
		require.Len(t, w.keys(own), 1)
	})

	t.Run("AreRevokedByWhoTypesTheirName", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		own := w.tenant("own") // its key is called k
		b := w.operator("ann")
		path := own.root + "/keys/" + own.key.ID() + "/revoke"
		require.Contains(t, b.get(path).body, "<strong>k</strong>")
		for _, typed := range []string{"", "K", own.key.ID()} {
			require.Equal(t, http.StatusBadRequest, b.post(path, "confirm", typed).status, typed)
		}
		require.Equal(t, http.StatusForbidden, b.with("Sec-Fetch-Site", "cross-site").post(path, "confirm", "k").status)
		require.Equal(t, http.StatusForbidden, b.send(http.MethodPost, path, url.Values{"confirm": {"k"}}).status)
		require.Nil(t, w.keys(own)[0].RevokedAt)

		require.Equal(t, own.root+"/keys?done=revoked", b.post(path, "confirm", "k").header.Get("Location"))
		require.NotNil(t, w.keys(own)[0].RevokedAt)
		require.Contains(t, b.get(path).body, "There is nothing to revoke")
		require.NotContains(t, b.get(own.root+"/keys").body, "/revoke")
		acts, err := w.owner.Acts(t.Context(), operator.ActQuery{Workspace: own.id, Act: operator.RevokeKey, Limit: 9})
		require.NoError(t, err)
		require.Len(t, acts.Acts, 1)
		require.Equal(t, "operator:ann", acts.Acts[0].Actor)
	})

	t.Run("AreNotThereForKeysNorInOtherWorkspaces", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		own, other := w.tenant("own"), w.tenant("other")
		mine := w.browser()
		mine.signIn(own.key.Reveal()) // it may all that a key may
		for _, path := range []string{"/keys", "/keys/new", "/keys/" + own.key.ID() + "/revoke"} {
			require.Equal(t, http.StatusNotFound, mine.get(own.root+path).status, path)
		}
		require.Equal(t, http.StatusNotFound, mine.sendKey(own.root, "6a0e9c3a-0000-4000-8000-000000000000", "x", "", "admin").status)
		require.Equal(t, http.StatusNotFound, mine.post(own.root+"/keys/"+own.key.ID()+"/revoke", "confirm", "k").status)
		require.NotContains(t, mine.get(own.root+"/events").body, own.root+"/keys")

		b := w.operator("ann")
		require.Contains(t, b.get(own.root+"/events").body, own.root+"/keys")
		require.NotContains(t, b.get(own.root+"/keys").body, other.key.ID())
		require.Equal(t, http.StatusNotFound, b.get(own.root+"/keys/"+other.key.ID()+"/revoke").status)
		require.Equal(t, http.StatusNotFound, b.post(own.root+"/keys/"+other.key.ID()+"/revoke", "confirm", "k").status)
		for _, of := range []tenant{own, other} {
			require.Len(t, w.keys(of), 1)
			require.Nil(t, w.keys(of)[0].RevokedAt)
		}
		writer, err := w.owner.Workspace(t.Context(), "own")
		require.NoError(t, err)
		for _, p := range access.Permissions() {
			only := w.browser()
			only.cookie = only.send(http.MethodPost, "/console/sign-in", url.Values{"secret": {w.keyOf(writer, p).key.Reveal()}}).cookie
			require.NotContains(t, only.get("/console").header.Get("Location"), "/keys", "where one begins who may only %s", p)
		}
	})
}
