package testkit

import (
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// CommitProxy passes PostgreSQL connections on and can lose the answer to a COMMIT.
type CommitProxy struct {
	upstream string
	listener net.Listener
	url      string
	gate     *gate
	conns    *connSet
	wg       sync.WaitGroup

	trips atomic.Int64

	mu    sync.Mutex
	armed *commitCut
}

type commitCut struct {
	fits        func(query string) bool
	afterServer bool
	result      chan string
	once        sync.Once
}

func (c *commitCut) report(tag string) {
	c.once.Do(func() { c.result <- tag })
}

// CommitCutProxy listens on 127.0.0.1 before the server of databaseURL, which must not ask for TLS. It ends with the
// test.
func CommitCutProxy(t testing.TB, databaseURL string) *CommitProxy {
	t.Helper()
	listener, upstream, through := listenBefore(t, databaseURL)
	p := &CommitProxy{upstream: upstream, listener: listener, url: through, gate: newGate(), conns: newConnSet()}
	p.wg.Go(func() { acceptLoop(listener, p.conns, p.serve) })
	t.Cleanup(func() {
		_ = listener.Close()
		p.conns.close()
		p.wg.Wait()
	})
	return p
}

// URL is the database's URL through the proxy.
func (p *CommitProxy) URL() string { return p.url }

// RoundTrips is how many requests the clients have waited for so far, over all connections.
func (p *CommitProxy) RoundTrips() int64 { return p.trips.Load() }

// Blackhole stops (true) or resumes (false) the passing on of data; connections stay open.
func (p *CommitProxy) Blackhole(on bool) { p.gate.shut(on) }

// CutNextCommit arms the proxy for the next COMMIT on any of its connections, sent as a simple query or with the
// extended protocol. With afterServerCommitted the server gets it and its answer is thrown away; without, the server
// never sees it. Either way the client's connection closes without an answer. The channel gets the server's command tag,
// "COMMIT" or "ROLLBACK", or "" when the server gave none, once the connection is closed.
func (p *CommitProxy) CutNextCommit(afterServerCommitted bool) <-chan string {
	return p.arm(endsInCommit, afterServerCommitted)
}

// LoseNextAnswer arms the proxy for the next statement whose text contains part: the server runs it, and commits it if
// it stands alone, but the client's connection closes without an answer. The channel gets a value once it is closed.
func (p *CommitProxy) LoseNextAnswer(part string) <-chan string {
	return p.arm(func(query string) bool { return strings.Contains(query, part) }, true)
}

func (p *CommitProxy) arm(fits func(query string) bool, afterServer bool) <-chan string {
	cut := &commitCut{fits: fits, afterServer: afterServer, result: make(chan string, 1)}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = cut
	return cut.result
}

func (p *CommitProxy) takeCut(query string) *commitCut {
	p.mu.Lock()
	defer p.mu.Unlock()
	cut := p.armed
	if cut == nil || !cut.fits(query) {
		return nil
	}
	p.armed = nil
	return cut
}

func (p *CommitProxy) serve(client net.Conn) {
	server, err := net.Dial("tcp", p.upstream)
	if err != nil {
		return
	}
	defer server.Close()
	if !p.conns.add(server) {
		return
	}
	defer p.conns.remove(server)
	s := &pgSession{
		proxy: p, client: client, server: server,
		back: pgproto3.NewBackend(client, client), front: pgproto3.NewFrontend(server, server),
		prepared: map[string]string{}, portals: map[string]string{},
	}
	if !s.startup() || !s.authenticate() {
		return
	}
	var wg sync.WaitGroup
	wg.Go(s.upward)
	wg.Go(s.downward)
	wg.Wait()
}

// pgSession is one client connection and its server connection. upward and downward each use their own half of back and
// front.
type pgSession struct {
	proxy          *CommitProxy
	client, server net.Conn
	back           *pgproto3.Backend
	front          *pgproto3.Frontend

	prepared, portals map[string]string // the statements of these names

	mu    sync.Mutex
	sent  int // requests for a ReadyForQuery so far
	cut   *commitCut
	cutAt int // which ReadyForQuery is the cut COMMIT's
}

// startup answers requests for encryption with no, and passes the start of a session on.
func (s *pgSession) startup() bool {
	const most = 4 // one request each for TLS and GSS, then the start itself
	for range most {
		msg, err := s.back.ReceiveStartupMessage()
		if err != nil || !s.proxy.gate.pass(s.proxy.conns.done) {
			return false
		}
		switch msg := msg.(type) {
		case *pgproto3.SSLRequest, *pgproto3.GSSEncRequest:
			if _, err := s.client.Write([]byte{'N'}); err != nil {
				return false
			}
		case *pgproto3.CancelRequest:
			s.front.Send(msg)
			_ = s.front.Flush()
			return false
		default:
			s.front.Send(msg)
			return s.front.Flush() == nil
		}
	}
	return false
}

// authenticate passes the password exchange on in lock step, because each answer's form depends on the question.
func (s *pgSession) authenticate() bool {
	for {
		msg, err := s.front.Receive()
		if err != nil || !s.proxy.gate.pass(s.proxy.conns.done) {
			return false
		}
		s.back.Send(msg)
		if s.back.Flush() != nil {
			return false
		}
		switch msg.(type) {
		case *pgproto3.ReadyForQuery:
			return true
		case *pgproto3.AuthenticationCleartextPassword, *pgproto3.AuthenticationMD5Password,
			*pgproto3.AuthenticationSASL, *pgproto3.AuthenticationSASLContinue:
			if s.back.SetAuthType(s.front.GetAuthType()) != nil {
				return false
			}
			answer, err := s.back.Receive()
			if err != nil {
				return false
			}
			s.front.Send(answer)
			if s.front.Flush() != nil {
				return false
			}
		}
	}
}

func (s *pgSession) close() {
	_ = s.client.Close()
	_ = s.server.Close()
}

// upward passes the client's messages on and looks for the statement to cut.
func (s *pgSession) upward() {
	defer s.close()
	for {
		msg, err := s.back.Receive()
		if err != nil || !s.proxy.gate.pass(s.proxy.conns.done) {
			return
		}
		if query, runs := s.runs(msg); runs && s.beginCut(query) {
			return
		}
		s.front.Send(msg)
		switch msg.(type) {
		case *pgproto3.Query, *pgproto3.Sync, *pgproto3.FunctionCall:
			s.proxy.trips.Add(1)
			s.mu.Lock()
			s.sent++
			s.mu.Unlock()
		case *pgproto3.Parse, *pgproto3.Bind, *pgproto3.Describe, *pgproto3.Execute, *pgproto3.Close:
			continue // a Sync or Flush follows
		}
		if s.front.Flush() != nil {
			return
		}
	}
}

// beginCut takes the armed cut, if there is one, and is true when the session ends here.
func (s *pgSession) beginCut(query string) bool {
	cut := s.proxy.takeCut(query)
	if cut == nil {
		return false
	}
	if !cut.afterServer {
		s.close()
		cut.report("")
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut, s.cutAt = cut, s.sent+1
	return false
}

// downward passes the server's messages on, except the answer to the cut COMMIT.
func (s *pgSession) downward() {
	ready, tag := 0, ""
	defer func() {
		s.close()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.cut != nil {
			s.cut.report(tag)
		}
	}()
	for {
		msg, err := s.front.Receive()
		if err != nil || !s.proxy.gate.pass(s.proxy.conns.done) {
			return
		}
		s.mu.Lock()
		swallow := s.cut != nil && ready+1 == s.cutAt
		s.mu.Unlock()
		switch msg := msg.(type) {
		case *pgproto3.ReadyForQuery:
			ready++
			if swallow {
				return
			}
		case *pgproto3.CommandComplete:
			if t := string(msg.CommandTag); swallow && (t == "COMMIT" || t == "ROLLBACK") {
				tag = t
			}
		}
		if swallow {
			continue
		}
		s.back.Send(msg)
		if s.front.ReadBufferLen() == 0 && s.back.Flush() != nil {
			return
		}
	}
}

// runs tells which statement msg makes the server run, if it does, and remembers prepared statements and portals.
func (s *pgSession) runs(msg pgproto3.FrontendMessage) (query string, runs bool) {
	switch msg := msg.(type) {
	case *pgproto3.Query:
		return msg.String, true
	case *pgproto3.Parse:
		s.prepared[msg.Name] = msg.Query
	case *pgproto3.Bind:
		s.portals[msg.DestinationPortal] = s.prepared[msg.PreparedStatement]
	case *pgproto3.Execute:
		return s.portals[msg.Portal], true
	}
	return "", false
}

// endsInCommit knows the forms that clients send, alone or as the last of several statements.
func endsInCommit(query string) bool {
	query = strings.TrimRight(query, "; \t\r\n")
	last := query[strings.LastIndexByte(query, ';')+1:]
	words := strings.Fields(strings.ToLower(last))
	return len(words) > 0 && (words[0] == "commit" || words[0] == "end") && (len(words) < 2 || words[1] != "prepared")
}
