package endtoend

import (
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/testkit"
)

// TestConsolePages is an operator who looks for what is remembered of somebody, adds up the account, makes a key and revokes
// it, and erases somebody's memory by typing whose it is.
func TestConsolePages(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t))
	s.startAPI()
	s.startWorker()
	s.succeeded(s.add("oslo", conversation("lea", "FACT: lea lives in Oslo", "FACT: lea has a dog called Kim")))
	s.succeeded(s.add("markup", conversation("lea", "FACT: <img src=x onerror=alert(1)> is how pages break")))
	s.succeeded(s.add("tea", conversation("max", "FACT: max likes tea")))
	db, err := postgres.Open(t.Context(), postgres.Config{URL: s.url})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	token, err := db.CreateOperator(t.Context(), "ann")
	if err != nil {
		t.Fatal(err)
	}
	b := newBrowser(t, s)
	root := "/console/w/ws_" + s.ws.String()
	b.open("/console")
	b.signIn(token.Reveal(), "/console/now")

	b.open(root + "/events")
	b.do(chromedp.KeyEvent("g"), chromedp.KeyEvent("m"), chromedp.WaitVisible(chromedp.CSS(`a[href*="value=max"]`)))
	b.look("entities")
	b.press(`a[href*="value=lea"]`, `a[href*="/memories/mem_"]`)
	b.reads("tbody", "<img src=x onerror=alert(1)>")
	b.look("memories")
	b.open(root + "/memories?by=user&value=lea&q=" + url.QueryEscape("dog called Kim"))
	b.reads("tbody tr", "lea has a dog called Kim")
	b.reads("tbody tr", "#1 · ")
	b.look("search")
	b.press(`tbody tr a[href*="/memories/mem_"]`, ".timeline")
	b.reads(".timeline", "add, version 1")
	b.look("memory")

	b.do(chromedp.KeyEvent("g"), chromedp.KeyEvent("c"), chromedp.WaitVisible(chromedp.CSS("#journal")))
	b.look("credits")
	b.press(`a[href$="/credits/books"]`, ".notice")
	b.reads(".notice", "It does.")
	b.look("books")
	b.keysComeAndGo()
	b.recovers(root)

	b.open(root + "/erase?by=user&value=lea")
	b.reads(".facts", "3, with their history")
	b.look("erase")
	b.fill("#confirm", "lea")
	b.press("button.danger", "#life")
	event := strings.TrimPrefix(b.text("h1"), "evt_")
	if e := s.ended(event); e.Status != "SUCCEEDED" {
		t.Errorf("the erase: %+v", e)
	}
	b.open(root + "/memories")
	if text := b.text("main"); strings.Contains(text, "lea") || !strings.Contains(text, "max") {
		t.Errorf("after the erase: %s", text)
	}
	b.judge()
}

// keysComeAndGo makes a key and revokes it.
func (b *browser) keysComeAndGo() {
	b.t.Helper()
	b.do(chromedp.KeyEvent("g"), chromedp.KeyEvent("k"), chromedp.WaitVisible(chromedp.CSS(`a[href$="/keys/new"]`)))
	b.look("keys")
	b.press(`a[href$="/keys/new"]`, "#name")
	b.look("key-new")
	b.fill("#name", "bot")
	b.press("main button.main", "#made")
	b.look("key-made")
	if secret := value[string](b, `document.querySelector("#made").value`); !strings.HasPrefix(secret, "hfk_") {
		b.t.Error("there is no key on the page")
	}
	b.press(`main a[href$="/keys"]`, "tbody")
	b.reads("tbody", "bot")
	b.press(`tbody tr:last-child a[href$="/revoke"]`, "#confirm")
	b.look("key-revoke")
	b.fill("#confirm", "bot")
	b.press("button.danger", ".notice")
	b.reads("tbody tr:last-child", "revoked")
}

// recovers asks what a retry would come to, and has a provider left alone for a while.
func (b *browser) recovers(root string) {
	b.t.Helper()
	b.open(root + "/recovery")
	b.press("form.stack button.main", "#preview")
	b.reads("#preview", "Retry 0 events?")
	b.look("recovery")
	b.open("/console/providers")
	b.fill("#provider", "http:https://models.example/v1 <b>large</b>")
	b.fill("#reason", "too expensive now")
	b.press("button.danger", `[role="status"].notice`)
	b.reads("tbody", "by hand: too expensive now")
	b.look("providers")
	b.open("/console/now")
	b.reads("main", "Providers left alone")
	b.look("now-paused")
	b.open("/console/providers")
	b.press(`form[action$="/resume"] button`, `[role="status"].notice`)
	b.reads("main", "No provider is paused.")
}
