package console_test

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/access"
)

func TestSession(t *testing.T) {
	t.Parallel()

	t.Run("HoldsNoSecretOfItsUser", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		own := w.tenant("own")
		b := w.browser()
		c := b.signIn(own.key.Reveal()).cookie
		require.Equal(t, "holdfast-console", c.Name)
		require.True(t, c.HttpOnly)
		require.Equal(t, http.SameSiteStrictMode, c.SameSite)
		require.False(t, c.Secure, "a browser of this machine speaks to it without TLS")
		require.Equal(t, 12*60*60, c.MaxAge)
		raw, err := base64.RawURLEncoding.DecodeString(c.Value)
		require.NoError(t, err)
		require.NotContains(t, own.key.Reveal(), c.Value)
		sum := sha256.Sum256(raw)
		var stored []byte
		var life float64
		require.NoError(t, w.sql.QueryRow(t.Context(), `SELECT id, extract(epoch FROM expires_at - created_at)::float8 FROM console_sessions`).Scan(&stored, &life))
		require.Equal(t, sum[:], stored)
		require.InDelta(t, 12*60*60, life, 1)
	})

	t.Run("IsBoundToTLSAnywhereElse", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		own := w.tenant("own")
		for _, headers := range [][]string{
			{"X-Forwarded-Proto", "https"}, {"X-Forwarded-For", "192.0.2.1"}, {"Forwarded", "for=192.0.2.1"}, {"Host", "memory.example.org"},
		} {
			b := w.browser(headers...)
			c := b.signIn(own.key.Reveal()).cookie
			require.True(t, c.Secure, headers)
			require.Equal(t, "__Host-holdfast-console", c.Name)
			require.Equal(t, "/", c.Path)
			require.Empty(t, c.Domain)
			b.cookie = &http.Cookie{Name: "holdfast-console", Value: c.Value}
			require.True(t, b.get(own.root+"/now").isSignIn(), "the name that needs no TLS doesn't count here")
		}
		got := w.browser("Host", "memory.example.org", "Origin", "http://memory.example.org").send(http.MethodPost, "/console/sign-in",
			url.Values{"secret": {own.key.Reveal()}})
		require.Equal(t, http.StatusBadRequest, got.status)
		require.Nil(t, got.cookie)
	})

	t.Run("EndsWithItsKeyItsTimeAndOnWish", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		own := w.tenant("own")
		for name, end := range map[string]func(b *browser){
			"signed out": func(b *browser) {
				require.Equal(t, http.StatusSeeOther, b.post("/console/sign-out").status)
			},
			"over": func(*browser) {
				_, err := w.sql.Exec(t.Context(), `UPDATE console_sessions SET expires_at = clock_timestamp()`)
				require.NoError(t, err)
			},
			"expired key": func(*browser) {
				_, err := w.sql.Exec(t.Context(), `UPDATE api_keys SET expires_at = clock_timestamp()`)
				require.NoError(t, err)
				t.Cleanup(func() {})
			},
		} {
			b := w.browser()
			b.signIn(own.key.Reveal())
			end(b)
			require.True(t, b.get(own.root+"/events").isSignIn(), name)
			_, err := w.sql.Exec(t.Context(), `UPDATE api_keys SET expires_at = NULL`)
			require.NoError(t, err)
		}
		b := w.browser()
		b.signIn(own.key.Reveal())
		require.NoError(t, w.owner.RevokeKey(t.Context(), own.id, own.key.ID()))
		require.True(t, b.get(own.root+"/events").isSignIn())

		token, err := w.owner.CreateOperator(t.Context(), "ann")
		require.NoError(t, err)
		b = w.browser()
		b.signIn(token.Reveal())
		require.NoError(t, w.owner.RevokeOperator(t.Context(), token.ID()))
		require.True(t, b.get("/console/now").isSignIn())
		b.headers["Hx-Request"] = "true"
		got := b.get("/console/now")
		require.Equal(t, http.StatusNoContent, got.status)
		require.Contains(t, got.header.Get("Hx-Redirect"), "/console/sign-in")
	})

	t.Run("IsOpenedByNothingElse", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		own := w.tenant("own")
		other, err := access.NewKey()
		require.NoError(t, err)
		token, err := access.NewToken()
		require.NoError(t, err)
		for _, secret := range []string{"", "x", own.key.ID(), other.Reveal(), token.Reveal(), strings.Replace(own.key.Reveal(), "hfk_", "hfo_", 1)} {
			got := w.browser().send(http.MethodPost, "/console/sign-in", url.Values{"secret": {secret}})
			require.Equal(t, http.StatusUnauthorized, got.status, secret)
			require.Nil(t, got.cookie)
			if secret != "" && secret != "x" {
				require.NotContains(t, got.body, secret)
			}
		}
		b := w.browser()
		b.cookie = &http.Cookie{Name: "holdfast-console", Value: base64.RawURLEncoding.EncodeToString(make([]byte, 32))}
		require.True(t, b.get("/console").isSignIn())
	})

	t.Run("IsNotGuessedAtFullSpeed", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		own := w.tenant("own")
		b := w.browser()
		statuses := map[int]int{}
		for range 25 {
			statuses[b.send(http.MethodPost, "/console/sign-in", url.Values{"secret": {"wrong"}}).status]++
		}
		require.GreaterOrEqual(t, statuses[http.StatusUnauthorized], 20)
		require.Positive(t, statuses[http.StatusTooManyRequests])
		require.Equal(t, http.StatusTooManyRequests, b.send(http.MethodPost, "/console/sign-in", url.Values{"secret": {own.key.Reveal()}}).status)
	})

	t.Run("GoesOnOnlyWithinTheConsole", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		own := w.tenant("own")
		asked := w.browser().get(own.root + "/events?status=FAILED")
		require.Equal(t, "/console/sign-in?next="+url.QueryEscape(own.root+"/events?status=FAILED"), asked.header.Get("Location"))
		for next, want := range map[string]string{
			own.root + "/events?status=FAILED": own.root + "/events?status=FAILED", "https://evil.example/console/": "/console",
			"//evil.example/console/": "/console", "/console//evil.example": "/console", `/console/\evil.example`: "/console", "/v1/memories": "/console", "": "/console",
		} {
			got := w.browser().send(http.MethodPost, "/console/sign-in", url.Values{"secret": {own.key.Reveal()}, "next": {next}})
			require.Equal(t, want, got.header.Get("Location"), next)
		}
	})

	t.Run("MakesRoomOfItsHoldersOwn", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		own, other := w.tenant("own"), w.tenant("other")
		kept := w.browser()
		kept.signIn(other.key.Reveal())
		first := w.browser()
		first.signIn(own.key.Reveal())
		for range 20 {
			require.Equal(t, http.StatusSeeOther, w.browser().send(http.MethodPost, "/console/sign-in", url.Values{"secret": {own.key.Reveal()}}).status)
		}
		require.True(t, first.get("/console").isSignIn())
		require.False(t, kept.get("/console").isSignIn())
	})
}
