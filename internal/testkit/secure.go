package testkit

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-memory/holdfast/internal/credential"
	"github.com/holdfast-memory/holdfast/internal/localdev"
)

// SecureNATS is a server that asks for TLS and nkeys, set up by package credential as an operator does it.
type SecureNATS struct {
	*localdev.NATS
	Setup credential.Setup
}

// NewSecureNATS is such a server for one test, without any stream, on 127.0.0.1. Change changes what it is set up with;
// it may be nil.
func NewSecureNATS(t testing.TB, change func(*credential.Setup)) *SecureNATS {
	t.Helper()
	dir, err := os.MkdirTemp("", dirPrefix)
	if err != nil {
		t.Fatalf("make directory: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &SecureNATS{Setup: credential.Setup{
		Dir: filepath.Join(dir, "made"), Servers: [][]string{{"localhost", "127.0.0.1"}}, StoreDir: filepath.Join(dir, "store"),
	}}
	if change != nil {
		change(&s.Setup)
	}
	s.NATS = startNATS(t, localdev.NATSConfig{StoreDir: s.Setup.StoreDir, ConfigFile: s.write(t)})
	return s
}

// Renew sets up again with what Setup says now and restarts the server on its port with it.
func (s *SecureNATS) Renew(t testing.TB) {
	t.Helper()
	s.write(t)
	s.NATS = RestartNATS(t, s.NATS, false)
}

func (s *SecureNATS) write(t testing.TB) (config string) {
	t.Helper()
	dirs, err := s.Setup.Write()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dirs[0], "nats.conf")
}

// CA is the file of the authority's certificate.
func (s *SecureNATS) CA() string { return filepath.Join(s.Setup.Dir, "ca.crt") }

// Seed is the file of a user's seed.
func (s *SecureNATS) Seed(user string) string {
	return filepath.Join(s.Setup.Dir, "users", user+".seed")
}

// Certificate are the files of a user's client certificate and its key.
func (s *SecureNATS) Certificate(user string) (certificate, key string) {
	base := filepath.Join(s.Setup.Dir, "users", user)
	return base + ".crt", base + ".key"
}

// Env is what a process of that user needs to reach it.
func (s *SecureNATS) Env(user string) []string {
	return []string{"HOLDFAST_NATS_URL=" + s.URL(), "HOLDFAST_NATS_CA_FILE=" + s.CA(), "HOLDFAST_NATS_NKEY_FILE=" + s.Seed(user)}
}

// As is a plain connection of a user, whose refusals go to refused. It ends with the test.
func (s *SecureNATS) As(t testing.TB, user, inbox string, refused func(error)) *nats.Conn {
	t.Helper()
	nkey, err := nats.NkeyOptionFromSeed(s.Seed(user))
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(s.URL(), nkey, nats.RootCAs(s.CA()), nats.CustomInboxPrefix(inbox),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused(err) }))
	if err != nil {
		t.Fatalf("connect to nats as %s: %v", user, err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// JetStreamAs is As for looking at streams and breaking them.
func (s *SecureNATS) JetStreamAs(t testing.TB, user, inbox string) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(s.As(t, user, inbox, func(error) {}))
	if err != nil {
		t.Fatalf("open jetstream: %v", err)
	}
	return js
}
