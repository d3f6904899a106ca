package endtoend

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/testkit"
)

// TestConsoleJourney is a person who tries it out: signs in, writes in the playground, watches it succeed, searches, and
// erases all of it again; then looks after a webhook, and at the settings.
func TestConsoleJourney(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t), "HOLDFAST_WEBHOOK_ALLOW_HTTP=true", "HOLDFAST_WEBHOOK_ALLOW_NETWORKS=127.0.0.0/8")
	s.startAPI()
	s.startWorker()
	b := newBrowser(t, s)
	root := "/console/w/ws_" + s.ws.String()
	b.open("/console")
	b.signIn(s.key, root+"/now")
	b.writes(root)
	b.looksAfterAWebhook(root)
	b.setsThePolicy(root)
	b.suspends(root)
	b.judge()
}

// writes goes from the first message to the last one erased.
func (b *browser) writes(root string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent("g"), chromedp.KeyEvent("p"), chromedp.WaitVisible(chromedp.CSS("#text")))
	b.look("playground")
	b.fill("#user", "lea")
	b.fill("#text", "FACT: lea lives in Oslo")
	b.press("form.stack button.main", ".timeline")
	b.reads("#live .status", "succeeded")
	b.reads(".timeline", "Settled")
	b.reads("#live", "lea lives in Oslo")
	if typed := value[string](b, "document.querySelector('#text').value"); typed != "" {
		b.t.Errorf("the next message begins with %q", typed)
	}
	b.fill("#q", "Where does lea live?\r")
	b.reads("ol.records", "lea lives in Oslo")
	b.look("playground-found")
	b.press(`a[href*="/erase?"]`, "#confirm")
	b.fill("#confirm", "lea")
	b.do(chromedp.Click(chromedp.CSS("button.danger")))
	b.reads("#live", "scope erase")
	b.reads("#live .status", "succeeded")
	b.open(root + "/playground?user=lea&q=Oslo")
	b.reads("main", "Nothing is found.")
}

// looksAfterAWebhook finds what its receiver refuses, sends it again, disables it and gives it another secret.
func (b *browser) looksAfterAWebhook(root string) {
	b.t.Helper()
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	b.t.Cleanup(receiver.Close)
	made := b.s.do("POST", "/v1/webhooks", "", map[string]any{"name": "crm", "url": receiver.URL + "/in", "event_types": []string{"event.failed"}})
	if made.status != http.StatusCreated {
		b.t.Fatalf("%d %s", made.status, made.body)
	}
	b.open(root + "/webhooks")
	b.reads("tbody", "enabled")
	b.look("webhooks")
	b.press("td a", "#deliveries")
	b.press(`form[action$="/test"] button`, `[role="status"].notice`)
	b.reads("#live tbody", "503")
	b.reads("#live tbody", "retrying")
	b.look("webhook")
	b.follow(`form[action*="/deliveries/"] button`, `[role="status"].notice`)
	b.reads("main", "The delivery is made again")
	b.press(`a[href$="/replay"]`, "#since")
	b.look("webhook-replay")
	b.do(chromedp.Click(chromedp.CSS("input[name=failed]")))
	b.press("form.stack button.main", `[role="status"].notice`)
	b.reads("main", "made again.")
	b.do(chromedp.Click(chromedp.CSS("form.stack a.button")), chromedp.WaitVisible(chromedp.CSS("#deliveries")))
	b.press(`form[action$="/active"] button`, `[role="status"].notice`)
	b.reads("#live", "somebody has disabled it")
	b.press(`a[href$="/rotate"]`, "button.danger")
	b.press("button.danger", "#secret")
	if secret := value[string](b, "document.querySelector('#secret').value"); !strings.HasPrefix(secret, "whsec_") {
		b.t.Errorf("the secret is %q", secret)
	}
	b.look("webhook-secret")
}

func (b *browser) setsThePolicy(root string) {
	b.t.Helper()
	b.open(root + "/settings")
	b.fill("#instructions", "Write facts in German.")
	b.fill(`input[name="name"]`, "work")
	b.fill(`textarea[name="description"]`, "jobs and colleagues")
	b.press("form.stack button.main", `[role="status"].notice`)
	if kept := value[string](b, "document.querySelector('#instructions').value"); kept != "Write facts in German." {
		b.t.Errorf("the instructions are %q", kept)
	}
	b.look("settings")
}

// suspends is what an operator does in the settings.
func (b *browser) suspends(root string) {
	b.t.Helper()
	db, err := postgres.Open(b.t.Context(), postgres.Config{URL: b.s.url})
	if err != nil {
		b.t.Fatal(err)
	}
	defer db.Close()
	token, err := db.CreateOperator(b.t.Context(), "ann")
	if err != nil {
		b.t.Fatal(err)
	}
	b.press(`form.who button`, "#secret")
	b.signIn(token.Reveal(), "/console/now")
	b.open(root + "/settings")
	b.fill("#max_pending", "1000")
	b.press(`form[action$="/limits"] button`, `[role="status"].notice`)
	b.look("settings-operator")
	b.press(`a[href$="/state/suspend"]`, "button.danger")
	b.look("settings-state")
	b.press("button.danger", `a[href$="/state/resume"]`)
	b.reads("main", "suspended")
}
