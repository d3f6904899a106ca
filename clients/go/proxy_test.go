package holdfast_test

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// cutter is a TCP proxy that loses answers: it passes a request on, waits until the service has begun to answer, and then
// ends the connection without a byte of it. What the request asked for has happened by then.
type cutter struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	cuts  int    // how many answers are still to be lost
	first func() // what happens when the first one is
	lost  int
	conns sync.WaitGroup
}

// newCutter loses so many answers of a service and passes all later ones on.
func newCutter(t *testing.T, target string, cuts int) *cutter {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{listener: listener, target: strings.TrimPrefix(target, "http://"), cuts: cuts}
	c.conns.Add(1)
	go func() {
		defer c.conns.Done()
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			c.conns.Add(1)
			go func() {
				defer c.conns.Done()
				c.serve(conn)
			}()
		}
	}()
	t.Cleanup(func() { _ = listener.Close() })
	return c
}

func (c *cutter) url() string { return "http://" + c.listener.Addr().String() }

func (c *cutter) serve(client net.Conn) {
	defer client.Close()
	service, err := net.Dial("tcp", c.target)
	if err != nil {
		return
	}
	defer service.Close()
	go func() {
		_, _ = io.Copy(service, client) // ends with either connection
		_ = service.Close()
	}()
	first := make([]byte, 1)
	for {
		if _, err := io.ReadFull(service, first); err != nil {
			return
		}
		if first, lost := c.cut(); lost {
			first()
			return
		}
		if _, err := client.Write(first); err != nil {
			return
		}
		if _, err := io.Copy(client, service); err != nil {
			return
		}
	}
}

// cut tells whether this answer is lost, and what to do then.
func (c *cutter) cut() (func(), bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cuts == 0 {
		return nil, false
	}
	c.cuts--
	c.lost++
	if c.lost > 1 || c.first == nil {
		return func() {}, true
	}
	return c.first, true
}

func (c *cutter) losses() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost
}
