package wakeup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	natsconfig "github.com/holdfast-memory/holdfast/nats"
)

const streamName = "WAKE"

// EnsureTopology creates the stream and the consumers that are missing, with this client's AckWait and Replicas. What is
// there is never changed, so that processes of two versions can run side by side. It takes at most a few seconds; two
// processes may do it at once. It tells whether hints are lost, also beside an error: something was missing, or another
// process has made the stream anew since this client looked before. A user that may not make them gets ErrRefused when
// they are missing.
func (c *Client) EnsureTopology(ctx context.Context) (missing bool, err error) {
	if !c.nc.IsConnected() {
		return false, fmt.Errorf("ensure nats topology: %w", c.disconnected())
	}
	defer func() {
		if ctx.Err() == nil {
			c.topologyMu.Lock()
			c.topologyErr = err
			c.topologyMu.Unlock()
		}
	}()
	missing, err = c.ensureStream(ctx)
	if err != nil {
		return missing, fmt.Errorf("ensure nats stream %s: %w", streamName, err)
	}
	for name, definition := range natsconfig.Consumers() {
		missed, err := c.ensureConsumer(ctx, name, definition)
		missing = missing || missed
		if err != nil {
			return missing, fmt.Errorf("ensure nats consumer %s: %w", name, err)
		}
	}
	return missing, nil
}

func (c *Client) ensureStream(ctx context.Context) (missing bool, err error) {
	var stream jetstream.Stream
	err = c.look(ctx, func(ctx context.Context) (err error) {
		stream, err = c.js.Stream(ctx, streamName)
		return err
	})
	if err == nil {
		return c.renewed(stream.CachedInfo().Created), nil
	}
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return false, err
	}
	var cfg jetstream.StreamConfig
	if err := decodeStrictly(natsconfig.Stream(), &cfg); err != nil {
		return true, err
	}
	cfg.Replicas = c.cfg.Replicas
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	err = c.refused.create(ctx, func(ctx context.Context) (err error) {
		stream, err = c.js.CreateStream(ctx, cfg)
		return err
	})
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another process was first, with other replicas
		return true, nil
	}
	if err == nil {
		c.renewed(stream.CachedInfo().Created)
	}
	return true, err
}

// renewed notes when the stream was made and tells whether that is another time than the one noted before.
func (c *Client) renewed(made time.Time) bool {
	c.topologyMu.Lock()
	defer c.topologyMu.Unlock()
	before := c.streamMade
	c.streamMade = made
	return !before.IsZero() && !before.Equal(made)
}

func (c *Client) ensureConsumer(ctx context.Context, name string, definition []byte) (missing bool, err error) {
	err = c.look(ctx, func(ctx context.Context) error {
		_, err := c.js.Consumer(ctx, streamName, name)
		return err
	})
	if err == nil || !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return false, err
	}
	var cfg jetstream.ConsumerConfig
	if err := decodeStrictly(definition, &cfg); err != nil {
		return true, err
	}
	cfg.AckWait = c.cfg.AckWait
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	err = c.refused.create(ctx, func(ctx context.Context) error {
		_, err := c.js.CreateConsumer(ctx, streamName, cfg)
		return err
	})
	if errors.Is(err, jetstream.ErrConsumerExists) { // another process was first, with another AckWait
		return true, nil
	}
	return true, err
}

// look bounds a question by itself, so that one that was asked into an outage is asked again soon after it.
func (c *Client) look(ctx context.Context, question func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	return c.refused.ask(ctx, question)
}

func decodeStrictly(b []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return fmt.Errorf("definition: %w", err)
	}
	return nil
}

// Watch looks at stream and consumers at once, after every reconnect and then at the given interval with some jitter,
// until ctx ends. It creates what is missing and then, as when another process did so, calls onMissing, because the hints
// in it are gone: tasks that are due have to be hinted again. onMissing may be nil; it is not called again before it has returned. Failures are logged
// when they begin and when they end, and are in Healthy meanwhile.
func (c *Client) Watch(ctx context.Context, every time.Duration, onMissing func(context.Context)) {
	every = max(every, 10*time.Millisecond) // a zero would keep a core and the server busy
	failing, missing := false, false
	for {
		missed, err := c.EnsureTopology(ctx)
		missing = missing || missed
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !errors.Is(err, ErrDisconnected): // the connection's own handlers tell of a disconnect
			if !failing {
				c.log.Error().Str("error", err.Error()).Msg("nats stream or consumers can't be had")
			}
			failing = true
		case err == nil:
			if failing {
				c.log.Info().Msg("nats stream and consumers are there again")
			}
			failing = false
		}
		if missing && err == nil {
			missing = false
			c.log.Warn().Msg("nats stream or consumers were missing and are made anew")
			if onMissing != nil {
				onMissing(ctx)
			}
		}
		pause := time.NewTimer(every + rand.N(every/4+1))
		select {
		case <-pause.C:
		case <-c.reconnected:
			pause.Stop()
		case <-ctx.Done():
			pause.Stop()
			return
		}
	}
}

// Waiting is how many hints of a class wait for a worker; those out for work are not among them.
func (c *Client) Waiting(ctx context.Context, class string) (uint64, error) {
	var consumer jetstream.Consumer
	err := c.look(ctx, func(ctx context.Context) (err error) {
		consumer, err = c.js.Consumer(ctx, streamName, class)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("look at nats consumer %s: %w", class, err)
	}
	return consumer.CachedInfo().NumPending, nil
}

// Purge removes every hint, as a drill: the tasks are then found by polling and by repair.
func (c *Client) Purge(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	stream, err := c.js.Stream(ctx, streamName)
	if err != nil {
		return fmt.Errorf("purge hints: %w", err)
	}
	if err := stream.Purge(ctx); err != nil {
		return fmt.Errorf("purge hints: %w", err)
	}
	return nil
}
