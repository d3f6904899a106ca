package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/endpoint"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/webhooks"
	"github.com/holdfast-memory/holdfast/internal/operator"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// anyURL lets every URL be one: whether it may be called is tested where that is decided.
type anyURL struct{}

func (anyURL) Check(string) error { return nil }

func (w *world) webhooks(db *postgres.DB) webhooks.Deps {
	w.t.Helper()
	endpoints, err := write.NewEndpoints(db, db, anyURL{})
	require.NoError(w.t, err)
	reader, err := recall.NewEndpoints(db)
	require.NoError(w.t, err)
	return webhooks.Deps{Reader: reader, Changer: endpoints, Replayer: endpoints}
}

// hook makes a webhook and answers its id and its secret.
func (w *world) hook(of tenant, name string) (id uuid.UUID, secret string) {
	w.t.Helper()
	endpoints, err := write.NewEndpoints(w.owner, w.owner, anyURL{})
	require.NoError(w.t, err)
	address := "https://hooks.example.com/" + hostile
	made, kept, err := endpoints.Create(w.t.Context(), of.caller, endpoint.Change{Name: &name, URL: &address, Types: new([]endpoint.Type{endpoint.Failed})})
	require.NoError(w.t, err)
	return made.ID, kept.Reveal()
}

// sent makes a delivery that has failed, and answers its message.
func (w *world) sent(of tenant, hook uuid.UUID) (message string) {
	w.t.Helper()
	made, err := w.owner.TestDelivery(w.t.Context(), of.id, hook)
	require.NoError(w.t, err)
	_, err = w.sql.Exec(w.t.Context(), `
WITH t AS (
  UPDATE tasks SET status = 'failed', head = false, error_class = 'receiver_refused', error_code = 'DELIVERY_FAILED', claims = 7, completed_at = clock_timestamp()
   WHERE id = $1
)
UPDATE webhook_deliveries SET last_status = 503, last_error = 'REFUSED', last_at = clock_timestamp() WHERE task_id = $1`, made.TaskID)
	require.NoError(w.t, err)
	return endpoint.MessageID(made.Message)
}

// again is how many deliveries of the webhook have not ended.
func (w *world) again(hook uuid.UUID) int {
	w.t.Helper()
	return w.count(`SELECT count(*) FROM webhook_deliveries d JOIN tasks t ON t.id = d.task_id WHERE d.webhook_id = $1 AND t.status = 'pending'`, hook)
}

func (w *world) active(hook uuid.UUID) bool {
	w.t.Helper()
	return w.count(`SELECT count(*) FROM webhooks WHERE id = $1 AND active`, hook) == 1
}

func TestWebhooks(t *testing.T) {
	t.Parallel()
	w := setup(t)

	t.Run("ShowTheirStateAndDeliveriesAndNoSecret", func(t *testing.T) {
		t.Parallel()
		own := w.tenant("states")
		hook, secret := w.hook(own, hostile)
		message := w.sent(own, hook)
		b := w.browser()
		b.signIn(own.key.Reveal())
		list, page := b.get(own.root+"/webhooks"), b.get(own.root+"/webhooks/"+endpoint.PublicID(hook))
		for _, got := range []reply{list, page, b.get(own.root + "/webhooks/" + endpoint.PublicID(hook) + "/rotate")} {
			require.Equal(t, http.StatusOK, got.status, got.body)
			require.NotContains(t, got.body, "<script>alert")
			require.NotContains(t, got.body, "<img src=x")
			require.NotContains(t, got.body, secret)
			require.NotContains(t, got.body, "whsec_")
		}
		require.Contains(t, list.body, "enabled")
		for _, words := range []string{message, "failed", "503", "refused", `data-name="attempts">7<`, "event.failed", `hx-trigger="every 3s"`} {
			require.Contains(t, page.body, words)
		}
		for _, state := range []struct{ sql, words string }{
			{`UPDATE webhooks SET failing_since = now() WHERE id = $1`, "failing"},
			{`UPDATE webhooks SET active = false, disabled_reason = 'gone' WHERE id = $1`, "the receiver answered 410"},
			{`UPDATE webhooks SET active = false, disabled_reason = 'failing' WHERE id = $1`, "no delivery has succeeded for 5 days"},
			{`UPDATE webhooks SET active = false, disabled_reason = 'secret_lost', secret = NULL WHERE id = $1`, "rotate the secret"},
		} {
			_, err := w.sql.Exec(t.Context(), state.sql, hook)
			require.NoError(t, err)
			require.Contains(t, b.get(own.root+"/webhooks").body, state.words)
		}
	})

	t.Run("AreEnabledAndDisabled", func(t *testing.T) {
		t.Parallel()
		own := w.tenant("switch")
		hook, _ := w.hook(own, "h")
		b := w.browser()
		b.signIn(own.key.Reveal())
		path := own.root + "/webhooks/" + endpoint.PublicID(hook)
		got := b.post(path+"/active", "active", "false")
		require.Equal(t, http.StatusSeeOther, got.status, got.body)
		require.False(t, w.active(hook))
		page := b.get(got.header.Get("Location"))
		require.Contains(t, page.body, "The webhook is disabled")
		require.Contains(t, page.body, "somebody has disabled it")
		require.Equal(t, http.StatusBadRequest, b.post(path+"/active", "active", "").status)
		require.False(t, w.active(hook))
		require.Equal(t, http.StatusSeeOther, b.post(path+"/active", "active", "true").status)
		require.True(t, w.active(hook))
	})

	t.Run("AreReplayedOneByOneAndByTime", func(t *testing.T) {
		t.Parallel()
		own := w.tenant("replays")
		hook, _ := w.hook(own, "h")
		second, _ := w.hook(own, "second")
		one, _, elsewhere := w.sent(own, hook), w.sent(own, hook), w.sent(own, second)
		b := w.browser()
		b.signIn(own.key.Reveal())
		path := own.root + "/webhooks/" + endpoint.PublicID(hook)
		require.Equal(t, http.StatusNotFound, b.post(path+"/deliveries/"+elsewhere+"/replay").status)
		require.Equal(t, http.StatusNotFound, b.post(path+"/deliveries/msg_x/replay").status)
		require.Zero(t, w.again(hook)+w.again(second))
		got := b.post(path + "/deliveries/" + one + "/replay")
		require.Equal(t, http.StatusSeeOther, got.status, got.body)
		require.Equal(t, 1, w.again(hook), "the other one isn't sent again")

		require.Equal(t, http.StatusOK, b.get(path+"/replay").status)
		for _, form := range [][]string{{}, {"since", "yesterday"}, {"since", "2027-01-02T10:00", "until", "2027-01-02T10:00"}, {"since", "0001-01-01T00:00"}} {
			got := b.post(path+"/replay", form...)
			require.Equal(t, http.StatusBadRequest, got.status, form)
			require.Contains(t, got.body, `role="alert"`)
		}
		got = b.post(path+"/replay", "since", "2020-01-01T00:00", "until", "2020-01-02T00:00")
		require.Contains(t, b.get(got.header.Get("Location")).body, "0 made again.")
		require.Equal(t, 1, w.again(hook))
		got = b.post(path+"/replay", "since", "2020-01-01T00:00", "failed", "on")
		require.Equal(t, http.StatusSeeOther, got.status, got.body)
		page := b.get(got.header.Get("Location"))
		require.Contains(t, page.body, "1 made again. That is all of them.")
		require.Equal(t, 2, w.again(hook))
		require.Zero(t, w.again(second))
		require.Equal(t, http.StatusBadRequest, b.post(path+"/replay", "failed", "on", "cursor", "x").status)
		require.Equal(t, http.StatusSeeOther, b.post(path+"/test").status)
		require.Equal(t, 3, w.again(hook))
	})

	t.Run("AReplayGoesOnBehindItsLastPart", func(t *testing.T) {
		t.Parallel()
		own := w.tenant("parts")
		hook, _ := w.hook(own, "h")
		w.sent(own, hook)
		_, err := w.sql.Exec(t.Context(), `
INSERT INTO webhook_deliveries (id, workspace_id, webhook_id, task_id, type, body, created_at)
SELECT gen_random_uuid(), workspace_id, webhook_id, gen_random_uuid(), type, body, created_at - n * interval '1 second'
  FROM webhook_deliveries, generate_series(1, 500) n WHERE webhook_id = $1`, hook)
		require.NoError(t, err)
		b := w.browser()
		b.signIn(own.key.Reveal())
		path := own.root + "/webhooks/" + endpoint.PublicID(hook)
		got := b.post(path+"/replay", "since", "2020-01-01T00:00")
		page := b.get(got.header.Get("Location"))
		require.Contains(t, page.body, "500 made again. There are more.")
		cursor := regexp.MustCompile(`name="cursor" value="([^"]*)"`).FindStringSubmatch(page.body)[1]
		require.Equal(t, http.StatusBadRequest, b.post(path+"/replay", "since", "2020-01-02T00:00", "cursor", cursor).status, "the place is of another range")
		got = b.post(path+"/replay", "since", "2020-01-01T00:00", "cursor", cursor)
		require.Contains(t, b.get(got.header.Get("Location")).body, "1 made again. That is all of them.")
		require.Equal(t, 501, w.again(hook))
	})

	t.Run("ASecretIsShownOnceByItsRotation", func(t *testing.T) {
		t.Parallel()
		own := w.tenant("rotation")
		hook, old := w.hook(own, "h")
		b := w.browser()
		b.signIn(own.key.Reveal())
		path := own.root + "/webhooks/" + endpoint.PublicID(hook)
		got := b.post(path + "/rotate")
		require.Equal(t, http.StatusOK, got.status, got.body)
		require.Equal(t, "no-store", got.header.Get("Cache-Control"))
		secret := regexp.MustCompile(`whsec_[^"]+`).FindString(got.body)
		require.NotEmpty(t, secret)
		require.NotContains(t, got.body, old)
		for _, page := range []string{"", "/rotate", "/replay"} {
			require.NotContains(t, b.get(path+page).body, "whsec_")
		}
		acts, err := w.owner.Acts(t.Context(), operator.ActQuery{Workspace: own.id, Act: operator.RotateWebhook, Limit: 9})
		require.NoError(t, err)
		require.Len(t, acts.Acts, 1)
		require.True(t, strings.HasPrefix(acts.Acts[0].Actor, "key:"))
	})

	t.Run("AreForWhoMayAdministerTheWorkspace", func(t *testing.T) {
		t.Parallel()
		own, other := w.tenant("admins"), w.tenant("other-admins")
		hook, _ := w.hook(own, "h")
		theirs, _ := w.hook(other, "their-hook")
		message, their := w.sent(own, hook), w.sent(other, theirs)
		made, err := w.owner.Workspace(t.Context(), "admins")
		require.NoError(t, err)
		clerk, full := w.browser(), w.browser()
		clerk.signIn(w.keyOf(made, access.ForApplications()...).key.Reveal())
		full.signIn(own.key.Reveal())
		path, foreign := own.root+"/webhooks/"+endpoint.PublicID(hook), own.root+"/webhooks/"+endpoint.PublicID(theirs)
		require.NotContains(t, clerk.get(own.root+"/now").body, "/webhooks")
		require.NotContains(t, full.get(own.root+"/webhooks").body, "their-hook")
		for _, page := range []string{"", "/rotate", "/replay"} {
			require.Equal(t, http.StatusForbidden, clerk.get(path+page).status, page)
			require.Equal(t, http.StatusNotFound, full.get(foreign+page).status, page)
			require.Equal(t, http.StatusNotFound, full.get(other.root+"/webhooks/"+endpoint.PublicID(theirs)+page).status, page)
		}
		for _, act := range []string{"/active", "/test", "/rotate", "/replay", "/deliveries/" + message + "/replay"} {
			require.Equal(t, http.StatusForbidden, clerk.post(path+act, "active", "false", "failed", "on").status, act)
			require.Equal(t, http.StatusForbidden, full.send(http.MethodPost, path+act, url.Values{"active": {"false"}, "failed": {"on"}}).status, act)
			require.Equal(t, http.StatusForbidden, full.with("Sec-Fetch-Site", "cross-site").post(path+act, "active", "false", "failed", "on").status, act)
			require.Equal(t, http.StatusNotFound, full.post(foreign+act, "active", "false", "failed", "on").status, act)
		}
		require.Equal(t, http.StatusNotFound, full.post(path+"/deliveries/"+their+"/replay").status)
		require.True(t, w.active(hook) && w.active(theirs))
		require.Zero(t, w.again(hook)+w.again(theirs))
	})
}
