package docs_test

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience bounds what a browser does on a busy machine.
const patience = 90 * time.Second

// browser starts a headless Chromium that lives as long as the test.
func browser(t *testing.T) context.Context {
	t.Helper()
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			program = found
			break
		}
	}
	if program == "" {
		t.Fatal("no Chromium on PATH: run .ci/setup test")
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(program), chromedp.WindowSize(1280, 900))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium's sandbox refuses to run as root
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	ctx, stop := chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(stop)
	ctx, closeTab := chromedp.NewContext(ctx)
	t.Cleanup(closeTab)
	return ctx
}

// watcher notes what a page asks for and what goes wrong in it.
type watcher struct {
	mu     sync.Mutex
	asked  []string
	broken []string
}

func (w *watcher) note(event any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		w.asked = append(w.asked, e.Request.URL)
	case *runtime.EventExceptionThrown:
		w.broken = append(w.broken, "exception: "+e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			said := string(e.Type)
			for _, argument := range e.Args {
				said += " " + string(argument.Value) + argument.Description
			}
			w.broken = append(w.broken, said)
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			w.broken = append(w.broken, string(e.Entry.Level)+": "+e.Entry.Text+" "+e.Entry.URL)
		}
	}
}

// TestBrowser reads the reference as a person does, in both themes.
func TestBrowser(t *testing.T) {
	t.Parallel()
	address := setup(t)
	ctx := browser(t)
	var seen watcher
	if err := chromedp.Listen(ctx, seen.note); err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
	do := func(steps ...chromedp.Action[chromedp.Void]) {
		t.Helper()
		if err := chromedp.Do(ctx, steps...); err != nil {
			seen.mu.Lock()
			defer seen.mu.Unlock()
			t.Fatalf("%v\nasked %q\nbroken %q", err, seen.asked, seen.broken)
		}
	}
	const operation = chromedp.CSS(`.opblock-post .opblock-summary-path[data-path="/v1/memories"]`)
	theme(t, ctx, "light")
	do(chromedp.Navigate(address+"/docs"), chromedp.WaitVisible(operation))
	title, heading := read(t, ctx, chromedp.Title()), read(t, ctx, chromedp.Text(chromedp.CSS(`.swagger-ui .info .title`)))
	if title != "Holdfast API reference" || !strings.Contains(heading, "Holdfast") {
		t.Errorf("title %q, heading %q", title, heading)
	}
	do(chromedp.Click(operation), chromedp.WaitVisible(chromedp.CSS(`.opblock.is-open .responses-table`)))
	opened := read(t, ctx, chromedp.Text(chromedp.CSS(`.opblock.is-open`)))
	for _, word := range []string{"Idempotency-Key", "202", "messages"} {
		if !strings.Contains(opened, word) {
			t.Errorf("the operation lacks %q: %s", word, opened)
		}
	}
	const paint = `getComputedStyle(document.body).backgroundColor`
	light := read(t, ctx, chromedp.Evaluate[string](paint))
	screenshot(t, ctx, "light")
	theme(t, ctx, "dark")
	do(chromedp.WaitVisible(chromedp.CSS(`html.dark-mode #reference`)))
	if dark := read(t, ctx, chromedp.Evaluate[string](paint)); dark == light {
		t.Errorf("both themes are %s", light)
	}
	screenshot(t, ctx, "dark")
	seen.judge(t, strings.TrimPrefix(address, "http://"))
}

// judge fails the test for what went wrong, and for every request to another host.
func (w *watcher) judge(t *testing.T, host string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.broken) > 0 {
		t.Errorf("the console says %q", w.broken)
	}
	for _, asked := range w.asked {
		if u, err := url.Parse(asked); err != nil || u.Scheme != "data" && u.Host != host {
			t.Errorf("the page asks for %s", asked)
		}
	}
	if len(w.asked) < 5 {
		t.Errorf("asked only for %q", w.asked)
	}
}

func read[T any](t *testing.T, ctx context.Context, action chromedp.Action[T]) T { //nolint:revive // the test comes first
	t.Helper()
	value, err := chromedp.Run(ctx, action)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// theme makes the browser prefer a theme.
func theme(t *testing.T, ctx context.Context, name string) { //nolint:revive // the test comes first
	t.Helper()
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// screenshot leaves a picture in the directory that HOLDFAST_TEST_SCREENSHOTS names, if it is set.
func screenshot(t *testing.T, ctx context.Context, name string) { //nolint:revive // the test comes first
	t.Helper()
	dir := os.Getenv("HOLDFAST_TEST_SCREENSHOTS")
	if dir == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(dir, "docs-"+name+".png"), read(t, ctx, chromedp.CaptureScreenshot()), 0o600); err != nil {
		t.Fatal(err)
	}
}
