package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/operator"
)

// formKey is what makes one command of a form that is sent twice.
var formKey = regexp.MustCompile(`name="(?:key|reference)" value="([0-9a-f-]{36})"`)

// keyOfForm opens a form and answers its key.
func (b *browser) keyOfForm(path string) string {
	b.w.t.Helper()
	found := formKey.FindStringSubmatch(b.get(path).body)
	require.NotNil(b.w.t, found, path)
	return found[1]
}

func (w *world) records(of tenant) (n int) {
	w.t.Helper()
	require.NoError(w.t, w.sql.QueryRow(w.t.Context(), `SELECT count(*) FROM memories WHERE workspace_id = $1`, of.id).Scan(&n))
	return n
}

// scoped is a path about a user.
func scoped(path, user string, more ...string) string {
	query := url.Values{"by": {"user"}, "value": {user}}
	for i := 0; i < len(more); i += 2 {
		query.Set(more[i], more[i+1])
	}
	return path + "?" + query.Encode()
}

func TestMemories(t *testing.T) {
	t.Parallel()
	w := setup(t)
	own := w.tenant("own")
	tea, boat := w.remember(own, "lea", "Lea drinks green tea"), w.remember(own, "lea", "The boat is called Aurora")
	w.remember(own, "max", "Max plays chess")
	b := w.browser()
	b.signIn(own.key.Reveal())

	t.Run("AreFoundByWhoseTheyAre", func(t *testing.T) {
		t.Parallel()
		who := b.get(own.root + "/memories").body
		require.Contains(t, who, "by=user&amp;value=lea")
		require.Contains(t, who, "by=user&amp;value=max")
		require.NotContains(t, b.get(own.root+"/memories?by=agent").body, "value=lea")
		hers := b.get(scoped(own.root+"/memories", " lea ")).body
		require.Contains(t, hers, "Lea drinks green tea")
		require.Contains(t, hers, "Aurora")
		require.NotContains(t, hers, "chess")
		require.Contains(t, b.get(scoped(own.root+"/memories", "nobody")).body, "No records of this user yet.")
		require.Equal(t, http.StatusBadRequest, b.get(scoped(own.root+"/memories", strings.Repeat("x", 513))).status)
	})

	t.Run("AreFoundByWhatTheySayAndTellWhy", func(t *testing.T) {
		t.Parallel()
		body := b.get(scoped(own.root+"/memories", "lea", "q", "green tea")).body
		rows := regexp.MustCompile(`(?s)<tr>\s*<td class="number desk">(\d+)</td>.*?href="[^"]*/(mem_[^"]+)".*?</tr>`).FindAllStringSubmatch(body, -1)
		require.NotEmpty(t, rows)
		require.Equal(t, []string{"1", tea}, rows[0][1:])
		require.Regexp(t, `data-name="score">[01]\.\d{3}<`, rows[0][0])
		require.Regexp(t, `data-name="by words">#1 · 0\.\d{3}<`, rows[0][0])
		require.Regexp(t, `data-name="by meaning">#1 · [01]\.\d{3}<`, rows[0][0])
		require.Contains(t, b.get(own.root+"/memories?q=tea").body, "choose whose memory is meant")
	})

	t.Run("HaveAPageWithTheirHistory", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, own.root+"/memories/"+boat, b.get(own.root+"/memories?q="+boat).header.Get("Location"))
		page := b.get(own.root + "/memories/" + boat)
		require.Equal(t, http.StatusOK, page.status)
		for _, words := range []string{"The boat is called Aurora", "add, version 1", "user lea"} {
			require.Contains(t, page.body, words)
		}
		require.Equal(t, http.StatusNotFound, b.get(own.root+"/memories/mem_x").status)
	})

	t.Run("AreOnPages", func(t *testing.T) {
		t.Parallel()
		many := w.tenant("many")
		for n := range 55 {
			w.remember(many, "lea", fmt.Sprintf("Lea has seen film %d", n))
		}
		b := w.browser()
		b.signIn(many.key.Reveal())
		next := regexp.MustCompile(`<a href="([^"]*cursor=[^"]*)">Next page`)
		path, seen, sizes := scoped(many.root+"/memories", "lea"), map[string]bool{}, []int{}
		for path != "" {
			body := b.get(path).body
			links := regexp.MustCompile(`/memories/(mem_[^"]*)"`).FindAllStringSubmatch(body, -1)
			for _, link := range links {
				require.False(t, seen[link[1]], "twice on the pages")
				seen[link[1]] = true
			}
			sizes = append(sizes, len(links))
			path = ""
			if found := next.FindStringSubmatch(body); found != nil {
				path = strings.ReplaceAll(found[1], "&amp;", "&")
			}
		}
		require.Equal(t, []int{50, 5}, sizes)
		cursor := strings.ReplaceAll(next.FindStringSubmatch(b.get(scoped(many.root+"/memories", "lea")).body)[1], "&amp;", "&")
		require.Equal(t, http.StatusBadRequest, b.get(strings.Replace(cursor, "value=lea", "value=max", 1)).status, "a cursor of another list")
	})

	t.Run("AreTextAndNothingElse", func(t *testing.T) {
		t.Parallel()
		hostile := w.tenant("hostile")
		const text = `<script>alert(1)</script><img src=x onerror=alert(2)>"'`
		record := w.remember(hostile, text, text)
		b := w.browser()
		b.signIn(hostile.key.Reveal())
		for _, path := range []string{
			hostile.root + "/memories", scoped(hostile.root+"/memories", text), scoped(hostile.root+"/memories", text, "q", text),
			hostile.root + "/memories/" + record, scoped(hostile.root+"/erase", text),
		} {
			page := b.get(path)
			require.Equal(t, http.StatusOK, page.status, path)
			require.Contains(t, page.body, "&lt;script&gt;alert(1)", path)
			require.NotContains(t, page.body, "<script>alert", path)
			require.NotContains(t, page.body, "<img src=x", path)
			require.NotRegexp(t, `href="javascript:`, page.body)
		}
	})

	t.Run("AreThereForWhoMayReadThem", func(t *testing.T) {
		t.Parallel()
		workspace, err := w.owner.Workspace(t.Context(), "own")
		require.NoError(t, err)
		b := w.browser()
		b.signIn(w.keyOf(workspace, access.OperationsRead, access.CreditsRead).key.Reveal())
		for _, path := range []string{"/memories", scoped("/memories", "lea"), "/memories/" + tea, scoped("/erase", "lea")} {
			page := b.get(own.root + path)
			require.Equal(t, http.StatusForbidden, page.status, path)
			require.NotContains(t, page.body, "green tea")
		}
		require.NotContains(t, b.get(own.root+"/events").body, `href="`+own.root+`/memories"`)
	})

	t.Run("OfOthersAreNotThere", func(t *testing.T) {
		t.Parallel()
		other := w.tenant("other-tenant")
		theirs := w.remember(other, "lea", "a secret of theirs")
		for _, path := range []string{other.root + "/memories", other.root + "/memories/" + theirs, own.root + "/memories/" + theirs, scoped(other.root+"/erase", "lea")} {
			page := b.get(path)
			require.Equal(t, http.StatusNotFound, page.status, path)
			require.NotContains(t, page.body, "secret of theirs")
		}
		for _, path := range []string{"/memories", scoped("/memories", "lea"), scoped("/memories", "lea", "q", "their secret")} {
			require.NotContains(t, b.get(own.root+path).body, "secret of theirs", path)
		}
		require.Equal(t, http.StatusNotFound, b.post(other.root+"/erase", "by", "user", "value", "lea", "confirm", "lea",
			"key", "6a0e9c3a-0000-4000-8000-000000000000").status)
		require.Equal(t, 1, w.records(other))
	})
}

func TestErase(t *testing.T) {
	t.Parallel()

	t.Run("SaysWhatItRemovesAndWantsItTyped", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		own := w.tenant("own")
		w.remember(own, "lea", "Lea drinks green tea")
		w.remember(own, "lea", "The boat is called Aurora")
		w.remember(own, "max", "Max plays chess")
		event := w.event(own, "k") // of lea, with the canary for its input
		b := w.browser()
		b.signIn(own.key.Reveal())
		require.Contains(t, b.get(scoped(own.root+"/memories", "lea")).body, "by=user&amp;value=lea\">Erase")
		page := b.get(scoped(own.root+"/erase", "lea"))
		require.Contains(t, page.body, "<dd>2, with their history")
		require.Contains(t, page.body, "<dd>1 that have not ended")
		require.NotContains(t, page.body, "canary")
		require.NotContains(t, page.body, "green tea")
		require.Equal(t, http.StatusBadRequest, b.get(own.root+"/erase").status, "an erase of everything")

		key := b.keyOfForm(scoped(own.root+"/erase", "lea"))
		for _, typed := range []string{"", "Lea", "max"} {
			got := b.post(own.root+"/erase", "by", "user", "value", "lea", "key", key, "confirm", typed)
			require.Equal(t, http.StatusBadRequest, got.status, typed)
			require.Contains(t, got.body, "Nothing has been erased")
			require.Contains(t, got.body, key, "the form stays the same")
		}
		require.Equal(t, http.StatusBadRequest, b.post(own.root+"/erase", "by", "user", "value", "lea", "confirm", "lea", "key", "x").status)
		require.Equal(t, http.StatusBadRequest, b.post(own.root+"/erase", "by", "", "value", "", "confirm", "", "key", key).status)
		require.Equal(t, 3, w.records(own))

		got := b.post(own.root+"/erase", "by", "user", "value", "lea", "key", key, "confirm", " lea ")
		require.Equal(t, http.StatusSeeOther, got.status, got.body)
		erased := got.header.Get("Location")
		require.Contains(t, erased, own.root+"/events/evt_")
		require.Equal(t, http.StatusOK, b.get(erased).status)
		require.Equal(t, 1, w.records(own))
		status, _ := w.status(event)
		require.Equal(t, "failed", status, "what had not stored anything is cancelled")
		acts, err := w.owner.Acts(t.Context(), operator.ActQuery{Workspace: own.id, Act: operator.Erase, Limit: 9})
		require.NoError(t, err)
		require.Len(t, acts.Acts, 1)
		require.Equal(t, "key:"+own.key.ID(), acts.Acts[0].Actor)

		w.remember(own, "lea", "Lea is back")
		require.Equal(t, erased, b.post(own.root+"/erase", "by", "user", "value", "lea", "key", key, "confirm", "lea").header.Get("Location"))
		require.Equal(t, 2, w.records(own), "the same form is the same erase")
	})

	t.Run("IsForWhoMay", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		own := w.tenant("own")
		w.remember(own, "lea", "Lea drinks green tea")
		workspace, err := w.owner.Workspace(t.Context(), "own")
		require.NoError(t, err)
		b := w.browser()
		b.signIn(w.keyOf(workspace, access.ForApplications()...).key.Reveal())
		require.NotContains(t, b.get(scoped(own.root+"/memories", "lea")).body, "/erase")
		require.Equal(t, http.StatusForbidden, b.get(scoped(own.root+"/erase", "lea")).status)
		form := []string{"by", "user", "value", "lea", "confirm", "lea", "key", "6a0e9c3a-0000-4000-8000-000000000000"}
		require.Equal(t, http.StatusForbidden, b.post(own.root+"/erase", form...).status)
		full := w.browser()
		full.signIn(own.key.Reveal())
		require.Equal(t, http.StatusForbidden, full.with("Sec-Fetch-Site", "cross-site").post(own.root+"/erase", form...).status)
		require.Equal(t, http.StatusForbidden, full.send(http.MethodPost, own.root+"/erase",
			url.Values{"by": {"user"}, "value": {"lea"}, "confirm": {"lea"}, "key": {"6a0e9c3a-0000-4000-8000-000000000000"}}).status)
		require.Equal(t, 1, w.records(own))

		alone := w.browser() // may erase and see nothing
		alone.cookie = alone.send(http.MethodPost, "/console/sign-in", url.Values{"secret": {w.keyOf(workspace, access.Admin).key.Reveal()}}).cookie
		page := alone.get(scoped(own.root+"/erase", "lea"))
		require.Equal(t, http.StatusOK, page.status)
		require.NotContains(t, page.body, "green tea")
		got := alone.post(own.root+"/erase", form...)
		require.Equal(t, http.StatusOK, got.status)
		require.Contains(t, got.body, "1 records are removed")
		require.Zero(t, w.records(own))
	})
}
