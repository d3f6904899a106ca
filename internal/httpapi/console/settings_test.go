package console_test

import (
	"html"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/settings"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/operator"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/write"
)

func (w *world) settings(db *postgres.DB) settings.Deps {
	w.t.Helper()
	policies, err := write.NewPolicies(db)
	require.NoError(w.t, err)
	return settings.Deps{Policies: policies, Workspaces: db, Service: settings.Service{
		MaxPending: 100_000, RateLimit: 600_000, Prices: credit.DefaultPrices(), FailedInput: 7 * 24 * time.Hour, Keys: 30 * 24 * time.Hour, Acts: 400 * 24 * time.Hour,
	}}
}

func (w *world) policy(of tenant) command.ExtractionPolicy {
	w.t.Helper()
	kept, err := w.owner.Policy(w.t.Context(), of.id)
	require.NoError(w.t, err)
	return command.ReadExtractionPolicy(kept)
}

// send posts a form with members that come more than once.
func (b *browser) sendForm(path string, form url.Values) reply {
	form.Set("csrf", b.csrf)
	return b.send(http.MethodPost, path, form)
}

func TestSettings(t *testing.T) {
	t.Parallel()
	w := setup(t)
	token, err := w.owner.CreateOperator(t.Context(), "ann")
	require.NoError(t, err)

	t.Run("ShowWhatHoldsForTheWorkspace", func(t *testing.T) {
		t.Parallel()
		own := w.tenant("shown")
		_, err := w.owner.LimitWorkspace(t.Context(), "shown", operator.Limits{MaxPending: new(1234)})
		require.NoError(t, err)
		b := w.browser()
		b.signIn(own.key.Reveal())
		page := b.get(own.root + "/settings")
		for _, words := range []string{"active", "1,234", "600,000 a minute", "no limit", "2 credits", "1 credit<", "7 days", "30 days at least", "400 days"} {
			require.Contains(t, page.body, words)
		}
		require.NotContains(t, page.body, "/settings/state/", "keys have no say in it")
		require.NotContains(t, page.body, "/settings/limits")
		_, err = w.owner.PauseWorkspace(t.Context(), "shown", true)
		require.NoError(t, err)
		require.Contains(t, b.get(own.root+"/settings").body, "paused")
		_, err = w.owner.SuspendWorkspace(t.Context(), "shown", true)
		require.NoError(t, err)
		require.Contains(t, b.get(own.root+"/settings").body, "suspended")
		require.Equal(t, http.StatusForbidden, b.post(own.root+"/settings/policy", "instructions", "x").status, "nothing is changed of what is suspended")
	})

	t.Run("ThePolicyIsKeptAsTheAPIKeepsIt", func(t *testing.T) {
		t.Parallel()
		own := w.tenant("policy")
		b := w.browser()
		b.signIn(own.key.Reveal())
		got := b.sendForm(own.root+"/settings/policy", url.Values{
			"instructions": {hostile + "\r\nin German"}, "name": {" work ", hostile, "", " "}, "description": {"jobs\r\nand so on", "", "", ""},
		})
		require.Equal(t, http.StatusSeeOther, got.status, got.body)
		want := command.ExtractionPolicy{
			Instructions: hostile + "\nin German", Categories: []memory.Category{{Name: "work", Description: "jobs\nand so on"}, {Name: hostile}},
		}
		require.Equal(t, want, w.policy(own))
		page := b.get(got.header.Get("Location"))
		require.Contains(t, page.body, "The policy is saved.")
		require.Contains(t, page.body, `value="work"`)
		require.Contains(t, page.body, `value="`+html.EscapeString(hostile)+`"`)
		require.Contains(t, page.body, "in German</textarea>")
		require.NotContains(t, page.body, "<script>alert")
		require.NotContains(t, page.body, "<img src=x")

		for name, form := range map[string]url.Values{
			"twice":    {"instructions": {"changed"}, "name": {"Work", "work"}, "description": {"", ""}},
			"nameless": {"instructions": {"changed"}, "name": {""}, "description": {"described"}},
		} {
			got = b.sendForm(own.root+"/settings/policy", form)
			require.Equal(t, http.StatusBadRequest, got.status, name)
			require.Contains(t, got.body, "/categories/", name)
			require.Contains(t, got.body, "changed</textarea>", "what was typed is there still: %s", name)
		}
		require.Equal(t, http.StatusBadRequest, b.sendForm(own.root+"/settings/policy", url.Values{"name": {"a"}}).status)
		require.Equal(t, want, w.policy(own))
		require.Equal(t, http.StatusSeeOther, b.post(own.root+"/settings/policy").status)
		require.True(t, w.policy(own).Empty())
	})

	t.Run("AreChangedByWhoMay", func(t *testing.T) {
		t.Parallel()
		own, other := w.tenant("who"), w.tenant("other-who")
		made, err := w.owner.Workspace(t.Context(), "who")
		require.NoError(t, err)
		_, err = w.sql.Exec(t.Context(), `UPDATE workspaces SET extraction = '{"instructions": "keep this"}' WHERE id = $1`, own.id)
		require.NoError(t, err)
		blind, reader, admin := w.browser(), w.browser(), w.browser()
		blind.signIn(w.keyOf(made, access.OperationsRead).key.Reveal())
		reader.signIn(w.keyOf(made, access.MemoryRead, access.OperationsRead).key.Reveal())
		admin.signIn(own.key.Reveal())
		require.NotContains(t, blind.get(own.root+"/now").body, "/settings")
		require.Equal(t, http.StatusForbidden, blind.get(own.root+"/settings").status)
		page := reader.get(own.root + "/settings")
		require.Contains(t, page.body, "keep this")
		require.NotContains(t, page.body, "<textarea")
		require.Equal(t, http.StatusForbidden, reader.post(own.root+"/settings/policy", "instructions", "x").status)
		require.Equal(t, http.StatusForbidden, admin.send(http.MethodPost, own.root+"/settings/policy", url.Values{"instructions": {"x"}}).status)
		require.Equal(t, http.StatusForbidden, admin.with("Sec-Fetch-Site", "cross-site").post(own.root+"/settings/policy", "instructions", "x").status)
		require.Equal(t, http.StatusNotFound, admin.get(other.root+"/settings").status)
		require.Equal(t, http.StatusNotFound, admin.post(other.root+"/settings/policy", "instructions", "x").status)
		require.Equal(t, "keep this", w.policy(own).Instructions)
		require.True(t, w.policy(other).Empty())
		for _, path := range []string{"/settings/limits", "/settings/state/suspend", "/settings/state/pause"} {
			require.Equal(t, http.StatusForbidden, admin.post(own.root+path, "max_pending", "1").status, "a key is no operator: %s", path)
		}
		require.Equal(t, http.StatusForbidden, admin.get(own.root+"/settings/state/suspend").status)
		after, err := w.owner.Workspace(t.Context(), "who")
		require.NoError(t, err)
		require.Equal(t, "active", after.Status())
		require.Zero(t, after.MaxPending)
	})

	t.Run("OperatorsSetLimitsAndState", func(t *testing.T) {
		t.Parallel()
		own := w.tenant("operated-on")
		b := w.browser()
		b.signIn(token.Reveal())
		b.get(own.root + "/settings")
		look := func() operator.Workspace {
			found, err := w.owner.Workspace(t.Context(), "operated-on")
			require.NoError(t, err)
			return found
		}
		require.Equal(t, http.StatusSeeOther, b.post(own.root+"/settings/limits", "max_pending", "10", "rate_limit", " 20 ", "lease_cap", "30").status)
		require.Equal(t, []int{10, 20, 30}, []int{look().MaxPending, look().RateLimit, look().LeaseCap})
		for _, wrong := range []string{"-1", "many", "2147483648", hostile} {
			got := b.post(own.root+"/settings/limits", "max_pending", wrong)
			require.Equal(t, http.StatusBadRequest, got.status, wrong)
			require.Contains(t, got.body, "/max_pending: 0 to 2147483647")
			require.Contains(t, got.body, `value="`+html.EscapeString(wrong)+`"`)
			require.NotContains(t, got.body, "<script>alert")
		}
		require.Equal(t, 10, look().MaxPending)
		require.Equal(t, http.StatusSeeOther, b.post(own.root+"/settings/limits", "rate_limit", "5").status)
		require.Equal(t, []int{0, 5, 0}, []int{look().MaxPending, look().RateLimit, look().LeaseCap})

		for _, step := range []struct{ act, then string }{{"pause", "paused"}, {"unpause", "active"}, {"suspend", "suspended"}, {"resume", "active"}} {
			path := own.root + "/settings/state/" + step.act
			require.Equal(t, http.StatusOK, b.get(path).status)
			require.Equal(t, http.StatusForbidden, b.send(http.MethodPost, path, url.Values{}).status)
			require.Equal(t, http.StatusSeeOther, b.post(path).status)
			require.Equal(t, step.then, look().Status())
		}
		require.Equal(t, http.StatusNotFound, b.get(own.root+"/settings/state/delete").status)
		require.Equal(t, http.StatusNotFound, b.post(own.root+"/settings/state/delete").status)
		acts, err := w.owner.Acts(t.Context(), operator.ActQuery{Workspace: own.id, Act: operator.SuspendWorkspace, Limit: 9})
		require.NoError(t, err)
		require.Len(t, acts.Acts, 1)
		require.Equal(t, "operator:ann", acts.Acts[0].Actor)
	})
}
