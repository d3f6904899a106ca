package wakeup_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/credential"
	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/wakeup"
)

// TestLink is about a server and a process that don't take each other: why is said, nothing that is secret with it, and
// the process goes on without.
func TestLink(t *testing.T) {
	t.Parallel()

	stranger := func(t *testing.T) *testkit.SecureNATS { return testkit.NewSecureNATS(t, nil) }
	const refused = "TLS with the server failed; it may want another client certificate"
	const unknown = "the server's certificate is of no authority that this process trusts"
	for name, c := range map[string]struct {
		server func(*credential.Setup)
		client func(*testing.T, *testkit.SecureNATS, *wakeup.Config)
		reason string
	}{
		"NkeyThatTheServerDoesNotKnow": {
			client: func(t *testing.T, _ *testkit.SecureNATS, cfg *wakeup.Config) {
				cfg.Link.NkeyFile = stranger(t).Seed("api")
			},
			reason: "the server refuses this user",
		},
		"NoNkey": {
			client: func(_ *testing.T, _ *testkit.SecureNATS, cfg *wakeup.Config) { cfg.Link.NkeyFile = "" },
			reason: "the server refuses this user",
		},
		"AuthorityOfSomebodyElse": {
			client: func(t *testing.T, _ *testkit.SecureNATS, cfg *wakeup.Config) { cfg.Link.CAFile = stranger(t).CA() },
			reason: unknown,
		},
		"ServerThatWantsTLSAndClientThatDidNotAskForIt": {
			client: func(_ *testing.T, _ *testkit.SecureNATS, cfg *wakeup.Config) { cfg.Link.CAFile = "" },
			reason: unknown, // TLS it is, with the authorities of the system
		},
		"ExpiredCertificate": {
			server: func(s *credential.Setup) { s.Life = -time.Minute },
			reason: "the server's certificate has expired or is not valid yet",
		},
		"CertificateForAnotherName": {
			server: func(s *credential.Setup) { s.Servers = [][]string{{"other.example"}} },
			reason: "the server's certificate is for another name than the URL's",
		},
		"NoClientCertificateWhereOneIsWanted": {
			server: func(s *credential.Setup) { s.ClientCertificates = true },
			reason: refused,
		},
		"ClientCertificateOfSomebodyElse": {
			server: func(s *credential.Setup) { s.ClientCertificates = true },
			client: func(t *testing.T, _ *testkit.SecureNATS, cfg *wakeup.Config) {
				other := testkit.NewSecureNATS(t, func(s *credential.Setup) { s.ClientCertificates = true })
				cfg.Link.CertFile, cfg.Link.KeyFile = other.Certificate("api")
			},
			reason: refused,
		},
		"ServerWithoutTLS": {
			client: func(t *testing.T, _ *testkit.SecureNATS, cfg *wakeup.Config) {
				cfg.URL, cfg.Link.NkeyFile = testkit.NewNATS(t).URL(), ""
			},
			reason: "the server offers no TLS, and nothing is sent in plain text",
		},
		"ServerWithoutNkeys": {
			client: func(t *testing.T, _ *testkit.SecureNATS, cfg *wakeup.Config) { cfg.URL = testkit.NewNATS(t).URL() },
			reason: "the server takes no nkeys",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := testkit.NewSecureNATS(t, c.server)
			client, log := as(t, n, "api", func(cfg *wakeup.Config) {
				if c.client != nil {
					c.client(t, n, cfg)
				}
			})
			require.Equal(t, c.reason, reason(t, client))
			began := time.Now()
			require.ErrorIs(t, client.Publish(t.Context(), hint(1)), wakeup.ErrDisconnected)
			require.Less(t, time.Since(began), 30*time.Second)
			require.Contains(t, log.String(), c.reason)
			require.LessOrEqual(t, strings.Count(log.String(), c.reason), 1, "it is said once, not at each attempt")
			unspoken(t, log.String(), n)
		})
	}

	t.Run("ClientCertificateIsTaken", func(t *testing.T) {
		t.Parallel()
		n := testkit.NewSecureNATS(t, func(s *credential.Setup) { s.ClientCertificates = true })
		repair, _ := as(t, n, "repair", func(cfg *wakeup.Config) { cfg.Link.CertFile, cfg.Link.KeyFile = n.Certificate("repair") })
		require.True(t, ensure(t, repair))
	})

	t.Run("TLSURLDemandsTLS", func(t *testing.T) {
		t.Parallel()
		n := testkit.NewNATS(t)
		c := connect(t, strings.Replace(n.URL(), "nats://", "tls://", 1))
		require.Equal(t, "the server offers no TLS, and nothing is sent in plain text", reason(t, c))
	})

	t.Run("FilesThatCannotBeUsedAreNamedAtTheStart", func(t *testing.T) {
		t.Parallel()
		n := testkit.NewSecureNATS(t, func(s *credential.Setup) { s.ClientCertificates = true })
		dir := t.TempDir()
		open, none, ca := filepath.Join(dir, "open.seed"), filepath.Join(dir, "none"), filepath.Join(n.Setup.Dir, "ca.key")
		seed, err := os.ReadFile(n.Seed("api"))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(open, seed, 0o600))
		require.NoError(t, os.Chmod(open, 0o644))
		garbage := filepath.Join(dir, "garbage")
		require.NoError(t, os.WriteFile(garbage, []byte("SUCANARY"), 0o600))
		certificate, _ := n.Certificate("api")
		for want, link := range map[string]wakeup.Link{
			"open.seed has mode 0644":                       {NkeyFile: open, Process: "api"},
			"no such file":                                  {NkeyFile: none, Process: "api"},
			"there is no seed in it":                        {NkeyFile: garbage, Process: "api"},
			"no nkey user for the process":                  {NkeyFile: n.Seed("api"), Process: "up"},
			"certificates of authorities: there is none in": {CAFile: ca},
			"certificates of authorities: open":             {CAFile: none},
			"needs both":                                    {CertFile: certificate},
			"it and its key can't be used":                  {CertFile: certificate, KeyFile: ca},
			"key of the client certificate":                 {CertFile: certificate, KeyFile: open},
		} {
			_, err := wakeup.Connect(bounded(t), wakeup.Config{URL: n.URL(), Log: zerolog.Nop(), Link: link})
			require.ErrorContains(t, err, want)
			require.NotContains(t, err.Error(), "CANARY")
			unspoken(t, err.Error(), n)
		}
		_, err = wakeup.Connect(bounded(t), wakeup.Config{
			URL: "nats://user:CANARY@127.0.0.1:1", Log: zerolog.Nop(), Link: wakeup.Link{NkeyFile: n.Seed("api"), Process: "api"},
		})
		require.ErrorContains(t, err, "only one of them")
		require.NotContains(t, err.Error(), "CANARY")
	})

	t.Run("PlainHostsAreThoseWithoutTLS", func(t *testing.T) {
		t.Parallel()
		for url, want := range map[string][]string{
			"nats://a:4222":             {"a"},
			"a,nats://u:p@b:1":          {"a", "b"},
			"tls://a:4222":              nil,
			"nats://a:4222,tls://b":     nil, // nats.go asks both for TLS then
			"nats://[::1]:4222":         {"::1"},
			"wss://a":                   nil,
			"nats://a:4222, nats://c:1": {"a", "c"},
			"://":                       nil,
		} {
			require.Equal(t, want, wakeup.Link{}.PlainHosts(url), url)
			require.Empty(t, wakeup.Link{CAFile: "some"}.PlainHosts(url))
		}
	})
}

// TestRotation replaces the seed of a process that runs: its next connection is with the new one.
func TestRotation(t *testing.T) {
	t.Parallel()
	n := testkit.NewSecureNATS(t, nil)
	repair, _ := as(t, n, "repair", nil)
	ensure(t, repair)
	file := filepath.Join(t.TempDir(), "worker.seed")
	bring := func() {
		seed, err := os.ReadFile(n.Seed("worker"))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file+".new", seed, 0o600))
		require.NoError(t, os.Rename(file+".new", file))
	}
	bring()
	worker, log := as(t, n, "worker", func(cfg *wakeup.Config) { cfg.Link.NkeyFile = file })
	con := consumer(t, worker)
	h := hint(1)
	publishUntilStored(t, repair, h)
	require.Equal(t, []wakeup.Hint{h}, fetchUntil(t, con, wakeup.Interactive, 1))

	old, err := os.ReadFile(n.Seed("worker"))
	require.NoError(t, err)
	n.Setup.Renew = []string{"worker"}
	n.Renew(t)
	fresh, err := os.ReadFile(n.Seed("worker"))
	require.NoError(t, err)
	require.NotEqual(t, old, fresh)
	require.Equal(t, "the server refuses this user", reason(t, worker), "the old seed still counts")
	_, err = con.Fetch(bounded(t), wakeup.Interactive, 1)
	require.ErrorIs(t, err, wakeup.ErrDisconnected)

	require.NoError(t, os.Remove(file))
	require.Contains(t, reasonWith(t, worker, "no such file"), "nkey file")

	bring()
	h = hint(2)
	publishUntilStored(t, repair, h)
	require.Equal(t, []wakeup.Hint{h}, fetchUntil(t, con, wakeup.Interactive, 1))
	unspoken(t, log.String(), n)
}

// reason waits until the client says why it isn't connected.
func reason(t *testing.T, c *wakeup.Client) string {
	t.Helper()
	return reasonWith(t, c, "")
}

func reasonWith(t *testing.T, c *wakeup.Client, part string) string {
	t.Helper()
	ctx := bounded(t)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if text, known := wakeup.Reason(c.Healthy()); known && strings.Contains(text, part) {
			return text
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			require.Fail(t, "no reason is known", "%v", c.Healthy())
		}
	}
}

// unspoken checks that no seed is in a text.
func unspoken(t *testing.T, text string, n *testkit.SecureNATS) {
	t.Helper()
	for _, user := range []string{"api", "worker", "repair"} {
		seed, err := os.ReadFile(n.Seed(user))
		require.NoError(t, err)
		require.NotContains(t, text, strings.TrimSpace(string(seed)))
	}
}
