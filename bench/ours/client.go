package ours

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/holdfast-memory/holdfast/bench/load"
)

// endBound is how long an end may take; a lease is taken over after 60 s.
const endBound = 90 * time.Second

// Callers are the clients of a site, each with a connection of its own.
type Callers struct {
	site    *Site
	tenants []Tenant
	conns   []*load.Conn
	next    atomic.Int64
}

// NewCallers connects n callers that go round over the tenants.
func (s *Site) NewCallers(ctx context.Context, tenants []Tenant, n int) (*Callers, error) {
	c := &Callers{site: s, tenants: tenants}
	for range n {
		conn, err := load.Dial(ctx, s.address)
		if err != nil {
			c.Close()
			return nil, err
		}
		c.conns = append(c.conns, conn)
	}
	return c, nil
}

// Close closes their connections.
func (c *Callers) Close() {
	for _, conn := range c.conns {
		conn.Close()
	}
}

// Accept posts one command and reads its receipt.
func (c *Callers) Accept(_ context.Context, caller int) error {
	_, err := c.post(caller)
	return err
}

// Finish posts one command and waits until it has succeeded or failed, by its notice.
func (c *Callers) Finish(ctx context.Context, caller int) error {
	id, err := c.post(caller)
	if err != nil {
		return err
	}
	timer := time.NewTimer(endBound)
	defer timer.Stop()
	select {
	case <-c.site.done.wait(id):
		return nil
	case <-timer.C:
		err = fmt.Errorf("a task has not ended within %s", endBound)
	case <-ctx.Done():
		err = ctx.Err()
	}
	c.site.done.forget(id)
	return err
}

func (c *Callers) post(caller int) (id string, err error) {
	body, err := Body()
	if err != nil {
		return "", fmt.Errorf("make command: %w", err)
	}
	tenant := c.tenants[c.next.Add(1)%int64(len(c.tenants))]
	header := "Authorization: Bearer " + tenant.Key + "\r\nIdempotency-Key: " + key() + "\r\n"
	status, answer, err := c.conns[caller].Do(http.MethodPost, "/v1/memories", header, body)
	if err != nil {
		return "", err
	}
	if status != http.StatusAccepted {
		return "", fmt.Errorf("add: status %d %.40s %s", status, answer, c.site.api.LastError())
	}
	_, rest, found := bytes.Cut(answer, []byte(`"evt_`))
	if !found || len(rest) < idLength {
		return "", errors.New("add: the receipt has no event id")
	}
	return string(rest[:idLength]), nil
}

// Search asks one tenant's memories and reads the answer.
func (c *Callers) Search(caller int, user, question string) error {
	header := "Authorization: Bearer " + c.tenants[0].Key + "\r\n"
	body := fmt.Sprintf(`{"query":%q,"user_id":%q,"limit":10}`, question, user)
	status, answer, err := c.conns[caller].Do(http.MethodPost, "/v1/memories/search", header, []byte(body))
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("search: status %d %s", status, answer)
	}
	return nil
}

func key() string {
	var b [16]byte
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return hex.EncodeToString(b[:])
}
