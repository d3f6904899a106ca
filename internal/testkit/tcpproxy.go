package testkit

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// TCPProxy passes connections on to a server until it is told to stop or cut them.
type TCPProxy struct {
	upstream string
	listener net.Listener
	url      string
	gate     *gate
	conns    *connSet
	wg       sync.WaitGroup
}

// NewTCPProxy listens on 127.0.0.1 before the server of serverURL. It ends with the test.
func NewTCPProxy(t testing.TB, serverURL string) *TCPProxy {
	t.Helper()
	listener, upstream, through := listenBefore(t, serverURL)
	p := &TCPProxy{upstream: upstream, listener: listener, url: through, gate: newGate(), conns: newConnSet()}
	p.wg.Go(func() { acceptLoop(listener, p.conns, p.serve) })
	t.Cleanup(func() {
		_ = listener.Close()
		p.conns.close()
		p.wg.Wait()
	})
	return p
}

// URL is the server's URL through the proxy.
func (p *TCPProxy) URL() string { return p.url }

// Blackhole stops (true) or resumes (false) the passing on of data. Connections stay open and new ones are accepted, as
// behind a firewall that drops packets.
func (p *TCPProxy) Blackhole(on bool) { p.gate.shut(on) }

// Cut closes every present connection.
func (p *TCPProxy) Cut() { p.conns.cut() }

func (p *TCPProxy) serve(client net.Conn) {
	server, err := net.Dial("tcp", p.upstream)
	if err != nil {
		return
	}
	defer server.Close()
	if !p.conns.add(server) {
		return
	}
	defer p.conns.remove(server)
	var wg sync.WaitGroup
	wg.Go(func() { p.pump(server, client) })
	wg.Go(func() { p.pump(client, server) })
	wg.Wait()
}

func (p *TCPProxy) pump(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if !p.gate.pass(p.conns.done) {
			return
		}
		if n > 0 {
			if _, werr := to.Write(buf[:n]); werr != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// listenBefore opens a listener and returns the address of serverURL and that URL with the listener's address in it.
func listenBefore(t testing.TB, serverURL string) (net.Listener, string, string) {
	t.Helper()
	u, err := url.Parse(serverURL)
	if err != nil {
		t.Fatalf("proxy: parse url: %v", err)
	}
	upstream := u.Host
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("proxy: listen: %v", err)
	}
	u.Host = listener.Addr().String()
	return listener, upstream, u.String()
}

// acceptLoop serves connections until the listener closes, and returns when all of them have ended.
func acceptLoop(listener net.Listener, conns *connSet, serve func(net.Conn)) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		wg.Go(func() {
			defer conn.Close()
			if conns.add(conn) {
				defer conns.remove(conn)
				serve(conn)
			}
		})
	}
}

// gate lets data pass, or holds it.
type gate struct {
	mu   sync.Mutex
	open chan struct{} // closed: data passes
}

func newGate() *gate {
	g := &gate{open: make(chan struct{})}
	close(g.open)
	return g
}

func (g *gate) shut(on bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.open:
		if on {
			g.open = make(chan struct{})
		}
	default:
		if !on {
			close(g.open)
		}
	}
}

// pass waits until data may pass and is false when done comes first.
func (g *gate) pass(done <-chan struct{}) bool {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	select {
	case <-open:
		return true
	case <-done:
		return false
	}
}

// connSet is the open connections of a proxy.
type connSet struct {
	mu   sync.Mutex
	all  map[io.Closer]struct{}
	done chan struct{}
}

func newConnSet() *connSet {
	return &connSet{all: map[io.Closer]struct{}{}, done: make(chan struct{})}
}

// add is false when the proxy has ended.
func (s *connSet) add(c io.Closer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.done:
		return false
	default:
		s.all[c] = struct{}{}
		return true
	}
}

func (s *connSet) remove(c io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, c)
}

func (s *connSet) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.all {
		_ = c.Close()
	}
}

func (s *connSet) close() {
	s.mu.Lock()
	close(s.done)
	s.mu.Unlock()
	s.cut()
}
