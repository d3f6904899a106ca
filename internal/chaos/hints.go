package chaos

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// hintProxy stands before NATS and, while it is on, treats hints as no network does all at once: it drops some, delivers
// some twice, and holds some back until later ones have passed. Everything else passes untouched.
type hintProxy struct {
	upstream string
	listener net.Listener
	wg       sync.WaitGroup
	on       atomic.Bool

	dropped, doubled, reordered atomic.Int64

	mu    sync.Mutex
	rand  *rand.Rand
	conns map[net.Conn]struct{}
	ended bool
}

const (
	wakeSubject = "wake."
	heldBack    = 400 * time.Millisecond // longer than a publisher waits for its confirmation
	mostPayload = 1 << 20                // NATS's own limit
)

func newHintProxy(upstream string, r *rand.Rand) (*hintProxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("hint proxy: %w", err)
	}
	p := &hintProxy{upstream: upstream, listener: listener, rand: r, conns: map[net.Conn]struct{}{}}
	p.wg.Go(p.accept)
	return p, nil
}

func (p *hintProxy) address() string { return p.listener.Addr().String() }

func (p *hintProxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.ended = true
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}

func (p *hintProxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.serve(client) })
	}
}

func (p *hintProxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.conns[c] = struct{}{}
	}
	return !p.ended
}

func (p *hintProxy) forget(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	_ = c.Close()
}

func (p *hintProxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.upstream)
	if err != nil {
		return
	}
	if !p.keep(client) || !p.keep(server) {
		_ = server.Close()
		return
	}
	defer p.forget(client)
	defer p.forget(server)
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	})
	p.upward(client, server)
	_ = server.Close()
	wg.Wait()
}

// upward passes what the client says on, line by line and payload by payload.
func (p *hintProxy) upward(client io.Reader, server io.Writer) {
	var mu sync.Mutex // a message that was held back is written between two others
	send := func(b []byte) error {
		mu.Lock()
		defer mu.Unlock()
		_, err := server.Write(b)
		return err
	}
	in := bufio.NewReaderSize(client, 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		message := line
		words := strings.Fields(string(line))
		hint := false
		if len(words) >= 3 && (words[0] == "PUB" || words[0] == "HPUB") {
			size, err := strconv.Atoi(words[len(words)-1])
			if err != nil || size < 0 || size > mostPayload {
				return
			}
			payload := make([]byte, size+2)
			if _, err := io.ReadFull(in, payload); err != nil {
				return
			}
			message = append(message, payload...)
			hint = strings.HasPrefix(words[1], wakeSubject)
		}
		if hint && p.on.Load() {
			err = p.mistreat(words, message, send)
		} else {
			err = send(message)
		}
		if err != nil {
			return
		}
	}
}

func (p *hintProxy) mistreat(words []string, message []byte, send func([]byte) error) error {
	p.mu.Lock()
	roll := p.rand.Float64()
	p.mu.Unlock()
	switch {
	case roll < 0.35:
		p.dropped.Add(1)
		return nil
	case roll < 0.6:
		p.reordered.Add(1)
		time.AfterFunc(heldBack, func() { _ = send(message) }) // a connection that has gone loses it
		return nil
	case roll < 0.9:
		p.doubled.Add(1)
		if err := send(message); err != nil {
			return err
		}
		return send(twin(words, message))
	}
	return send(message)
}

// twin is the same message without a reply subject and under no message id that the server would know it by.
func twin(words []string, message []byte) []byte {
	_, body, _ := bytes.Cut(message, []byte("\n"))
	sizes := 1
	if words[0] == "HPUB" {
		sizes = 2
	}
	head := append([]string{words[0], words[1]}, words[len(words)-sizes:]...)
	body = bytes.Replace(body, []byte("Nats-Msg-Id:"), []byte("Chaos-MsgId:"), 1) // of the same length
	return append([]byte(strings.Join(head, " ")+"\r\n"), body...)
}
