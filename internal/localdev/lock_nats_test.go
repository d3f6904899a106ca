package localdev_test

import (
	"errors"
	"os"
	"strconv"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/localdev"
)

func TestLockDir(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	release, err := localdev.LockDir(dir)
	require.NoError(t, err)

	_, err = localdev.LockDir(dir)
	require.ErrorIs(t, err, localdev.ErrLocked)
	require.ErrorContains(t, err, strconv.Itoa(os.Getpid()))

	require.NoError(t, release())
	require.NoError(t, release())
	again, err := localdev.LockDir(dir)
	require.NoError(t, err)
	require.NoError(t, again())
}

func TestNATS(t *testing.T) {
	t.Parallel()

	t.Run("KeepsItsStoreOverARestartOnItsPort", func(t *testing.T) {
		t.Parallel()
		ctx := bounded(t)
		n, err := localdev.StartNATS(ctx, localdev.NATSConfig{StoreDir: t.TempDir()})
		require.NoError(t, err)
		t.Cleanup(func() { _ = n.Stop(bounded(t)) })
		publishOne(t, n.URL())
		var again *localdev.NATS
		for range 10 { // between the two somebody else may get the port
			require.NoError(t, n.Stop(ctx))
			require.NoError(t, n.Stop(ctx))
			again, err = localdev.StartNATS(ctx, localdev.NATSConfig{StoreDir: n.StoreDir(), Port: n.Port()})
			if !errors.Is(err, localdev.ErrPortTaken) {
				break
			}
			n, err = localdev.StartNATS(ctx, localdev.NATSConfig{StoreDir: n.StoreDir()})
			require.NoError(t, err)
		}
		require.NoError(t, err)
		t.Cleanup(func() { _ = again.Stop(bounded(t)) })
		require.Equal(t, n.URL(), again.URL())
		require.Equal(t, uint64(2), publishOne(t, again.URL()))
	})

	t.Run("RefusesATakenPort", func(t *testing.T) {
		t.Parallel()
		ctx := bounded(t)
		n, err := localdev.StartNATS(ctx, localdev.NATSConfig{StoreDir: t.TempDir()})
		require.NoError(t, err)
		t.Cleanup(func() { _ = n.Stop(bounded(t)) })
		_, err = localdev.StartNATS(ctx, localdev.NATSConfig{StoreDir: t.TempDir(), Port: n.Port()})
		require.ErrorContains(t, err, "taken")
	})
}

// publishOne stores a message and returns how many the stream has seen.
func publishOne(t *testing.T, url string) uint64 {
	t.Helper()
	nc, err := nats.Connect(url)
	require.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	_, err = js.CreateOrUpdateStream(bounded(t), jetstream.StreamConfig{Name: "KEPT", Subjects: []string{"kept"}})
	require.NoError(t, err)
	ack, err := js.Publish(bounded(t), "kept", nil)
	require.NoError(t, err)
	return ack.Sequence
}
