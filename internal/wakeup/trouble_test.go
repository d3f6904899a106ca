package wakeup

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

func TestTrouble(t *testing.T) {
	t.Parallel()

	t.Run("ReasonIsLoggedWhenItIsANewOne", func(t *testing.T) {
		t.Parallel()
		var log bytes.Buffer
		c := &Client{log: zerolog.New(&log), done: newNotices(), reconnected: make(chan struct{}, 1)}
		said := func() int { return strings.Count(log.String(), "nats can't be connected") }
		for range 3 {
			c.onError(fmt.Errorf("at 10.0.0.1: %w", nats.ErrAuthorization))
		}
		require.Equal(t, 1, said())
		require.ErrorIs(t, c.disconnected(), ErrDisconnected)
		require.NotContains(t, c.disconnected().Error()+log.String(), "10.0.0.1")
		for range 3 {
			c.onError(nats.ErrNkeysNotSupported)
		}
		require.Equal(t, 2, said())
		c.onConnect()
		require.Equal(t, ErrDisconnected, c.disconnected())
		c.onError(nats.ErrNkeysNotSupported)
		require.Equal(t, 3, said())
	})
}
