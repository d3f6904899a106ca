package credential_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/credential"
	natsconfig "github.com/holdfast-memory/holdfast/nats"
)

func write(t *testing.T, s credential.Setup) []string {
	t.Helper()
	dirs, err := s.Write()
	require.NoError(t, err)
	return dirs
}

func read(t *testing.T, parts ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(parts...))
	require.NoError(t, err)
	return string(text)
}

func cluster(dir string) credential.Setup {
	return credential.Setup{Dir: dir, StoreDir: filepath.Join(dir, "store"), Servers: [][]string{{"nats-1", "10.0.0.1"}, {"nats-2"}, {"nats-3", "::1"}}}
}

func TestSetup(t *testing.T) {
	t.Parallel()

	t.Run("ServerReadsWhatIsWritten", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		for i, made := range write(t, cluster(dir)) {
			o, err := server.ProcessConfigFile(filepath.Join(made, "nats.conf"))
			require.NoError(t, err)
			require.True(t, o.JetStream)
			require.NotNil(t, o.TLSConfig)
			require.Equal(t, tls.NoClientCert, o.TLSConfig.ClientAuth)
			require.Equal(t, 4222, o.Port)
			require.Equal(t, "nats-"+strconv.Itoa(i+1), o.ServerName)
			require.Len(t, o.Routes, 3)
			require.NotNil(t, o.Cluster.TLSConfig)
			require.Empty(t, o.Users)
			require.Len(t, o.Nkeys, len(natsconfig.Users()))
			for _, nkey := range o.Nkeys {
				require.NotEmpty(t, nkey.Permissions.Publish.Allow)
				require.NotEmpty(t, nkey.Permissions.Subscribe.Allow)
			}
		}
		one := write(t, credential.Setup{Dir: t.TempDir(), Servers: [][]string{{"localhost"}}, ClientCertificates: true, Port: 1234})
		o, err := server.ProcessConfigFile(filepath.Join(one[0], "nats.conf"))
		require.NoError(t, err)
		require.Equal(t, tls.RequireAndVerifyClientCert, o.TLSConfig.ClientAuth)
		require.Equal(t, 1234, o.Port)
		require.Empty(t, o.Cluster.Name)
	})

	t.Run("PrivateFilesAreNobodyElses", func(t *testing.T) {
		t.Parallel()
		dir := filepath.Join(t.TempDir(), "made")
		s := cluster(dir)
		s.ClientCertificates = true
		write(t, s)
		private := 0
		require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			require.NoError(t, err)
			info, err := d.Info()
			require.NoError(t, err)
			switch {
			case d.IsDir():
				require.Equal(t, fs.FileMode(0o700), info.Mode().Perm(), path)
			case strings.HasSuffix(path, ".key"), strings.HasSuffix(path, ".seed"):
				private++
				require.Equal(t, fs.FileMode(0o600), info.Mode().Perm(), path)
			default:
				require.NotContains(t, read(t, path), "PRIVATE", path)
			}
			return nil
		}))
		require.Equal(t, 1+3+2*len(natsconfig.Users()), private)
	})

	t.Run("SecondRunRenewsCertificatesAndNothingElse", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		s := cluster(dir)
		made := write(t, s)
		paths := []string{"ca.crt", "ca.key", "users/api.seed", "users/worker.seed", "servers/nats-1/users.conf", "servers/nats-1/nats.conf"}
		before := map[string]string{}
		for _, p := range paths {
			before[p] = read(t, dir, p)
		}
		certificate := read(t, made[0], "nats-1.crt")
		require.Equal(t, made, write(t, s))
		for _, p := range paths {
			require.Equal(t, before[p], read(t, dir, p), p)
		}
		require.NotEqual(t, certificate, read(t, made[0], "nats-1.crt"))

		s.Renew = []string{"worker"}
		write(t, s)
		require.Equal(t, before["users/api.seed"], read(t, dir, "users/api.seed"))
		require.NotEqual(t, before["users/worker.seed"], read(t, dir, "users/worker.seed"))
		require.NotEqual(t, before["servers/nats-1/users.conf"], read(t, dir, "servers/nats-1/users.conf"))
	})

	t.Run("CertificatesAreForTheirHostsAndTheirTime", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		made := write(t, cluster(dir))
		c := parse(t, read(t, made[0], "nats-1.crt"))
		roots := x509.NewCertPool()
		require.True(t, roots.AppendCertsFromPEM([]byte(read(t, dir, "ca.crt"))))
		for _, host := range []string{"nats-1", "10.0.0.1"} {
			_, err := c.Verify(x509.VerifyOptions{Roots: roots, DNSName: host})
			require.NoError(t, err)
		}
		_, err := c.Verify(x509.VerifyOptions{Roots: roots, DNSName: "nats-2"})
		require.Error(t, err)
		require.False(t, c.IsCA)
		require.WithinDuration(t, time.Now().Add(credential.DefaultLife), c.NotAfter, time.Minute)
	})

	t.Run("IsRefused", func(t *testing.T) {
		t.Parallel()
		for want, change := range map[string]func(*credential.Setup){
			"a directory is needed":    func(s *credential.Setup) { s.Dir = "" },
			"two servers":              func(s *credential.Setup) { s.Servers = s.Servers[:2] },
			"no servers":               func(s *credential.Setup) { s.Servers = nil },
			"the same server twice":    func(s *credential.Setup) { s.Servers[2] = s.Servers[0] },
			"a server without a host":  func(s *credential.Setup) { s.Servers[2] = nil },
			"a host that is a path":    func(s *credential.Setup) { s.Servers[2] = []string{"../../etc"} },
			"a host that ends a quote": func(s *credential.Setup) { s.Servers[2] = []string{"a\"\nb"} },
			"a user that is none":      func(s *credential.Setup) { s.Renew = []string{"root"} },
			"a store that ends a line": func(s *credential.Setup) { s.StoreDir = "/x\"\n" },
			"a port that is none":      func(s *credential.Setup) { s.Port = 65536 },
		} {
			s := cluster(t.TempDir())
			change(&s)
			_, err := s.Write()
			require.Error(t, err, want)
			if s.Dir != "" {
				left, err := os.ReadDir(s.Dir)
				require.NoError(t, err)
				require.Empty(t, left, want)
			}
		}
	})

	t.Run("AuthorityWithoutItsKeyIssuesNothing", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		s := cluster(dir)
		made := write(t, s)
		before := read(t, made[0], "nats-1.crt")
		require.NoError(t, os.Rename(filepath.Join(dir, "ca.key"), filepath.Join(dir, "away")))
		_, err := s.Write()
		require.ErrorContains(t, err, "bring its key back")
		require.NoError(t, os.WriteFile(filepath.Join(dir, "ca.key"), []byte(read(t, made[1], "nats-2.key")), 0o600))
		_, err = s.Write()
		require.ErrorContains(t, err, "is not the key of")
		require.Equal(t, before, read(t, made[0], "nats-1.crt"))
	})

	t.Run("ThreeServersFindEachOther", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		s := cluster(dir)
		for i := range s.Servers {
			s.Servers[i] = append(s.Servers[i], "127.0.0.1")
		}
		ports := freePorts(t, len(s.Servers))
		var running []*server.Server
		for i, made := range write(t, s) {
			o, err := server.ProcessConfigFile(filepath.Join(made, "nats.conf"))
			require.NoError(t, err)
			require.Len(t, o.Routes, len(ports))
			// Only what three machines have for themselves: addresses and stores.
			o.Host, o.Port, o.Cluster.Host, o.Cluster.Port = "127.0.0.1", -1, "127.0.0.1", ports[i]
			for j, route := range o.Routes {
				route.Host = net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[j]))
			}
			o.StoreDir, o.NoSigs, o.NoLog = t.TempDir(), true, true
			n, err := server.NewServer(o)
			require.NoError(t, err)
			n.Start()
			t.Cleanup(func() { n.Shutdown(); n.WaitForShutdown() })
			running = append(running, n)
		}
		until(t, "they don't find each other", func() bool {
			for _, n := range running {
				if n.JetStreamIsLeader() && len(n.JetStreamClusterPeers()) == len(ports) {
					return true
				}
			}
			return false
		})
		plain, err := net.DialTimeout("tcp", running[0].ClusterAddr().String(), 10*time.Second)
		require.NoError(t, err)
		defer plain.Close()
		_, err = plain.Write([]byte("CONNECT {}\r\nPING\r\n"))
		require.NoError(t, err)
		require.NoError(t, plain.SetReadDeadline(time.Now().Add(30*time.Second)))
		answer := make([]byte, 4096)
		for n := 1; n > 0; { // to its end: the server hangs up
			n, _ = plain.Read(answer)
			require.NotContains(t, string(answer[:n]), "PONG")
		}
	})
}

func parse(t *testing.T, text string) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode([]byte(text))
	require.NotNil(t, block)
	c, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	return c
}

func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(60 * time.Second)
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			require.Fail(t, what)
		}
	}
}

func freePorts(t *testing.T, n int) []int {
	t.Helper()
	ports := make([]int, n)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer l.Close()
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports
}
