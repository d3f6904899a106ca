package app

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// recorder notes what is done to a part, and whether the process was still ready then.
type recorder struct {
	name    string
	process *process
	notes   *notes
	broken  error
	stuck   bool
}

type notes struct {
	mu   sync.Mutex
	list []string
}

func (n *notes) add(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, text)
}

func (r *recorder) Start(context.Context) error {
	r.notes.add("start " + r.name)
	return r.broken
}

func (r *recorder) Stop(ctx context.Context) error {
	answer := httptest.NewRecorder()
	r.process.admin.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, "/readyz", nil))
	if answer.Code == http.StatusOK {
		r.notes.add("still ready")
	}
	r.notes.add("stop " + r.name)
	if r.stuck {
		<-ctx.Done()
		return errors.New(r.name + " did not stop")
	}
	return nil
}

func testProcess(t *testing.T) (*process, *notes) {
	t.Helper()
	s, _, err := parsed(t, "--database-url="+openURL(t), "--admin-listen=127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c, err := openCore(t.Context(), s, zerolog.Nop(), "test")
	if err != nil {
		t.Fatal(err)
	}
	p := newProcess(c)
	if err := p.openAdmin(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	return p, &notes{}
}

func openURL(t *testing.T) string {
	t.Helper()
	_, url := openTestDB(t)
	return url.Reveal()
}

func TestProcess(t *testing.T) {
	t.Parallel()

	t.Run("StopsInOrderWithReadinessOffFirst", func(t *testing.T) {
		t.Parallel()
		p, n := testProcess(t)
		for _, name := range []string{"api", "worker", "repair"} {
			p.add(name, &recorder{name: name, process: p, notes: n}, time.Second)
		}
		ctx, cancel := context.WithCancel(t.Context())
		err := p.run(ctx, func() error {
			cancel()
			return nil
		})
		want := []string{"start api", "start worker", "start repair", "stop api", "stop worker", "stop repair"}
		if err != nil || !slices.Equal(n.list, want) {
			t.Fatalf("got %v, %v", n.list, err)
		}
	})

	t.Run("PartThatBreaksEndsAllOfIt", func(t *testing.T) {
		t.Parallel()
		p, n := testProcess(t)
		p.add("api", &recorder{name: "api", process: p, notes: n}, time.Second)
		broken := errors.New("the listener broke")
		err := p.run(t.Context(), func() error {
			p.fail(broken)
			p.fail(errors.New("a later one"))
			return nil
		})
		if !errors.Is(err, broken) || !slices.Contains(n.list, "stop api") {
			t.Fatalf("got %v, %v", n.list, err)
		}
	})

	t.Run("PartThatDoesNotStartStopsTheOthers", func(t *testing.T) {
		t.Parallel()
		p, n := testProcess(t)
		broken := errors.New("no")
		p.add("api", &recorder{name: "api", process: p, notes: n}, time.Second)
		p.add("worker", &recorder{name: "worker", process: p, notes: n, broken: broken}, time.Second)
		err := p.run(t.Context(), func() error { return errors.New("it must not be called") })
		if !errors.Is(err, broken) || !slices.Contains(n.list, "stop api") {
			t.Fatalf("got %v, %v", n.list, err)
		}
	})

	t.Run("PartThatDoesNotStopIsNamedAndNotWaitedForTooLong", func(t *testing.T) {
		t.Parallel()
		p, n := testProcess(t)
		p.add("worker", &recorder{name: "worker", process: p, notes: n, stuck: true}, 50*time.Millisecond)
		p.add("repair", &recorder{name: "repair", process: p, notes: n}, time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		err := p.run(ctx, func() error {
			cancel()
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), "worker did not stop") || !slices.Contains(n.list, "stop repair") {
			t.Fatalf("got %v, %v", n.list, err)
		}
	})
}

func TestLoop(t *testing.T) {
	t.Parallel()
	began := make(chan struct{})
	l := &loop{run: func(ctx context.Context) {
		close(began)
		<-ctx.Done()
	}}
	if err := l.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-began
	if l.Start(t.Context()) == nil {
		t.Fatal("a loop starts once")
	}
	if err := errors.Join(l.Stop(t.Context()), l.Stop(t.Context())); err != nil {
		t.Fatal(err)
	}
	early := &loop{run: func(context.Context) {}}
	if err := early.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if early.Start(t.Context()) == nil {
		t.Fatal("a loop that was stopped before its start doesn't start")
	}
}

func TestListen(t *testing.T) {
	t.Parallel()
	taken, err := listenFrom(t.Context(), 23_000)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	next, err := listenFrom(t.Context(), 23_000)
	if err != nil || next.Addr().String() == taken.Addr().String() {
		t.Fatalf("the next free port: %v", err)
	}
	defer next.Close()
	if _, err := listenOn(t.Context(), taken.Addr().String()); err == nil {
		t.Fatal("an address that is asked for is not exchanged for another one")
	}
}
