package testkit

import (
	"context"
	"os"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-memory/holdfast/internal/localdev"
)

// NewNATS is a NATS server for one test, inside this process, without any stream. It ends with the test.
func NewNATS(t testing.TB) *localdev.NATS {
	t.Helper()
	// Not t.TempDir: that fails the test when a file of the store is written late.
	dir, err := os.MkdirTemp("", dirPrefix)
	if err != nil {
		t.Fatalf("make nats store: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return startNATS(t, localdev.NATSConfig{StoreDir: dir})
}

// RestartNATS stops a server of NewNATS, deletes its store if wipe is set, and starts another on the same port, which it
// returns.
func RestartNATS(t testing.TB, n *localdev.NATS, wipe bool) *localdev.NATS {
	t.Helper()
	StopNATS(t, n)
	if wipe {
		if err := os.RemoveAll(n.StoreDir()); err != nil {
			t.Fatalf("wipe nats store: %v", err)
		}
	}
	return startNATS(t, localdev.NATSConfig{StoreDir: n.StoreDir(), Port: n.Port(), ConfigFile: n.ConfigFile()})
}

// StopNATS stops a server of NewNATS; RestartNATS starts it again.
func StopNATS(t testing.TB, n *localdev.NATS) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := n.Stop(ctx); err != nil {
		t.Fatal(err)
	}
}

// JetStream is a plain client of a server of NewNATS, for looking at its streams and for breaking them.
func JetStream(t testing.TB, n *localdev.NATS) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(n.URL())
	if err != nil {
		t.Fatalf("connect to nats: %v", err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatalf("open jetstream: %v", err)
	}
	return js
}

func startNATS(t testing.TB, cfg localdev.NATSConfig) *localdev.NATS {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	n, err := localdev.StartNATS(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		if err := n.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return n
}
