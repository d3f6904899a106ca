package wakeup

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	natsconfig "github.com/holdfast-memory/holdfast/nats"
)

// Deviation is one setting of the stream or a consumer that works against Holdfast. Fix is the command that puts it
// right; with Anew it removes what cannot be changed, so that a process makes it anew.
type Deviation struct {
	Of, Setting, Have, Want, Fix string
	Anew                         bool
}

// Deviations compares stream and consumers with their definitions and with this client's AckWait, in what decides
// whether hints get lost or come too often. It changes nothing. The error tells that one of them can't be looked at.
func (c *Client) Deviations(ctx context.Context) ([]Deviation, error) {
	found, err := c.streamDeviations(ctx)
	if err != nil {
		return nil, fmt.Errorf("look at nats stream %s: %w", streamName, err)
	}
	definitions := natsconfig.Consumers()
	for _, name := range slices.Sorted(maps.Keys(definitions)) {
		more, err := c.consumerDeviations(ctx, name, definitions[name])
		if err != nil {
			return nil, fmt.Errorf("look at nats consumer %s: %w", name, err)
		}
		found = append(found, more...)
	}
	return found, nil
}

func (c *Client) streamDeviations(ctx context.Context) ([]Deviation, error) {
	var want jetstream.StreamConfig
	if err := decodeStrictly(natsconfig.Stream(), &want); err != nil {
		return nil, err
	}
	var stream jetstream.Stream
	err := c.look(ctx, func(ctx context.Context) (err error) {
		stream, err = c.js.Stream(ctx, streamName)
		return err
	})
	if err != nil {
		return nil, err
	}
	have := stream.CachedInfo().Config
	var found []Deviation
	if have.Retention != want.Retention {
		found = append(found, Deviation{
			Of: "stream", Setting: "retention", Have: have.Retention.String(), Want: want.Retention.String(),
			Fix: "nats stream rm " + streamName, Anew: true,
		})
	}
	if have.Discard != want.Discard {
		found = append(found, Deviation{
			Of: "stream", Setting: "discard", Have: have.Discard.String(), Want: want.Discard.String(),
			Fix: "nats stream edit " + streamName + " --discard new",
		})
	}
	return found, nil
}

func (c *Client) consumerDeviations(ctx context.Context, name string, definition []byte) ([]Deviation, error) {
	var want jetstream.ConsumerConfig
	if err := decodeStrictly(definition, &want); err != nil {
		return nil, err
	}
	var consumer jetstream.Consumer
	err := c.look(ctx, func(ctx context.Context) (err error) {
		consumer, err = c.js.Consumer(ctx, streamName, name)
		return err
	})
	if err != nil {
		return nil, err
	}
	have := consumer.CachedInfo().Config
	edit := "nats consumer edit " + streamName + " " + name
	var found []Deviation
	if have.AckWait < c.cfg.AckWait { // a hint would come again while its task still runs under its lease
		found = append(found, Deviation{
			Of: "consumer " + name, Setting: "ack_wait", Have: have.AckWait.String(), Want: c.cfg.AckWait.String() + " or more",
			Fix: edit + " --wait " + c.cfg.AckWait.String(),
		})
	}
	if have.MaxDeliver != want.MaxDeliver {
		wanted := strconv.Itoa(want.MaxDeliver)
		found = append(found, Deviation{
			Of: "consumer " + name, Setting: "max_deliver", Have: strconv.Itoa(have.MaxDeliver), Want: wanted,
			Fix: edit + " --max-deliver " + wanted,
		})
	}
	return found, nil
}
