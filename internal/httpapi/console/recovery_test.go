package console_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/recovery"
	"github.com/holdfast-memory/holdfast/internal/operator"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/write"
)

func (w *world) recovery(db *postgres.DB, retrier *write.Retrier, canceller *write.Canceller, balances recovery.Balances) recovery.Deps {
	w.t.Helper()
	bulk, err := write.NewBulk(db, retrier, canceller, credit.DefaultPrices())
	require.NoError(w.t, err)
	return recovery.Deps{Bulk: bulk, Balances: balances}
}

var hiddenField = regexp.MustCompile(`<input type="hidden" name="([a-z_]+)" value="([^"]*)">`)

// formOf are the fields that a page's last form carries, to be sent as they are.
func formOf(page string) url.Values {
	form := url.Values{}
	for _, f := range hiddenField.FindAllStringSubmatch(page[strings.LastIndex(page, "<form"):], -1) {
		form.Set(f[1], html.UnescapeString(f[2]))
	}
	return form
}

// chosen is the address of a preview of what happened in the last hour.
func (of tenant) chosen(act string, more ...string) string {
	query := url.Values{"act": {act}, "since": {time.Now().UTC().Add(-time.Hour).Format("2006-01-02T15:04")}}
	for i := 0; i < len(more); i += 2 {
		query.Set(more[i], more[i+1])
	}
	return of.root + "/recovery?" + query.Encode()
}

func TestRecovery(t *testing.T) {
	t.Parallel()
	w := setup(t)
	token, err := w.owner.CreateOperator(t.Context(), "ann")
	require.NoError(t, err)
	signedIn := func() *browser {
		b := w.browser()
		b.signIn(token.Reveal())
		return b
	}
	// failed are so many failed events of a tenant.
	failed := func(of tenant, n int) []string {
		all := make([]string, n)
		for i := range all {
			all[i] = w.event(of, "k"+strconv.Itoa(i))
			w.fail(all[i])
		}
		return all
	}

	t.Run("IsForOperatorsAlone", func(t *testing.T) {
		t.Parallel()
		own := w.tenant("recovery-who")
		event := failed(own, 1)[0]
		b := w.browser()
		b.signIn(own.key.Reveal())
		require.NotContains(t, b.get(own.root+"/now").body, "/recovery")
		require.Equal(t, http.StatusNotFound, b.get(own.root+"/recovery").status)
		page := signedIn().get(own.chosen("retry"))
		require.Equal(t, http.StatusOK, page.status)
		form := formOf(page.body)
		form.Set("confirm", "recovery-who")
		require.Equal(t, http.StatusNotFound, b.sendForm(own.root+"/recovery", form).status)
		status, _ := w.status(event)
		require.Equal(t, "failed", status)
	})

	t.Run("RetriesWhatItsPreviewCountedAndTwiceNothingTwice", func(t *testing.T) {
		t.Parallel()
		own := w.tenant("recovery-retry")
		all := failed(own, 3)
		gone := all[2]
		_, err := w.sql.Exec(t.Context(), `UPDATE tasks SET command = NULL WHERE id = $1::uuid`, strings.TrimPrefix(gone, "evt_"))
		require.NoError(t, err)
		b := signedIn()
		empty := b.get(own.root + "/recovery")
		require.Contains(t, empty.body, `href="`+own.root+`/recovery" data-key="r" aria-current="page"`)
		require.NotContains(t, empty.body, `name="confirm"`, "nothing is done before a preview")
		page := b.get(own.chosen("retry", "code", "output_invalid"))
		for _, words := range []string{"Retry 2 events?", "output invalid", "<strong>4 credits</strong>", "1 more failed", "100 credits are available"} {
			require.Contains(t, page.body, words)
		}
		for path, count := range map[string]string{
			own.chosen("retry", "code", "provider_timeout"): "Retry 0 events?", own.chosen("retry", "user_id", "max"): "Retry 0 events?",
			own.chosen("retry", "user_id", "lea"): "Retry 2 events?", own.chosen("retry", "code", "OUTPUT_INVALID"): "Retry 2 events?",
		} {
			require.Contains(t, b.get(path).body, count, path)
		}
		late := w.event(own, "late")
		w.fail(late)
		form := formOf(page.body)

		require.Equal(t, http.StatusForbidden, b.send(http.MethodPost, own.root+"/recovery", url.Values{"confirm": {"recovery-retry"}}).status)
		require.Equal(t, http.StatusForbidden, b.with("Sec-Fetch-Site", "cross-site").sendForm(own.root+"/recovery", form).status)
		for _, word := range []string{"", "recovery", hostile} {
			form.Set("confirm", word)
			got := b.sendForm(own.root+"/recovery", form)
			require.Equal(t, http.StatusBadRequest, got.status, word)
			require.Contains(t, got.body, "That is not its name.")
			require.Equal(t, form.Get("bulk"), formOf(got.body).Get("bulk"), "it is the same bulk still")
		}
		for _, event := range append(all, late) {
			status, _ := w.status(event)
			require.Equal(t, "failed", status)
		}

		form.Set("confirm", "recovery-retry")
		got := b.sendForm(own.root+"/recovery", form)
		require.Equal(t, http.StatusOK, got.status, got.body)
		for _, words := range []string{"2 retried.", "That is all of them.", "INPUT_EXPIRED", "sent as a new request", "Look again at what is left"} {
			require.Contains(t, got.body, words)
		}
		again := b.sendForm(own.root+"/recovery", form)
		require.Equal(t, http.StatusOK, again.status)
		require.Contains(t, again.body, "0 retried")
		for event, want := range map[string]int{all[0]: 2, all[1]: 2, gone: 1, late: 1} {
			status, generation := w.status(event)
			require.Equal(t, want, generation, event)
			require.Equal(t, map[bool]string{true: "pending", false: "failed"}[want == 2], status)
		}
	})

	t.Run("CancelsAndGivesBackWhatIsHeld", func(t *testing.T) {
		t.Parallel()
		own, other := w.tenant("recovery-cancel"), w.tenant("recovery-other")
		event, theirs := w.event(own, "k"), w.event(other, "k")
		b := signedIn()
		page := b.get(own.chosen("cancel"))
		for _, words := range []string{"Cancel 1 event?", "not failed", "<strong>2 credits</strong> that are held for them are given back"} {
			require.Contains(t, page.body, words)
		}
		form := formOf(page.body)
		form.Set("confirm", "recovery-cancel")
		require.Equal(t, http.StatusBadRequest, b.sendForm(other.root+"/recovery", form).status, "the name is of another workspace")
		require.Contains(t, b.sendForm(own.root+"/recovery", form).body, "1 cancelled.")
		status, _ := w.status(event)
		require.Equal(t, "failed", status)
		status, _ = w.status(theirs)
		require.Equal(t, "pending", status)
		acts, err := w.owner.Acts(t.Context(), operator.ActQuery{Workspace: own.id, Limit: 20})
		require.NoError(t, err)
		require.Contains(t, acts.Acts[0].Actor, "operator:ann")
	})

	t.Run("GoesOnBehindItsLastPart", func(t *testing.T) {
		t.Parallel()
		own := w.tenant("recovery-parts")
		_, err := w.owner.Grant(t.Context(), own.id, "more", 1000)
		require.NoError(t, err)
		for i := range 101 { // one more than a part does
			w.event(own, "k"+strconv.Itoa(i))
		}
		b := signedIn()
		form := formOf(b.get(own.chosen("cancel")).body)
		form.Set("confirm", "recovery-parts")
		got := b.sendForm(own.root+"/recovery", form)
		require.Contains(t, got.body, " cancelled. There may be more.")
		next := formOf(got.body)
		require.NotEmpty(t, next.Get("cursor"))
		other := url.Values{}
		for name := range next {
			other.Set(name, next.Get(name))
		}
		other.Set("act", "retry")
		require.Equal(t, http.StatusBadRequest, b.sendForm(own.root+"/recovery", other).status, "the place is that of one choice")
		for rest := 101; next.Has("cursor") && rest > 0; rest-- { // a slow machine does less in a part
			got = b.sendForm(own.root+"/recovery", next)
			next = formOf(got.body)
		}
		require.Contains(t, got.body, " cancelled. 101 altogether. That is all of them.")
	})

	t.Run("RefusesWhatIsNoChoice", func(t *testing.T) {
		t.Parallel()
		own := w.tenant("recovery-refused")
		event := w.event(own, "k")
		w.fail(event)
		b := signedIn()
		for name, path := range map[string]string{
			"act": own.chosen(hostile), "code": own.chosen("retry", "code", hostile), "since": own.chosen("retry", "since", hostile),
			"no since": own.chosen("retry", "since", ""), "until": own.chosen("retry", "until", "2999-01-01T00:00"),
			"scope": own.chosen("retry", "user_id", "lea\x00"), "user": own.chosen("retry", "user_id", hostile),
		} {
			got := b.get(path)
			if name != "user" { // a user may be called so
				require.Equal(t, http.StatusBadRequest, got.status, name)
				require.Contains(t, got.body, `id="problem"`, name)
				require.NotContains(t, got.body, `name="confirm"`, name)
			}
			require.NotContains(t, got.body, "<script>alert", name)
			require.NotContains(t, got.body, "<img src=x", name)
		}
		form := formOf(b.get(own.chosen("retry")).body)
		form.Set("confirm", "recovery-refused")
		for _, wrong := range [][2]string{{"bulk", "no"}, {"until", ""}, {"code", "delivery_failed"}, {"user_id", "a\xff"}, {"cursor", "x"}} {
			bad := url.Values{}
			for name := range form {
				bad.Set(name, form.Get(name))
			}
			bad.Set(wrong[0], wrong[1])
			require.Equal(t, http.StatusBadRequest, b.sendForm(own.root+"/recovery", bad).status, wrong)
		}
		status, _ := w.status(event)
		require.Equal(t, "failed", status)
	})
}
