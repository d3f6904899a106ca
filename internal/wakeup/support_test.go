package wakeup_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/localdev"
	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/wakeup"
)

// setup is a server with the topology on it and a client.
func setup(t *testing.T) (*localdev.NATS, *wakeup.Client) {
	t.Helper()
	n := testkit.NewNATS(t)
	c := connect(t, n.URL())
	ensure(t, c)
	return n, c
}

// ensure makes the topology and answers whether anything was missing.
func ensure(t *testing.T, c *wakeup.Client) bool {
	t.Helper()
	missing, err := c.EnsureTopology(bounded(t))
	require.NoError(t, err)
	return missing
}

func connect(t *testing.T, url string) *wakeup.Client {
	t.Helper()
	c, err := wakeup.Connect(bounded(t), wakeup.Config{URL: url, Name: "test", Log: zerolog.Nop()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Stop(context.Background()) })
	return c
}

func consumer(t *testing.T, c *wakeup.Client) *wakeup.Consumer {
	t.Helper()
	con, err := wakeup.NewConsumer(c, wakeup.ConsumerConfig{MaxWait: 300 * time.Millisecond})
	require.NoError(t, err)
	return con
}

func hint(seq int64) wakeup.Hint {
	return wakeup.Hint{TaskID: uuid.New(), WorkspaceID: uuid.New(), HintSeq: seq, Class: wakeup.Interactive}
}

// fetchUntil pulls, and acks, until as many hints have come, errors on the way included: that is what a worker's loop
// does.
func fetchUntil(t *testing.T, con *wakeup.Consumer, class string, want int) []wakeup.Hint {
	t.Helper()
	ctx := bounded(t)
	var got []wakeup.Hint
	for len(got) < want {
		require.NoError(t, ctx.Err(), "got %d hints of %d", len(got), want)
		deliveries, err := con.Fetch(ctx, class, 10)
		if err != nil {
			continue // it has paused by itself
		}
		for _, d := range deliveries {
			require.NoError(t, d.Ack())
			got = append(got, d.Hint)
		}
	}
	return got
}

// publishUntilStored publishes a hint as often as it takes, for a test whose server is on its way up.
func publishUntilStored(t *testing.T, c *wakeup.Client, h wakeup.Hint) {
	t.Helper()
	ctx := bounded(t)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for c.Publish(ctx, h) != nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
			require.Fail(t, "hint was never stored")
		}
	}
}

func requireEvent(t *testing.T, ch <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-ch:
	case <-bounded(t).Done():
		require.Fail(t, what)
	}
}

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second) // many servers on two cores
	t.Cleanup(cancel)
	return ctx
}
