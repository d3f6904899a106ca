package wakeup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// publishTimeout is what a caller who has already committed may be kept waiting for.
	publishTimeout = 250 * time.Millisecond
	// maxSends bounds the sends under way. A healthy server answers in a millisecond, so that this many are 100,000 a
	// second; with a server that doesn't answer it is what can pile up.
	maxSends = 256
)

// Publish stores a hint in the stream. It returns within 250 ms whatever NATS does, and at once when there is no
// connection (ErrDisconnected). After an error the hint may still arrive; a hint that isn't there is found by polling
// and by repair. A hint whose id was published within the last two minutes is not stored again, is no error, and is
// counted in Stats.Duplicates.
func (c *Client) Publish(ctx context.Context, h Hint) error {
	msg, err := h.encode()
	if err != nil {
		c.counts.publishFailed.Add(1)
		return fmt.Errorf("publish hint: %w", err)
	}
	var ack *jetstream.PubAck
	err = c.send(ctx, func(ctx context.Context) error {
		var err error
		ack, err = c.js.PublishMsg(ctx, msg, jetstream.WithMsgID(h.ID()), jetstream.WithExpectStream(streamName),
			jetstream.WithRetryAttempts(0)) // without a stream there is nothing to wait for
		return err
	})
	if err != nil {
		c.counts.publishFailed.Add(1)
		return fmt.Errorf("publish hint: %w", err)
	}
	c.counts.published.Add(1)
	if ack.Duplicate {
		c.counts.duplicates.Add(1)
	}
	return nil
}

// Notify tells whoever waits in Subscribe that a task has ended. It is bounded as Publish is; nobody confirms it.
func (c *Client) Notify(ctx context.Context, workspace, task uuid.UUID) error {
	err := c.send(ctx, func(context.Context) error {
		return c.nc.PublishMsg(nats.NewMsg(noticeSubject(workspace, task)))
	})
	if err != nil {
		return fmt.Errorf("publish notice: %w", err)
	}
	return nil
}

// send runs fn within the timeout. It doesn't wait for fn itself: nats.go holds the connection's lock while it writes to
// a socket that is full.
func (c *Client) send(ctx context.Context, fn func(context.Context) error) error {
	if !c.nc.IsConnected() {
		return ErrDisconnected
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("too many sends under way: %w", ctx.Err())
	}
	result := make(chan error, 1)
	go func() {
		defer func() { <-c.slots }()
		result <- fn(ctx)
	}()
	select {
	case err := <-result:
		if errors.Is(err, nats.ErrReconnectBufExceeded) || errors.Is(err, nats.ErrConnectionClosed) {
			return ErrDisconnected
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
