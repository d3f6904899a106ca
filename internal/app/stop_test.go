package app

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// lingering is an extractor whose calls end a second after they are cancelled.
type lingering struct{ calls chan struct{} }

func (l lingering) Extract(ctx context.Context, _ model.Request) (model.Extraction, error) {
	l.calls <- struct{}{}
	<-ctx.Done()
	<-time.After(time.Second) // what cannot be cancelled
	return model.Extraction{}, model.NewError(task.Shutdown, "cancelled", context.Canceled)
}
func (lingering) Provider() string            { return "lingering" }
func (lingering) Local() bool                 { return false }
func (lingering) Check(context.Context) error { return nil }

// TestWorkersStopTogether holds that no worker waits for another one, and that none takes what another one gives back.
func TestWorkersStopTogether(t *testing.T) {
	t.Parallel()
	pool := testkit.Postgres(t)
	s, _, err := parsed(t, "--database-url="+pool.Config().ConnString(), "--worker-slots=1", "--worker-poll=10ms")
	if err != nil {
		t.Fatal(err)
	}
	c, err := openCore(t.Context(), s, zerolog.Nop(), "test")
	if err != nil {
		t.Fatal(err)
	}
	extractor := lingering{make(chan struct{}, 100)}
	c.extractor = extractor
	accept(t, c, 3)
	p := newProcess(c)
	if err := p.addWorkers(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	var took time.Duration
	ctx, cancel := context.WithCancel(t.Context())
	err = p.run(ctx, func() error {
		for range 3 {
			<-extractor.calls
		}
		began := time.Now()
		err := p.parts[0].part.Stop(t.Context())
		took = time.Since(began)
		cancel()
		return err
	})
	if err != nil || took > 2500*time.Millisecond {
		t.Errorf("stopping three workers took %s: %v", took, err)
	}
	var given int
	row := pool.QueryRow(t.Context(), `SELECT count(*) FROM tasks WHERE status = 'pending' AND claims = 1 AND crashes = 0`)
	if err := row.Scan(&given); err != nil || given != 3 {
		t.Errorf("%d of 3 tasks were given back and left alone: %v", given, err)
	}
}

// accept accepts n inferred adds, each in a lane of its own.
func accept(t *testing.T, c *core, n int) {
	t.Helper()
	key, err := firstStart(t.Context(), c.db, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	caller, err := c.db.Authenticate(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	accepter, err := write.NewAccepter(c.db, c.wakeups, credit.DefaultPrices(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		user := strings.Repeat("u", i+1)
		k, err := command.ParseKey([]string{"key-" + user})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := accepter.Accept(t.Context(), caller, *k, command.Add{
			Scope: memory.Scope{UserID: user}, Infer: true, Ordered: true,
			Messages: []command.Message{{Role: "user", Content: "I like tea"}},
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRepairOnce holds what its exit code says: NATS is disposable, the database is not.
func TestRepairOnce(t *testing.T) {
	t.Parallel()
	once := func(t *testing.T, prepare func(*core)) (string, error) {
		t.Helper()
		s, _, err := parsed(t, "--database-url="+openURL(t), "--nats-url=nats://127.0.0.1:1")
		if err != nil {
			t.Fatal(err)
		}
		c, err := openCore(t.Context(), s, zerolog.Nop(), "test")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.close(context.Background()) })
		prepare(c)
		var out bytes.Buffer
		err = newProcess(c).repairOnce(t.Context(), true, &out)
		return out.String(), err
	}

	t.Run("WithoutNATSEndsWell", func(t *testing.T) {
		t.Parallel()
		out, err := once(t, func(*core) {})
		if err != nil || !strings.Contains(out, `{"pass":"topology","found":0,"fixed":0,"skipped":0,"failed":1}`) {
			t.Errorf("%s: %v", out, err)
		}
	})

	t.Run("WithoutADatabaseFails", func(t *testing.T) {
		t.Parallel()
		if out, err := once(t, func(c *core) { c.db.Close() }); err == nil {
			t.Error(out)
		}
	})
}
