package wakeup_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/wakeup"
)

// bound is the 250 ms of a publish and what a busy machine adds to it.
const bound = 2 * time.Second

func TestPublish(t *testing.T) {
	t.Parallel()

	t.Run("EveryReasonWithinTheDuplicateWindowIsDelivered", func(t *testing.T) {
		t.Parallel()
		_, c := setup(t)
		con := consumer(t, c)
		h := hint(1)
		for seq := int64(1); seq <= 6; seq++ { // accept, retry, give-back, new head, manual retry, repair
			h.HintSeq = seq
			require.NoError(t, c.Publish(bounded(t), h))
			got := fetchUntil(t, con, wakeup.Interactive, 1) // consumed before the next is published
			require.Equal(t, []wakeup.Hint{h}, got)
		}
		require.Zero(t, c.Stats().Duplicates)
	})

	t.Run("TheSameIDIsSwallowedAndCounted", func(t *testing.T) {
		t.Parallel()
		_, c := setup(t)
		con := consumer(t, c)
		h := hint(1)
		require.NoError(t, c.Publish(bounded(t), h))
		fetchUntil(t, con, wakeup.Interactive, 1)
		require.NoError(t, c.Publish(bounded(t), h))
		require.Equal(t, wakeup.Stats{Published: 2, Duplicates: 1}, c.Stats())
		got, err := con.Fetch(bounded(t), wakeup.Interactive, 10)
		require.NoError(t, err)
		require.Empty(t, got)
	})

	t.Run("ClassesAreApartAndTraceIsCarried", func(t *testing.T) {
		t.Parallel()
		_, c := setup(t)
		con := consumer(t, c)
		quick, slow := hint(1), hint(1)
		slow.Class = wakeup.Bulk
		slow.Trace = map[string]string{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
		require.NoError(t, c.Publish(bounded(t), slow))
		require.NoError(t, c.Publish(bounded(t), quick))
		require.Equal(t, []wakeup.Hint{quick}, fetchUntil(t, con, wakeup.Interactive, 1))
		require.Equal(t, []wakeup.Hint{slow}, fetchUntil(t, con, wakeup.Bulk, 1))
	})

	t.Run("AFullStreamIsAnErrorAndNoWait", func(t *testing.T) {
		t.Parallel()
		n := testkit.NewNATS(t)
		_, err := testkit.JetStream(t, n).CreateStream(bounded(t), jetstream.StreamConfig{
			Name: "WAKE", Subjects: []string{"wake.interactive", "wake.bulk"}, Retention: jetstream.WorkQueuePolicy,
			Discard: jetstream.DiscardNew, MaxBytes: 2000,
		})
		require.NoError(t, err)
		c := connect(t, n.URL())
		ensure(t, c) // the operator's stream stays as it is
		for err = nil; err == nil; {
			began := time.Now()
			err = c.Publish(bounded(t), hint(1))
			require.Less(t, time.Since(began), bound)
		}
		require.ErrorContains(t, err, "maximum bytes")
		require.Equal(t, uint64(1), c.Stats().PublishFailed)
		require.Positive(t, c.Stats().Published)
	})

	t.Run("WithoutAStreamItFails", func(t *testing.T) {
		t.Parallel()
		c := connect(t, testkit.NewNATS(t).URL())
		began := time.Now()
		require.Error(t, c.Publish(bounded(t), hint(1)))
		require.Less(t, time.Since(began), bound)
	})

	t.Run("WithNATSDownItFailsAtOnce", func(t *testing.T) {
		t.Parallel()
		n, c := setup(t)
		testkit.StopNATS(t, n)
		began := time.Now()
		for range 20 { // once the client has noticed
			require.Error(t, c.Publish(bounded(t), hint(1)))
		}
		require.Less(t, time.Since(began), bound)
		require.ErrorIs(t, c.Publish(bounded(t), hint(1)), wakeup.ErrDisconnected)
		require.ErrorIs(t, c.Notify(bounded(t), uuid.New(), uuid.New()), wakeup.ErrDisconnected)
		require.ErrorIs(t, c.Healthy(), wakeup.ErrDisconnected)
	})

	t.Run("IsBoundedInABlackHole", func(t *testing.T) {
		t.Parallel()
		n := testkit.NewNATS(t)
		proxy := testkit.NewTCPProxy(t, n.URL())
		c := connect(t, proxy.URL())
		ensure(t, c)
		proxy.Blackhole(true)
		var wg sync.WaitGroup
		slowest := make([]time.Duration, 1000) // more than may be under way at once
		for i := range slowest {
			wg.Go(func() {
				began := time.Now()
				if err := c.Publish(context.Background(), hint(1)); err == nil {
					t.Error("published through a black hole")
				}
				slowest[i] = time.Since(began)
			})
		}
		wg.Wait()
		for _, took := range slowest {
			require.Less(t, took, bound)
		}
		require.Equal(t, uint64(len(slowest)), c.Stats().PublishFailed)
		proxy.Blackhole(false)
		publishUntilStored(t, c, hint(1))
	})

	t.Run("AHintThatNobodyCouldReadIsRefused", func(t *testing.T) {
		t.Parallel()
		_, c := setup(t)
		bad := hint(0)
		require.ErrorContains(t, c.Publish(bounded(t), bad), "malformed")
	})
}

func TestConnect(t *testing.T) {
	t.Parallel()

	t.Run("WithNATSOffFromTheStartAndThenOn", func(t *testing.T) {
		t.Parallel()
		n := testkit.NewNATS(t)
		testkit.StopNATS(t, n)
		c := connect(t, n.URL())
		require.ErrorIs(t, c.Healthy(), wakeup.ErrDisconnected)
		_, err := c.EnsureTopology(bounded(t))
		require.ErrorIs(t, err, wakeup.ErrDisconnected)
		woken, cancel, err := c.Subscribe(uuid.New(), uuid.New())
		require.NoError(t, err)
		defer cancel()
		made := watch(t, c, time.Minute) // only the connection's news can be in time

		testkit.RestartNATS(t, n, false)
		requireEvent(t, made, "the topology was not made")
		requireEvent(t, woken, "the waiter was not woken after the outage")
		h := hint(1)
		publishUntilStored(t, c, h)
		require.Equal(t, []wakeup.Hint{h}, fetchUntil(t, consumer(t, c), wakeup.Interactive, 1))
		require.NoError(t, c.Healthy())
	})

	t.Run("RefusesABadConfigurationWithoutQuotingIt", func(t *testing.T) {
		t.Parallel()
		for _, cfg := range []wakeup.Config{
			{}, {URL: "nats://u:hunter2@host:port"}, {URL: "nats://h", AckWait: time.Millisecond}, {URL: "nats://h", Replicas: 7},
		} {
			_, err := wakeup.Connect(bounded(t), cfg)
			require.Error(t, err)
			require.NotContains(t, fmt.Sprint(err), "hunter2")
		}
	})

	t.Run("StopMayBeCalledTwice", func(t *testing.T) {
		t.Parallel()
		n := testkit.NewNATS(t)
		c, err := wakeup.Connect(bounded(t), wakeup.Config{URL: n.URL(), Log: zerolog.Nop()})
		require.NoError(t, err)
		require.NoError(t, c.Stop(bounded(t)))
		require.NoError(t, c.Stop(bounded(t)))
		require.ErrorIs(t, c.Publish(bounded(t), hint(1)), wakeup.ErrDisconnected)
	})
}

func TestNotice(t *testing.T) {
	t.Parallel()

	t.Run("WakesEveryWaiterOfThatTaskInEveryProcessAndNobodyElse", func(t *testing.T) {
		t.Parallel()
		n, sender := setup(t)
		workspace, task := uuid.New(), uuid.New()
		one, two := connect(t, n.URL()), connect(t, n.URL())
		first, cancel1, err := one.Subscribe(workspace, task)
		require.NoError(t, err)
		defer cancel1()
		second, cancel2, err := one.Subscribe(workspace, task)
		require.NoError(t, err)
		defer cancel2()
		third, cancel3, err := two.Subscribe(workspace, task)
		require.NoError(t, err)
		defer cancel3()
		gone, cancelGone, err := one.Subscribe(workspace, task)
		require.NoError(t, err)
		cancelGone()
		cancelGone()
		all, cancelAll, err := two.Subscribe(workspace, uuid.Nil)
		require.NoError(t, err)
		defer cancelAll()
		elsewhere, cancelElsewhere, err := one.Subscribe(uuid.New(), uuid.Nil)
		require.NoError(t, err)
		defer cancelElsewhere()
		stranger, cancel4, err := one.Subscribe(uuid.New(), task)
		require.NoError(t, err)
		defer cancel4()

		tick := time.NewTicker(20 * time.Millisecond) // the subscription may reach the server after a first notice
		defer tick.Stop()
		for _, ch := range []<-chan struct{}{first, second, third, all} {
			for woken := false; !woken; {
				require.NoError(t, sender.Notify(bounded(t), workspace, task))
				select {
				case <-ch:
					woken = true
				case <-tick.C:
				case <-bounded(t).Done():
					require.Fail(t, "not woken")
				}
			}
		}
		require.Empty(t, stranger)
		require.Empty(t, elsewhere)
		require.Empty(t, gone)
	})
}
