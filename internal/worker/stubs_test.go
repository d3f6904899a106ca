package worker

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/task"
)

var errDatabase = errors.New("the database is down")

// hints is a source of wakeups that delivers what the test sends.
type hints struct {
	mu                *sync.Mutex // the rig's
	interactive, bulk chan *message
	err               error
	asked             []int
	outstanding       int
	most              int
}

func (h *hints) Fetch(ctx context.Context, class string, n int) ([]Wakeup, error) {
	h.mu.Lock()
	h.asked = append(h.asked, n)
	h.outstanding += n
	h.most = max(h.most, h.outstanding)
	err := h.err
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		h.outstanding -= n
		h.mu.Unlock()
	}()
	if err != nil {
		return nil, err
	}
	queue := h.interactive
	if class == task.Bulk {
		queue = h.bulk
	}
	var found []Wakeup
	select {
	case m := <-queue:
		found = append(found, m)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for len(found) < n {
		select {
		case m := <-queue:
			found = append(found, m)
		default:
			return found, nil
		}
	}
	return found, nil
}

// message is a delivered hint that remembers its answers.
type message struct {
	rig       *rig
	id        uuid.UUID
	workspace uuid.UUID
	acks      int
	naks      []time.Duration
	progress  int
}

func (m *message) Hint() task.Hint { return task.Hint{TaskID: m.id, WorkspaceID: m.workspace} }

func (m *message) Ack(context.Context) error {
	m.rig.mu.Lock()
	defer m.rig.mu.Unlock()
	m.acks++
	m.rig.note("ack")
	return nil
}

func (m *message) Nak(delay time.Duration) error {
	m.rig.mu.Lock()
	defer m.rig.mu.Unlock()
	m.naks = append(m.naks, delay)
	return nil
}

func (m *message) InProgress() error {
	m.rig.mu.Lock()
	defer m.rig.mu.Unlock()
	m.progress++
	return nil
}

type extractor struct {
	rig   *rig
	local bool
}

func (e *extractor) Extract(ctx context.Context, request model.Request) (model.Extraction, error) {
	e.rig.mu.Lock()
	e.rig.extractions++
	e.rig.requests = append(e.rig.requests, request)
	e.rig.note("extract")
	f, reply := e.rig.extract, e.rig.reply
	e.rig.mu.Unlock()
	if reply != nil {
		return reply(request)
	}
	return f(ctx)
}
func (e *extractor) Provider() string            { return "ex" }
func (e *extractor) Local() bool                 { return e.local }
func (e *extractor) Check(context.Context) error { return nil }

type embedder struct {
	rig   *rig
	local bool
}

func (e *embedder) Embed(ctx context.Context, texts []string) (model.Embedding, error) {
	e.rig.mu.Lock()
	e.rig.embedded = append(e.rig.embedded, texts)
	f := e.rig.embed
	e.rig.mu.Unlock()
	return f(ctx, texts)
}
func (e *embedder) Model() string               { return "vectors-1" }
func (e *embedder) Provider() string            { return "em" }
func (e *embedder) Local() bool                 { return e.local }
func (e *embedder) Check(context.Context) error { return nil }

// buffer collects a log.
type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *buffer) bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.buf.Bytes())
}

// untilDone is a provider call that lasts until it is cancelled.
func untilDone(ctx context.Context) (model.Extraction, error) {
	<-ctx.Done()
	return model.Extraction{}, model.NewError(task.Shutdown, "cancelled", context.Canceled)
}

// lasting is a provider call that takes d.
func lasting(d time.Duration) func(context.Context) (model.Extraction, error) {
	return func(ctx context.Context) (model.Extraction, error) {
		if !pause(ctx, d) {
			return model.Extraction{}, context.Cause(ctx)
		}
		return oneFact(), nil
	}
}
