package wakeup_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/wakeup"
)

func TestFetch(t *testing.T) {
	t.Parallel()

	t.Run("TakesNoMoreThanAskedAndLeavesTheRest", func(t *testing.T) {
		t.Parallel()
		n, c := setup(t)
		for range 5 {
			require.NoError(t, c.Publish(bounded(t), hint(1)))
		}
		con := consumer(t, c)
		got, err := con.Fetch(bounded(t), wakeup.Interactive, 3)
		require.NoError(t, err)
		require.Len(t, got, 3)
		info := consumerInfo(t, testkit.JetStream(t, n), wakeup.Interactive)
		require.Equal(t, 3, info.NumAckPending)
		require.Equal(t, uint64(2), info.NumPending)
		waiting, err := c.Waiting(bounded(t), wakeup.Interactive)
		require.NoError(t, err)
		require.Equal(t, uint64(2), waiting, "three are out for work")
	})

	t.Run("LeavesNoPullBehindThatTakesHintsNobodyWaitsFor", func(t *testing.T) {
		t.Parallel()
		n, c := setup(t)
		con := consumer(t, c)
		got, err := con.Fetch(bounded(t), wakeup.Interactive, 10)
		require.NoError(t, err)
		require.Empty(t, got)
		for range 3 {
			ctx, cancel := context.WithCancel(bounded(t))
			go cancel()
			_, err = con.Fetch(ctx, wakeup.Interactive, 10)
			require.NoError(t, err)
		}
		require.NoError(t, c.Publish(bounded(t), hint(1)))
		require.Zero(t, consumerInfo(t, testkit.JetStream(t, n), wakeup.Interactive).NumAckPending)
		require.Len(t, fetchUntil(t, con, wakeup.Interactive, 1), 1)
	})

	t.Run("ReturnsAWaitedForHintAtOnce", func(t *testing.T) {
		t.Parallel()
		_, c := setup(t)
		con, err := wakeup.NewConsumer(c, wakeup.ConsumerConfig{MaxWait: time.Minute})
		require.NoError(t, err)
		got := make(chan []wakeup.Delivery, 1)
		go func() {
			deliveries, err := con.Fetch(context.Background(), wakeup.Bulk, 10)
			if err != nil {
				t.Error(err)
			}
			got <- deliveries
		}()
		h := hint(1)
		h.Class = wakeup.Bulk
		require.NoError(t, c.Publish(bounded(t), h))
		select {
		case deliveries := <-got:
			require.Len(t, deliveries, 1)
			require.Equal(t, h, deliveries[0].Hint)
			require.Equal(t, uint64(1), deliveries[0].NumDelivered)
		case <-bounded(t).Done():
			require.Fail(t, "the hint did not come")
		}
	})

	t.Run("AnswersDoWhatTheySay", func(t *testing.T) {
		t.Parallel()
		n, c := setup(t)
		con := consumer(t, c)
		js := testkit.JetStream(t, n)
		require.NoError(t, c.Publish(bounded(t), hint(1)))
		first := fetchOne(t, con)
		require.NoError(t, first.InProgress())
		require.NoError(t, first.Nak(10*time.Millisecond))
		second := fetchOne(t, con)
		require.Equal(t, first.Hint, second.Hint)
		require.Equal(t, uint64(2), second.NumDelivered)
		require.NoError(t, second.Ack())
		require.NoError(t, second.Ack())
		require.NoError(t, c.Publish(bounded(t), hint(1)))
		require.NoError(t, fetchOne(t, con).Term("test"))
		require.Eventually(t, func() bool { return streamMsgs(t, js) == 0 }, 10*time.Second, 10*time.Millisecond)
	})

	t.Run("AnUnansweredHintComesAgainAfterAckWait", func(t *testing.T) {
		t.Parallel()
		n := testkit.NewNATS(t)
		c, err := wakeup.Connect(bounded(t), wakeup.Config{URL: n.URL(), AckWait: time.Second, Log: zerolog.Nop()})
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Stop(context.Background()) })
		ensure(t, c)
		con := consumer(t, c)
		h := hint(1)
		require.NoError(t, c.Publish(bounded(t), h))
		require.Equal(t, uint64(1), fetchOne(t, con).NumDelivered)
		again := fetchOne(t, con)
		require.Equal(t, h, again.Hint)
		require.Equal(t, uint64(2), again.NumDelivered)
	})

	t.Run("WhatIsNoHintIsTerminatedAndCounted", func(t *testing.T) {
		t.Parallel()
		n, c := setup(t)
		js := testkit.JetStream(t, n)
		for _, body := range []string{"", "{}", "\x00\xff", `{"task":"x"}`} {
			_, err := js.Publish(bounded(t), "wake.interactive", []byte(body))
			require.NoError(t, err)
		}
		h := hint(1)
		require.NoError(t, c.Publish(bounded(t), h))
		require.Equal(t, []wakeup.Hint{h}, fetchUntil(t, consumer(t, c), wakeup.Interactive, 1))
		require.Equal(t, uint64(4), c.Stats().Malformed)
		require.Eventually(t, func() bool { return streamMsgs(t, js) == 0 }, 10*time.Second, 10*time.Millisecond)
	})

	t.Run("AnErrorTakesTimeSoThatALoopCantSpin", func(t *testing.T) {
		t.Parallel()
		c := connect(t, testkit.NewNATS(t).URL()) // no stream
		con := consumer(t, c)
		began := time.Now()
		for range 3 {
			_, err := con.Fetch(bounded(t), wakeup.Interactive, 1)
			require.Error(t, err)
		}
		require.GreaterOrEqual(t, time.Since(began), 700*time.Millisecond)
	})

	t.Run("EndsWithItsContext", func(t *testing.T) {
		t.Parallel()
		_, c := setup(t)
		con, err := wakeup.NewConsumer(c, wakeup.ConsumerConfig{MaxWait: time.Minute})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			got, err := con.Fetch(ctx, wakeup.Interactive, 1)
			if err != nil || len(got) != 0 {
				t.Errorf("got %d hints, %v", len(got), err)
			}
		}()
		cancel()
		requireEvent(t, ended, "fetch did not end")
	})

	t.Run("RefusesWhatItCantDo", func(t *testing.T) {
		t.Parallel()
		_, c := setup(t)
		_, err := wakeup.NewConsumer(c, wakeup.ConsumerConfig{Classes: []string{"urgent"}})
		require.ErrorContains(t, err, "urgent")
		con, err := wakeup.NewConsumer(c, wakeup.ConsumerConfig{Classes: []string{wakeup.Bulk}})
		require.NoError(t, err)
		_, err = con.Fetch(bounded(t), wakeup.Interactive, 1)
		require.Error(t, err)
		_, err = con.Fetch(bounded(t), wakeup.Bulk, 0)
		require.Error(t, err)
	})
}

func fetchOne(t *testing.T, con *wakeup.Consumer) wakeup.Delivery {
	t.Helper()
	ctx := bounded(t)
	for {
		got, err := con.Fetch(ctx, wakeup.Interactive, 1)
		require.NoError(t, err)
		require.NoError(t, ctx.Err(), "no hint came")
		if len(got) == 1 {
			return got[0]
		}
	}
}

func consumerInfo(t *testing.T, js jetstream.JetStream, name string) *jetstream.ConsumerInfo {
	t.Helper()
	con, err := js.Consumer(bounded(t), "WAKE", name)
	require.NoError(t, err)
	return con.CachedInfo()
}

func streamMsgs(t *testing.T, js jetstream.JetStream) uint64 {
	t.Helper()
	stream, err := js.Stream(bounded(t), "WAKE")
	require.NoError(t, err)
	return stream.CachedInfo().State.Msgs
}
