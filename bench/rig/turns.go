package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
)

// Turns stands between a client and PostgreSQL and counts round trips: how often a client speaks after the server did.
// It costs time itself, so that nothing is timed through it.
type Turns struct {
	listener net.Listener
	target   string
	url      string
	count    atomic.Int64
	conns    sync.WaitGroup
}

// CountTurns starts one before the server of databaseURL.
func CountTurns(ctx context.Context, databaseURL string) (*Turns, error) {
	u, err := url.Parse(databaseURL)
	if err != nil {
		return nil, errors.New("count round trips: the database URL cannot be read") // its error quotes the password
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("count round trips: %w", err)
	}
	t := &Turns{listener: listener, target: u.Host}
	u.Host = listener.Addr().String()
	t.url = u.String()
	go t.serve(ctx)
	return t, nil
}

// URL leads through it.
func (t *Turns) URL() string { return t.url }

// Count is how many there were.
func (t *Turns) Count() int64 { return t.count.Load() }

// Stop ends it once its clients have gone.
func (t *Turns) Stop() {
	_ = t.listener.Close()
	t.conns.Wait()
}

func (t *Turns) serve(ctx context.Context) {
	for {
		client, err := t.listener.Accept()
		if err != nil {
			return // stopped
		}
		server, err := (&net.Dialer{}).DialContext(ctx, "tcp", t.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		var answered atomic.Bool
		answered.Store(true)
		t.conns.Add(2)
		go t.copy(server, client, func() {
			if answered.Swap(false) {
				t.count.Add(1)
			}
		})
		go t.copy(client, server, func() { answered.Store(true) })
	}
}

func (t *Turns) copy(to, from net.Conn, seen func()) {
	defer t.conns.Done()
	defer to.Close()
	buffer := make([]byte, 64<<10) // more than any message here
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			seen()
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if errors.Is(err, io.EOF) || err != nil {
			return
		}
	}
}
