package wakeup

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
)

const (
	noticePrefix = "done."
	// maxWaiters bounds the long-polls of one process; each holds an HTTP request, so the API's own limit comes first.
	maxWaiters = 20_000
)

// ErrTooManyWaiters says that this process already waits for as many tasks as it may.
var ErrTooManyWaiters = errors.New("too many waiters for notices")

type noticeKey struct{ workspace, task uuid.UUID }

// notices hands the notices of one wildcard subscription to the waiters of this process: a subscription for each
// long-poll would be two messages to every NATS server of a cluster.
type notices struct {
	mu      sync.Mutex
	sub     *nats.Subscription
	waiters map[noticeKey]map[chan struct{}]struct{}
	count   int
}

func newNotices() *notices { return &notices{waiters: map[noticeKey]map[chan struct{}]struct{}{}} }

func noticeSubject(workspace, task uuid.UUID) string {
	return noticePrefix + workspace.String() + "." + task.String()
}

// Subscribe returns a channel that gets a value when the task may have ended, any of the workspace with uuid.Nil: at its
// notice, and after every outage of NATS. Notices can be lost, so the caller also looks at the row, first right after Subscribe and then from time to
// time. cancel must be called, and may be called twice. With NATS down Subscribe works and nothing comes until NATS is
// back.
func (c *Client) Subscribe(workspace, task uuid.UUID) (woken <-chan struct{}, cancel func(), err error) {
	n := c.done
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.count >= maxWaiters {
		return nil, nil, ErrTooManyWaiters
	}
	if n.sub == nil {
		sub, err := c.nc.Subscribe(noticePrefix+"*.*", func(m *nats.Msg) {
			c.counts.notices.Add(1)
			n.deliver(m.Subject)
		})
		if err != nil {
			return nil, nil, fmt.Errorf("subscribe to notices: %w", err)
		}
		n.sub = sub
	}
	key, ch := noticeKey{workspace, task}, make(chan struct{}, 1)
	if n.waiters[key] == nil {
		n.waiters[key] = map[chan struct{}]struct{}{}
	}
	n.waiters[key][ch] = struct{}{}
	n.count++
	return ch, func() { n.remove(key, ch) }, nil
}

func (n *notices) remove(key noticeKey, ch chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	set := n.waiters[key]
	if _, ok := set[ch]; !ok {
		return
	}
	delete(set, ch)
	n.count--
	if len(set) == 0 {
		delete(n.waiters, key)
	}
}

func (n *notices) deliver(subject string) {
	ws, task, ok := strings.Cut(strings.TrimPrefix(subject, noticePrefix), ".")
	if !ok {
		return
	}
	workspaceID, okWorkspace := parseID(ws)
	taskID, okTask := parseID(task)
	if !okWorkspace || !okTask {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, task := range []uuid.UUID{taskID, uuid.Nil} {
		for ch := range n.waiters[noticeKey{workspaceID, task}] {
			wake(ch)
		}
	}
}

func (n *notices) wakeAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, set := range n.waiters {
		for ch := range set {
			wake(ch)
		}
	}
}

// wake never blocks: a waiter that has one wakeup pending needs no second.
func wake(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
