package wakeup_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/wakeup"
)

func TestTopology(t *testing.T) {
	t.Parallel()

	t.Run("IsAsDefined", func(t *testing.T) {
		t.Parallel()
		n := testkit.NewNATS(t)
		c, err := wakeup.Connect(bounded(t), wakeup.Config{URL: n.URL(), AckWait: 42 * time.Second, Log: zerolog.Nop()})
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Stop(context.Background()) })
		ensure(t, c)
		js := testkit.JetStream(t, n)
		stream, err := js.Stream(bounded(t), "WAKE")
		require.NoError(t, err)
		cfg := stream.CachedInfo().Config
		require.Equal(t, []string{"wake.interactive", "wake.bulk"}, cfg.Subjects)
		require.Equal(t, jetstream.WorkQueuePolicy, cfg.Retention)
		require.Equal(t, jetstream.FileStorage, cfg.Storage)
		require.Equal(t, jetstream.DiscardNew, cfg.Discard)
		require.Equal(t, int64(256<<20), cfg.MaxBytes)
		require.Equal(t, time.Hour, cfg.MaxAge)
		require.Equal(t, 2*time.Minute, cfg.Duplicates)
		require.Equal(t, 1, cfg.Replicas)
		for _, class := range []string{wakeup.Interactive, wakeup.Bulk} {
			got := consumerInfo(t, js, class).Config
			require.Equal(t, class, got.Durable)
			require.Equal(t, "wake."+class, got.FilterSubject)
			require.Equal(t, jetstream.AckExplicitPolicy, got.AckPolicy)
			require.Equal(t, 42*time.Second, got.AckWait)
			require.Equal(t, 10, got.MaxDeliver)
			require.Equal(t, 10_000, got.MaxAckPending)
			require.Empty(t, got.BackOff)
		}
	})

	t.Run("IsNeverChanged", func(t *testing.T) {
		t.Parallel()
		n, _ := setup(t)
		js := testkit.JetStream(t, n)
		before := consumerInfo(t, js, wakeup.Bulk)
		other, err := wakeup.Connect(bounded(t), wakeup.Config{URL: n.URL(), AckWait: 5 * time.Second, Log: zerolog.Nop()})
		require.NoError(t, err)
		t.Cleanup(func() { _ = other.Stop(context.Background()) })
		ensure(t, other)
		after := consumerInfo(t, js, wakeup.Bulk)
		require.Equal(t, before.Config, after.Config)
		require.Equal(t, before.Created, after.Created)
	})

	t.Run("MayBeMadeByManyAtOnce", func(t *testing.T) {
		t.Parallel()
		n := testkit.NewNATS(t)
		var wg sync.WaitGroup
		for i := range 8 {
			c, err := wakeup.Connect(bounded(t), wakeup.Config{
				URL: n.URL(), AckWait: time.Duration(i+1) * time.Second, Log: zerolog.Nop(),
			})
			require.NoError(t, err)
			t.Cleanup(func() { _ = c.Stop(context.Background()) })
			wg.Go(func() {
				if _, err := c.EnsureTopology(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})

	t.Run("TellsWhenItWasMadeAnewByWhomever", func(t *testing.T) {
		t.Parallel()
		n := testkit.NewNATS(t)
		c, other := connect(t, n.URL()), connect(t, n.URL())
		require.True(t, ensure(t, c), "there was nothing")
		require.False(t, ensure(t, c))
		require.False(t, ensure(t, other), "it has never seen another one")
		js := testkit.JetStream(t, n)
		require.NoError(t, js.DeleteStream(bounded(t), "WAKE"))
		require.True(t, ensure(t, other))
		require.True(t, ensure(t, c), "the other one has made it anew")
		require.False(t, ensure(t, c))
		require.NoError(t, js.DeleteConsumer(bounded(t), "WAKE", wakeup.Bulk))
		require.True(t, ensure(t, c))
	})

	t.Run("PurgeRemovesHints", func(t *testing.T) {
		t.Parallel()
		n, c := setup(t)
		require.NoError(t, c.Publish(bounded(t), hint(1)))
		require.NoError(t, c.Purge(bounded(t)))
		require.Zero(t, streamMsgs(t, testkit.JetStream(t, n)))
	})
}

func TestWatch(t *testing.T) {
	t.Parallel()

	t.Run("ADeletedStreamComesBackAndTheConsumeLoopGoesOn", func(t *testing.T) {
		t.Parallel()
		n, c := setup(t)
		made := watch(t, c, 50*time.Millisecond)
		con := consumer(t, c)
		require.NoError(t, c.Publish(bounded(t), hint(1)))
		fetchUntil(t, con, wakeup.Interactive, 1)
		js := testkit.JetStream(t, n)

		require.NoError(t, js.DeleteStream(bounded(t), "WAKE"))
		requireEvent(t, made, "repair was not asked to run")
		h := hint(1)
		publishUntilStored(t, c, h)
		require.Equal(t, []wakeup.Hint{h}, fetchUntil(t, con, wakeup.Interactive, 1))

		require.NoError(t, js.DeleteConsumer(bounded(t), "WAKE", wakeup.Bulk))
		requireEvent(t, made, "repair was not asked to run")
		h.Class, h.HintSeq = wakeup.Bulk, 2
		publishUntilStored(t, c, h)
		require.Equal(t, []wakeup.Hint{h}, fetchUntil(t, con, wakeup.Bulk, 1))
	})

	t.Run("AWipedStoreComesBack", func(t *testing.T) {
		t.Parallel()
		n, c := setup(t)
		made := watch(t, c, time.Minute) // it is the reconnect that makes it look
		con := consumer(t, c)
		require.NoError(t, c.Publish(bounded(t), hint(1)))
		testkit.RestartNATS(t, n, true)
		requireEvent(t, made, "repair was not asked to run")
		h := hint(1)
		publishUntilStored(t, c, h)
		require.Equal(t, []wakeup.Hint{h}, fetchUntil(t, con, wakeup.Interactive, 1))
		require.NoError(t, c.Healthy())
		require.Positive(t, c.Stats().Reconnects)
	})

	t.Run("ARestartKeepsHintsAndAsksForNothing", func(t *testing.T) {
		t.Parallel()
		n, c := setup(t)
		made := watch(t, c, 50*time.Millisecond)
		con := consumer(t, c)
		h := hint(1)
		require.NoError(t, c.Publish(bounded(t), h))
		testkit.RestartNATS(t, n, false)
		require.Equal(t, []wakeup.Hint{h}, fetchUntil(t, con, wakeup.Interactive, 1))
		require.Empty(t, made)
	})
}

// watch runs the watchdog until the test ends; the channel gets a value each time that repair is asked to run.
func watch(t *testing.T, c *wakeup.Client, every time.Duration) <-chan struct{} {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	made, ended := make(chan struct{}, 100), make(chan struct{})
	go func() {
		defer close(ended)
		c.Watch(ctx, every, func(context.Context) { made <- struct{}{} })
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return made
}

// TestServerConfigs runs Holdfast's side against the example configurations, rights of the user included.
func TestServerConfigs(t *testing.T) {
	t.Setenv("NATS_NAME", "nats-1")
	t.Setenv("NATS_PASSWORD", "example")
	for _, name := range []string{"server-single.conf", "server-cluster.conf"} {
		t.Run(name, func(t *testing.T) {
			opts, err := server.ProcessConfigFile("../../nats/" + name)
			require.NoError(t, err)
			opts.Host, opts.Port, opts.StoreDir = "127.0.0.1", server.RANDOM_PORT, t.TempDir()
			opts.Cluster, opts.Routes = server.ClusterOpts{}, nil // one server stands for three
			opts.NoSigs, opts.NoLog = true, true
			srv, err := server.NewServer(opts)
			require.NoError(t, err)
			srv.Start()
			t.Cleanup(func() {
				srv.Shutdown()
				srv.WaitForShutdown()
			})
			require.True(t, srv.ReadyForConnections(10*time.Second))

			c := connect(t, "nats://holdfast:example@"+srv.Addr().String())
			made := watch(t, c, time.Minute)
			requireEvent(t, made, "the topology was not made")
			workspace, task := uuid.New(), uuid.New()
			woken, cancel, err := c.Subscribe(workspace, task)
			require.NoError(t, err)
			defer cancel()
			h := hint(1)
			require.NoError(t, c.Publish(bounded(t), h))
			require.Equal(t, []wakeup.Hint{h}, fetchUntil(t, consumer(t, c), wakeup.Interactive, 1))
			require.NoError(t, c.Notify(bounded(t), workspace, task))
			requireEvent(t, woken, "no notice came")
			require.NoError(t, c.Purge(bounded(t)))
			require.NoError(t, c.Healthy())
		})
	}
}
