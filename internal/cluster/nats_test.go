//go:build cluster

package cluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-memory/holdfast/internal/credential"
	"github.com/holdfast-memory/holdfast/internal/testkit"
)

// servers is a cluster of NATS as an operator sets it up, on this machine.
type servers struct {
	t     *testing.T
	bin   string
	made  string // by nats-setup
	nodes []*node
}

type node struct {
	name    string
	dir     string
	client  string // host:port
	route   string
	process *testkit.Process
}

// newServers sets up three servers and starts them.
func newServers(t *testing.T) *servers {
	t.Helper()
	dir := t.TempDir()
	s := &servers{t: t, bin: filepath.Join(dir, "nats-server"), made: filepath.Join(dir, "made")}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", s.bin, "github.com/nats-io/nats-server/v2")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build nats-server: %v\n%s", err, out)
	}
	setup := credential.Setup{Dir: s.made, StoreDir: filepath.Join(dir, "store")}
	for i := range 3 {
		n := &node{name: fmt.Sprintf("nats-%d", i+1), client: free(t), route: free(t)}
		setup.Servers = append(setup.Servers, []string{n.name, "127.0.0.1"})
		s.nodes = append(s.nodes, n)
	}
	dirs, err := setup.Write()
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range s.nodes {
		n.dir = dirs[i]
		s.ownStore(n, setup.StoreDir)
	}
	for _, n := range s.nodes {
		s.start(n)
	}
	return s
}

// ownStore gives a server a directory of its own for its streams: all three are on this machine.
func (s *servers) ownStore(n *node, shared string) {
	s.t.Helper()
	path := filepath.Join(n.dir, "nats.conf")
	config, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	own := strings.Replace(string(config), shared, filepath.Join(n.dir, "store"), 1)
	if err := os.WriteFile(path, []byte(own), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// start starts a server on what it has stored, on addresses of its own.
func (s *servers) start(n *node) {
	s.t.Helper()
	var routes []string
	for _, other := range s.nodes {
		routes = append(routes, "nats-route://"+other.route)
	}
	host, port, err := net.SplitHostPort(n.client)
	if err != nil {
		s.t.Fatal(err)
	}
	n.process = testkit.StartProcess(s.t, testkit.ProcessConfig{Path: s.bin, Args: []string{
		"-c", filepath.Join(n.dir, "nats.conf"), "-a", host, "-p", port,
		"--cluster", "nats://" + n.route, "--routes", strings.Join(routes, ","),
	}})
	n.process.WaitForOutput("Server is ready", patience)
}

func (s *servers) url() string {
	var all []string
	for _, n := range s.nodes {
		all = append(all, "tls://"+n.client)
	}
	return strings.Join(all, ",")
}

// env is what a process of that user needs.
func (s *servers) env(user string) []string {
	return []string{
		"HOLDFAST_NATS_URL=" + s.url(), "HOLDFAST_NATS_CA_FILE=" + filepath.Join(s.made, "ca.crt"),
		"HOLDFAST_NATS_NKEY_FILE=" + filepath.Join(s.made, "users", user+".seed"), "HOLDFAST_NATS_REPLICAS=3",
	}
}

// info is what the operator is shown of the stream.
func (s *servers) info(ctx context.Context) (*jetstream.StreamInfo, error) {
	nkey, err := nats.NkeyOptionFromSeed(filepath.Join(s.made, "users", "operator.seed"))
	if err != nil {
		return nil, err
	}
	nc, err := nats.Connect(s.url(), nkey, nats.RootCAs(filepath.Join(s.made, "ca.crt")), nats.Timeout(2*time.Second))
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	stream, err := js.Stream(ctx, "WAKE")
	if err != nil {
		return nil, err
	}
	return stream.CachedInfo(), nil
}

// whole returns the stream's leader once all three servers have all of it.
func (s *servers) whole() *node {
	s.t.Helper()
	var leader *node
	until(s.t, "three servers have the stream", func() bool {
		info, err := s.info(s.t.Context())
		if err != nil || info.Cluster == nil || info.Cluster.Leader == "" || info.Config.Replicas != 3 || len(info.Cluster.Replicas) != 2 {
			return false
		}
		for _, r := range info.Cluster.Replicas {
			if !r.Current || r.Offline {
				return false
			}
		}
		for _, n := range s.nodes {
			if n.name == info.Cluster.Leader {
				leader = n
			}
		}
		return leader != nil
	})
	return leader
}

func free(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
