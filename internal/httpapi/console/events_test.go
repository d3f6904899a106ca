package console_test

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/operator"
)

// TestForgery sends what another site could make a browser send.
func TestForgery(t *testing.T) {
	t.Parallel()
	w := setup(t)
	own := w.tenant("own")
	event := w.event(own, "k")
	b, other := w.browser(), w.browser()
	b.signIn(own.key.Reveal())
	other.signIn(own.key.Reveal())
	cancel := own.root + "/events/" + event + "/cancel"
	for name, got := range map[string]func() reply{
		"no word":              func() reply { return b.send(http.MethodPost, cancel, url.Values{}) },
		"another one's word":   func() reply { return b.send(http.MethodPost, cancel, url.Values{"csrf": {other.csrf}}) },
		"the word in the path": func() reply { return b.send(http.MethodPost, cancel+"?csrf="+b.csrf, url.Values{}) },
		"from another site":    func() reply { return b.with("Sec-Fetch-Site", "cross-site").post(cancel) },
		"from a sibling":       func() reply { return b.with("Sec-Fetch-Site", "same-site").post(cancel) },
		"from nowhere":         func() reply { return b.with("Sec-Fetch-Site", "").post(cancel) },
		"from another origin": func() reply {
			return b.with("Sec-Fetch-Site", "", "Origin", "https://evil.example").post(cancel)
		},
		"from no origin": func() reply { return b.with("Sec-Fetch-Site", "", "Origin", "null").post(cancel) },
	} {
		require.Equal(t, http.StatusForbidden, got().status, name)
		status, _ := w.status(event)
		require.Equal(t, "pending", status, name)
	}
	require.Equal(t, http.StatusForbidden, b.with("Sec-Fetch-Site", "cross-site").send(http.MethodPost, "/console/sign-in", url.Values{"secret": {own.key.Reveal()}}).status)
	require.Equal(t, http.StatusForbidden, b.send(http.MethodPost, "/console/sign-out", url.Values{}).status)
	require.Equal(t, http.StatusSeeOther, b.with("Sec-Fetch-Site", "", "Origin", w.address).post(cancel).status)
	status, _ := w.status(event)
	require.Equal(t, "failed", status)
}

// with is the same browser with other headers.
func (b *browser) with(headers ...string) *browser {
	other := *b
	other.headers = map[string]string{}
	for name, value := range b.headers {
		other.headers[name] = value
	}
	for i := 0; i < len(headers); i += 2 {
		other.headers[headers[i]] = headers[i+1]
	}
	return &other
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	w := setup(t)
	own := w.tenant("own")
	workspace, err := w.owner.Workspace(t.Context(), "own")
	require.NoError(t, err)
	failed, waiting := w.event(own, "fails"), w.event(own, "waits")
	w.fail(failed)

	t.Run("AReaderSeesNoButtonsAndPressesNone", func(t *testing.T) {
		t.Parallel()
		reader := w.keyOf(workspace, access.OperationsRead)
		b := w.browser()
		b.signIn(reader.key.Reveal())
		for _, path := range []string{failed, waiting} {
			page := b.get(own.root + "/events/" + path)
			require.Equal(t, http.StatusOK, page.status)
			require.NotContains(t, page.body, "/retry")
			require.NotContains(t, page.body, "/cancel")
		}
		for _, path := range []string{failed + "/retry", waiting + "/cancel"} {
			require.Equal(t, http.StatusForbidden, b.get(own.root+"/events/"+path).status)
			require.Equal(t, http.StatusForbidden, b.post(own.root+"/events/"+path, "generation", "1").status)
		}
		_, generation := w.status(failed)
		require.Equal(t, 1, generation)
		status, _ := w.status(waiting)
		require.Equal(t, "pending", status)
		require.NotContains(t, b.get(own.root+"/now").body, "Credits")
	})

	t.Run("AKeyThatMayReadNoEventsSeesNone", func(t *testing.T) {
		t.Parallel()
		b := w.browser()
		got := b.send(http.MethodPost, "/console/sign-in", url.Values{"secret": {w.keyOf(workspace, access.CreditsRead).key.Reveal()}})
		b.cookie = got.cookie
		for _, path := range []string{"/now", "/events", "/events/" + failed} {
			got := b.get(own.root + path)
			require.Equal(t, http.StatusForbidden, got.status, path)
			require.NotContains(t, got.body, "lea")
		}
	})

	t.Run("PagesOfOperatorsAreNotThereForKeys", func(t *testing.T) {
		t.Parallel()
		b := w.browser()
		b.signIn(own.key.Reveal())
		for _, path := range []string{"/console/now", "/console/workspaces"} {
			require.Equal(t, http.StatusNotFound, b.get(path).status, path)
		}
	})

	t.Run("AnOperatorActsInItsOwnName", func(t *testing.T) {
		t.Parallel()
		mine := w.tenant("operated")
		event := w.event(mine, "k")
		token, err := w.owner.CreateOperator(t.Context(), "ann")
		require.NoError(t, err)
		b := w.browser()
		b.signIn(token.Reveal())
		require.Contains(t, b.get("/console/workspaces").body, mine.root)
		require.Equal(t, http.StatusSeeOther, b.post(mine.root+"/events/"+event+"/cancel").status)
		acts, err := w.owner.Acts(t.Context(), operator.ActQuery{Workspace: mine.id, Act: operator.Cancel, Limit: 9})
		require.NoError(t, err)
		require.Len(t, acts.Acts, 1)
		require.Equal(t, "operator:ann", acts.Acts[0].Actor)
		require.Equal(t, event, acts.Acts[0].Subject)
	})
}

// TestOthers asks for what is another workspace's.
func TestOthers(t *testing.T) {
	t.Parallel()
	w := setup(t)
	own, other := w.tenant("own"), w.tenant("other-tenant")
	theirs := w.event(other, "their-key")
	w.fail(theirs)
	b := w.browser()
	b.signIn(own.key.Reveal())
	for _, path := range []string{
		other.root + "/now", other.root + "/events", other.root + "/events/" + theirs, own.root + "/events/" + theirs,
		own.root + "/events/" + theirs + "/retry", own.root + "/events/" + theirs + "/cancel", "/console/w/ws_x/events", "/console/nothing",
	} {
		got := b.get(path)
		require.Equal(t, http.StatusNotFound, got.status, path)
		require.NotContains(t, got.body, "other-tenant")
	}
	for _, path := range []string{other.root + "/events/" + theirs, own.root + "/events/" + theirs} {
		require.Equal(t, http.StatusNotFound, b.post(path+"/retry", "generation", "1").status)
		require.Equal(t, http.StatusNotFound, b.post(path+"/cancel").status)
	}
	_, generation := w.status(theirs)
	require.Equal(t, 1, generation)
	for _, query := range []string{theirs, "their-key"} {
		got := b.get(own.root + "/events?q=" + url.QueryEscape(query))
		require.Equal(t, http.StatusOK, got.status)
		require.Contains(t, got.body, "No event of this workspace has that")
	}
	require.NotContains(t, b.get(own.root+"/events").body, strings.TrimPrefix(theirs, "evt_")[24:])
}

func TestEvents(t *testing.T) {
	t.Parallel()
	w := setup(t)
	own := w.tenant("own")
	failed, waiting := w.event(own, "fails"), w.event(own, "waits")
	w.fail(failed)
	b := w.browser()
	b.signIn(own.key.Reveal())

	t.Run("AreFoundByIdAndByKey", func(t *testing.T) {
		t.Parallel()
		for query, want := range map[string]string{failed: failed, strings.TrimPrefix(waiting, "evt_"): waiting, "fails": failed, "waits": waiting} {
			got := b.get(own.root + "/events?q=" + url.QueryEscape(query))
			require.Equal(t, own.root+"/events/"+want, got.header.Get("Location"), query)
		}
	})

	t.Run("AreFilteredByWhatAPersonKnows", func(t *testing.T) {
		t.Parallel()
		for query, want := range map[string][2]bool{
			"": {true, true}, "?status=FAILED": {true, false}, "?status=PENDING": {false, true}, "?kind=memory_infer": {true, true},
			"?kind=export": {false, false}, "?within=15m": {true, true}, "?by=user&value=lea": {true, true}, "?by=user&value=max": {false, false},
			"?by=agent&value=lea": {false, false}, "?status=FAILED&by=user&value=lea&within=1h": {true, false},
		} {
			body := b.get(own.root + "/events" + query).body
			require.Equal(t, want, [2]bool{strings.Contains(body, "/events/"+failed), strings.Contains(body, "/events/"+waiting)}, query)
		}
	})

	t.Run("AreOnPages", func(t *testing.T) {
		t.Parallel()
		many := w.tenant("many")
		_, err := w.sql.Exec(t.Context(), `
INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, user_id, lane, priority, payload_format, outcome, accepted_at, updated_at, completed_at)
SELECT gen_random_uuid(), $1, 'memory_infer', 'succeeded', 'projected', now(), now(), 'u' || n % 2, sha256('x'), 'bulk', 1, 'STORED', now() - n * interval '1 minute', now(), now()
  FROM generate_series(1, 120) n`, many.id)
		require.NoError(t, err)
		b := w.browser()
		b.signIn(many.key.Reveal())
		older := regexp.MustCompile(`<a href="([^"]*cursor=[^"]*)">Older`)
		path, seen, sizes := many.root+"/events", map[string]bool{}, []int{}
		for path != "" {
			body := b.get(path).body
			links := regexp.MustCompile(`/events/(evt_[^"]*)"`).FindAllStringSubmatch(body, -1)
			for _, link := range links {
				require.False(t, seen[link[1]], "twice on the pages")
				seen[link[1]] = true
			}
			sizes = append(sizes, len(links))
			path = ""
			if next := older.FindStringSubmatch(body); next != nil {
				path = strings.ReplaceAll(next[1], "&amp;", "&")
			}
		}
		require.Equal(t, []int{50, 50, 20}, sizes)
		cursor := older.FindStringSubmatch(b.get(many.root + "/events").body)[1]
		require.Equal(t, http.StatusBadRequest, b.get(strings.ReplaceAll(cursor, "&amp;", "&")+"&status=FAILED").status, "a cursor of another list")
	})

	t.Run("TellTheirLifeAndNeverTheirInput", func(t *testing.T) {
		t.Parallel()
		page := b.get(own.root + "/events/" + failed)
		for _, words := range []string{"Accepted", "2 credits held", "Attempt 1 claimed", "by worker A", "Attempt 1 failed", "OUTPUT_INVALID", "Released", "2 credits given back"} {
			require.Contains(t, page.body, words)
		}
		for _, path := range []string{"/now", "/events", "/events/" + failed, "/events/" + waiting, "/events/" + failed + "/retry", "/events/" + waiting + "/cancel"} {
			got := b.get(own.root + path)
			require.Equal(t, http.StatusOK, got.status)
			require.NotContains(t, got.body, "canary", path)
			require.NotContains(t, got.body, "host-17", "a key is not told which worker: %s", path)
		}
	})

	t.Run("AreRetriedOnceForTheCostThatWasShown", func(t *testing.T) {
		t.Parallel()
		mine := w.tenant("mine")
		event := w.event(mine, "k")
		w.fail(event)
		b := w.browser()
		b.signIn(mine.key.Reveal())
		require.Contains(t, b.get(mine.root+"/events/"+event+"/retry").body, "A new run holds <strong>2 credits</strong>")
		require.Equal(t, http.StatusBadRequest, b.post(mine.root+"/events/"+event+"/retry").status)
		for range 2 {
			require.Equal(t, http.StatusSeeOther, b.post(mine.root+"/events/"+event+"/retry", "generation", "1").status)
		}
		status, generation := w.status(event)
		require.Equal(t, "pending", status)
		require.Equal(t, 2, generation)
		require.Contains(t, b.get(mine.root+"/events/"+event).body, "Retried by hand, run 2")
	})

	t.Run("AreRenewedOnlyWhenSomethingIsNew", func(t *testing.T) {
		t.Parallel()
		mine := w.tenant("renewing")
		event := w.event(mine, "k")
		b := w.browser()
		b.signIn(mine.key.Reveal())
		path := mine.root + "/events/" + event
		seen := regexp.MustCompile(`data-seen="([0-9a-f]+)"`).FindStringSubmatch(b.get(path).body)[1]
		live := b.with("Hx-Request", "true")
		require.Equal(t, http.StatusNoContent, live.get(path+"?seen="+seen).status)
		w.fail(event)
		got := live.get(path + "?seen=" + seen)
		require.Equal(t, http.StatusOK, got.status)
		require.True(t, strings.HasPrefix(got.body, `<div id="live"`), got.body[:min(80, len(got.body))])
		require.NotContains(t, got.body, "hx-get", "what has ended is not asked for again")
	})
}

// TestPages holds what every page says to a browser, and that none needs more than is served here.
func TestPages(t *testing.T) {
	t.Parallel()
	w := setup(t)
	own := w.tenant("own")
	event, record := w.event(own, "k"), w.remember(own, "lea", "Lea drinks green tea")
	token, err := w.owner.CreateOperator(t.Context(), "ann")
	require.NoError(t, err)
	b := w.browser()
	b.signIn(token.Reveal())
	inline := regexp.MustCompile(`(?i)<script(?:>|[^>]*[^>r]>[^<])|<style|\sstyle=|\son[a-z]+=|javascript:|https?://`)
	for _, path := range []string{
		"/console/sign-in", "/console/now", "/console/providers", "/console/workspaces", own.root + "/now", own.root + "/events", own.root + "/events/" + event,
		own.root + "/events/" + event + "/cancel", own.root + "/events/" + event + "/retry", "/console/nothing",
		own.root + "/playground", own.root + "/playground?event=" + event, own.root + "/webhooks", own.root + "/settings", own.root + "/settings/state/pause",
		own.root + "/recovery", own.root + "/recovery?act=retry&since=2026-01-01T00:00",
		own.root + "/memories", scoped(own.root+"/memories", "lea", "q", "tea"), own.root + "/memories/" + record, scoped(own.root+"/erase", "lea"),
		own.root + "/credits", own.root + "/credits/books", own.root + "/keys", own.root + "/keys/new", own.root + "/keys/" + own.key.ID() + "/revoke",
	} {
		got := b.get(path)
		require.Less(t, got.status, 500, path)
		require.Equal(t, "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "+
			"base-uri 'none'; frame-ancestors 'none'", got.header.Get("Content-Security-Policy"), path)
		for name, value := range map[string]string{
			"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "same-origin",
		} {
			require.Equal(t, value, got.header.Get(name), path)
		}
		require.Empty(t, inline.FindAllString(got.body, -1), path)
		for _, asset := range regexp.MustCompile(`(?:src|href)="(/console/assets/[^"]*)"`).FindAllStringSubmatch(got.body, -1) {
			file := b.get(asset[1])
			require.Equal(t, http.StatusOK, file.status, asset[1])
			require.Contains(t, file.header.Get("Cache-Control"), "immutable", asset[1])
		}
	}
	readme, err := os.ReadFile("frame/assets/README.md")
	require.NoError(t, err)
	sum := sha256.Sum256([]byte(b.get("/console/assets/htmx.min.js").body))
	require.Contains(t, string(readme), "| `htmx.min.js` | `"+hex.EncodeToString(sum[:])+"` |")
}
