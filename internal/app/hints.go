package app

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/obs"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/wakeup"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// wakeups joins the use cases to NATS, or to nothing when NATS is not used: hints and notices are then simply not
// sent, and everything is found by polling.
type wakeups struct {
	client *wakeup.Client // nil without NATS
}

// Publish implements write.Publisher and worker.Publisher. The client counts failures; polling makes up for them.
func (w wakeups) Publish(ctx context.Context, hint task.Hint) {
	if w.client == nil {
		return
	}
	_ = w.client.Publish(ctx, wakeup.Hint{
		TaskID: hint.TaskID, WorkspaceID: hint.WorkspaceID, HintSeq: hint.Seq, Class: hint.Priority, Trace: traceOf(ctx),
	})
}

// traceOf is where in a trace the work of ctx is done, as hints carry it.
func traceOf(ctx context.Context) map[string]string {
	if at := task.OriginOf(ctx); !at.IsZero() {
		return map[string]string{traceParent: at.Parent()}
	}
	return nil
}

// traceParent is the key of W3C trace context in a hint.
const traceParent = "traceparent"

// Notify implements write.Notifier and worker.Notifier. Whoever waits reads again by itself.
func (w wakeups) Notify(ctx context.Context, workspace, event uuid.UUID) {
	if w.client == nil {
		return
	}
	_ = w.client.Notify(ctx, workspace, event)
}

// Subscribe implements recall.Notices. Where it can't subscribe the channel stays silent.
func (w wakeups) Subscribe(workspace, event uuid.UUID) (signal <-chan struct{}, cancel func()) {
	if w.client == nil {
		return nil, func() {}
	}
	signal, cancel, err := w.client.Subscribe(workspace, event)
	if err != nil {
		return nil, func() {}
	}
	return signal, cancel
}

// healthy tells whether NATS can be used; not using it is healthy.
func (w wakeups) healthy() error {
	if w.client == nil {
		return nil
	}
	return w.client.Healthy()
}

// stop flushes acknowledgements and closes the connection.
func (w wakeups) stop(ctx context.Context) error {
	if w.client == nil {
		return nil
	}
	return w.client.Stop(ctx)
}

// counts are the client's numbers for metrics.
func (w wakeups) counts() obs.Hints {
	s := w.client.Stats()
	return obs.Hints{
		Published: s.Published, Failed: s.PublishFailed, Duplicates: s.Duplicates, Malformed: s.Malformed,
		Notices: s.Notices, Reconnects: s.Reconnects,
	}
}

// pull returns the worker's source of hints, nil without NATS.
func (w wakeups) pull() (worker.Wakeups, error) {
	if w.client == nil {
		return nil, nil
	}
	consumer, err := wakeup.NewConsumer(w.client, wakeup.ConsumerConfig{})
	if err != nil {
		return nil, err
	}
	return puller{consumer}, nil
}

type puller struct{ consumer *wakeup.Consumer }

// Fetch implements worker.Wakeups.
func (p puller) Fetch(ctx context.Context, priority string, n int) ([]worker.Wakeup, error) {
	found, err := p.consumer.Fetch(ctx, priority, n)
	out := make([]worker.Wakeup, len(found))
	for i, d := range found {
		out[i] = delivery{d}
	}
	return out, err
}

// delivery implements worker.Wakeup.
type delivery struct{ d wakeup.Delivery }

func (d delivery) Hint() task.Hint {
	h := d.d.Hint
	return task.Hint{TaskID: h.TaskID, WorkspaceID: h.WorkspaceID, Seq: h.HintSeq, Priority: h.Class, Origin: task.ParseOrigin(h.Trace[traceParent])}
}

func (d delivery) Ack(context.Context) error     { return d.d.Ack() }
func (d delivery) Nak(delay time.Duration) error { return d.d.Nak(delay) }
func (d delivery) InProgress() error             { return d.d.InProgress() }
