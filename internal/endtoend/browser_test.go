package endtoend

import (
	"context"
	_ "embed"
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

// browserTime bounds a whole journey: it has many steps, and the machine is shared.
const browserTime = 4 * time.Minute

// browser is a person at a page of the system's console, with an eye on what the page asks for and what goes wrong in it.
type browser struct {
	t    *testing.T
	ctx  context.Context //nolint:containedctx // chromedp's tab is a context
	s    *system
	seen watcher
}

// newBrowser starts a headless Chromium that lives as long as the test.
func newBrowser(t *testing.T, s *system) *browser {
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
	ctx, cancel := context.WithTimeout(t.Context(), browserTime)
	t.Cleanup(cancel)
	ctx, stop := chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(stop)
	ctx, closeTab := chromedp.NewContext(ctx)
	t.Cleanup(closeTab)
	b := &browser{t: t, ctx: ctx, s: s}
	if err := chromedp.Listen(ctx, b.seen.note); err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
	return b
}

// watcher notes what a page asks for and what goes wrong in it: exceptions, errors and warnings, what its policy refuses.
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

// judge fails the test for what went wrong, and for every request to another host.
func (b *browser) judge() {
	b.t.Helper()
	b.seen.mu.Lock()
	defer b.seen.mu.Unlock()
	for _, broken := range b.seen.broken {
		b.t.Errorf("the browser says %s", broken)
	}
	host := strings.TrimPrefix(b.s.api, "http://")
	for _, asked := range b.seen.asked {
		if u, err := url.Parse(asked); err != nil || u.Host != host && u.Scheme != "data" { // the icons of Chromium's own fields
			b.t.Errorf("the page asks for %s", asked)
		}
	}
	if len(b.seen.asked) < 5 {
		b.t.Errorf("asked only for %q", b.seen.asked)
	}
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.seen.mu.Lock()
		defer b.seen.mu.Unlock()
		b.t.Fatalf("%v\nlast asked %q\nbroken %q", err, b.seen.asked[max(0, len(b.seen.asked)-5):], b.seen.broken)
	}
}

// open goes to a path of the console and waits until its main part is there.
func (b *browser) open(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.s.api+path), chromedp.WaitReady(chromedp.CSS(`main`)))
}

// fill types into a field, in place of what is there.
func (b *browser) fill(css, text string) {
	b.t.Helper()
	b.do(chromedp.WaitVisible(chromedp.CSS(css)))
	value[string](b, "document.querySelector(`"+css+"`).value = ''")
	b.do(chromedp.SendKeys(chromedp.CSS(css), text))
}

// press clicks, and waits until what it leads to is there.
func (b *browser) press(css, then string) {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.CSS(css)), chromedp.WaitVisible(chromedp.CSS(then)))
}

// follow is press for what may be renewed at the same moment: it clicks what is there then.
func (b *browser) follow(css, then string) {
	b.t.Helper()
	value[bool](b, "document.querySelector(`"+css+"`).click() || true")
	b.do(chromedp.WaitVisible(chromedp.CSS(then)))
}

// value is that of an expression in the page.
func value[T any](b *browser, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// text is what a person reads in a part of the page, with its line breaks.
func (b *browser) text(css string) string {
	b.t.Helper()
	return value[string](b, `(document.querySelector(`+"`"+css+"`"+`) || {innerText: ""}).innerText`)
}

// holds waits until an expression of the page is true.
func (b *browser) holds(expression string) {
	b.t.Helper()
	b.s.until(expression, func() bool {
		v, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](expression)) // a page that changes meanwhile answers an error
		return err == nil && v
	})
}

// reads waits until a part of the page shows the words.
func (b *browser) reads(css, words string) {
	b.t.Helper()
	b.s.until(css+" reads "+words, func() bool {
		said, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`(document.querySelector(`+"`"+css+"`"+`) || {innerText: ""}).innerText`))
		return err == nil && strings.Contains(said, words)
	})
}

//go:embed testdata/look.js
var lookScript string

// look checks the page as it is, in both themes and at two widths of a phone: all text can be told from what is behind it
// (WCAG AA), nothing is wider than the window, each field has a label, each heading and landmark is there. It leaves a
// picture of each in the directory that HOLDFAST_TEST_SCREENSHOTS names, if it is set.
func (b *browser) look(name string) {
	b.t.Helper()
	for _, width := range []int64{1280, 390, 360} {
		b.do(chromedp.EmulateViewport(width, 900))
		for _, theme := range []string{"light", "dark"} {
			_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
			})
			if err != nil {
				b.t.Fatal(err)
			}
			for _, wrong := range value[[]string](b, lookScript) {
				b.t.Errorf("%s, %s, %d px: %s", name, theme, width, wrong)
			}
			if dir := os.Getenv("HOLDFAST_TEST_SCREENSHOTS"); dir != "" && width != 360 {
				b.picture(filepath.Join(dir, strings.Join([]string{"console", name, theme, map[int64]string{1280: "desk", 390: "phone"}[width]}, "-")+".png"))
			}
		}
	}
	b.do(chromedp.ResetViewport())
}

func (b *browser) picture(file string) {
	b.t.Helper()
	shot, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(file, shot, 0o600)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}
