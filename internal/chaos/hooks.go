package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// hook is one webhook of a workspace and what its receiver has seen. The receiver of one is gone after a while: it answers
// 410, and the webhook is disabled.
type hook struct {
	space  *space
	id     string
	leaves bool
	verify *standardwebhooks.Webhook

	mu       sync.Mutex
	messages map[string]*message // by the id of the message
	calls    int
	wrong    []string // what must not be
}

// message is what a receiver has seen of one message.
type message struct {
	body   string
	calls  int
	taken  bool // it was answered 2xx
	failed bool // it was answered otherwise once; a second time is minutes away
}

// told is the body of a message.
type told struct {
	Type string `json:"type"`
	Data struct {
		EventID    string `json:"event_id"`
		EventType  string `json:"event_type"`
		Generation int    `json:"generation"`
	} `json:"data"`
}

// receivers is the server of all receivers. While it is wicked it fails, stalls and hangs up.
type receivers struct {
	seed   uint64
	wicked bool

	mu     sync.Mutex
	hooks  map[string]*hook // by path
	acts   map[string]int
	healed bool
}

const (
	leavesAfter  = 8 // calls that a receiver takes before it is gone
	receiverWait = 2 * time.Second
	mostMessage  = 64 << 10 // messages have some hundred bytes
)

// newReceivers listens; the address goes into the URLs of webhooks.
func (w *world) newReceivers() (string, error) {
	w.receivers = &receivers{seed: w.cfg.Seed, wicked: w.cfg.has(faultHooks), hooks: map[string]*hook{}, acts: map[string]int{}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("receivers: %w", err)
	}
	server := &http.Server{Handler: w.receivers, ReadHeaderTimeout: receiverWait}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	w.t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	return "http://" + listener.Addr().String(), nil
}

// webhooks gives every workspace a webhook before anything breaks. Its creation has no idempotency key.
func (w *world) webhooks(ctx context.Context, n *notes) error {
	address, err := w.newReceivers()
	if err != nil {
		return err
	}
	owner := w.client("webhooks", n)
	for i, s := range w.spaces {
		path := fmt.Sprintf("/hook/%d", i)
		got, err := owner.send(ctx, s, request{method: http.MethodPost, path: "/v1/webhooks", body: map[string]any{
			"name": "chaos", "url": address + path, "event_types": []string{"event.succeeded", "event.failed"},
		}})
		var made struct{ ID, Secret string }
		if err != nil || json.Unmarshal(got.body, &made) != nil || made.Secret == "" {
			return fmt.Errorf("make a webhook: %d %s: %w", got.status, got.code(), err)
		}
		if err := onlyHook(ctx, owner, s, made.ID); err != nil {
			return err
		}
		h := &hook{space: s, id: made.ID, leaves: i == 1 && w.receivers.wicked, messages: map[string]*message{}}
		if h.verify, err = standardwebhooks.NewWebhook(made.Secret); err != nil {
			return fmt.Errorf("make a webhook: %w", err)
		}
		w.receivers.mu.Lock()
		w.receivers.hooks[path] = h
		w.receivers.mu.Unlock()
		w.hooks, w.secrets = append(w.hooks, h), append(w.secrets, made.Secret)
	}
	return nil
}

// onlyHook removes what a creation has left whose answer got lost.
func onlyHook(ctx context.Context, owner *client, s *space, id string) error {
	got, err := owner.send(ctx, s, request{method: http.MethodGet, path: "/v1/webhooks"})
	var list struct {
		Results []struct{ ID string } `json:"results"`
	}
	if err != nil || json.Unmarshal(got.body, &list) != nil || len(list.Results) == 0 {
		return fmt.Errorf("list webhooks: %d %s: %w", got.status, got.code(), err)
	}
	for _, other := range list.Results {
		if other.ID == id {
			continue
		}
		if _, err := owner.send(ctx, s, request{method: http.MethodDelete, path: "/v1/webhooks/" + other.ID}); err != nil {
			return err
		}
	}
	return nil
}

// heal makes every receiver take everything from now on.
func (r *receivers) heal() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.healed = true
}

// ServeHTTP notes a message and answers as the dice of the call say.
func (r *receivers) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(io.LimitReader(request.Body, mostMessage))
	r.mu.Lock()
	h, healed := r.hooks[request.URL.Path], r.healed
	r.mu.Unlock()
	if h == nil || err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	m, nth, gone := h.note(request.Header, body)
	if gone && !healed {
		r.act("is gone")
		w.WriteHeader(http.StatusGone)
		return
	}
	status := http.StatusOK
	if r.wicked && !healed {
		var drop bool
		if status, drop = r.misbehave(h.dice(r.seed, nth), h.fails(m)); drop {
			panic(http.ErrAbortHandler)
		}
	}
	if status == http.StatusOK {
		h.take(m)
	}
	w.WriteHeader(status)
}

// note keeps what came, and tells which call of the hook it is.
func (h *hook) note(header http.Header, body []byte) (m *message, nth int, gone bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls++
	id := header.Get("webhook-id")
	if err := h.verify.Verify(body, header); err != nil {
		h.wrong = append(h.wrong, fmt.Sprintf("%s: %v", id, err))
	}
	m = h.messages[id]
	if m == nil {
		m = &message{body: string(body)}
		h.messages[id] = m
	}
	m.calls++
	if m.body != string(body) {
		h.wrong = append(h.wrong, id+" has two bodies")
	}
	return m, h.calls, h.leaves && h.calls > leavesAfter
}

// fails tells whether the message may be refused: once, as after a second time it comes in five minutes.
func (h *hook) fails(m *message) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	may := !m.failed
	m.failed = true
	return may
}

func (h *hook) take(m *message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m.taken = true
}

func (h *hook) dice(seed uint64, nth int) *rand.Rand {
	hash := fnv.New64a()
	_, _ = fmt.Fprintf(hash, "hook %s/%d", h.space.name, nth)
	return rand.New(rand.NewPCG(seed, hash.Sum64()))
}

func (r *receivers) misbehave(dice *rand.Rand, mayFail bool) (status int, drop bool) {
	roll := dice.Float64()
	switch {
	case roll < 0.10 && mayFail:
		r.act("fails")
		return http.StatusInternalServerError, false
	case roll < 0.14 && mayFail:
		r.act("hangs up")
		return 0, true
	case roll < 0.25:
		r.act("stalls")
		time.Sleep(between(dice, 0, receiverWait))
	}
	return http.StatusOK, false
}

func (r *receivers) act(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.acts[name]++
}

// revive gives the webhook whose receiver was gone back to it, with everything that it has missed, and sends to the others
// again what was given up because too many workers died of something while they had it.
func (w *world) revive(ctx context.Context, n *notes, hooks ...*hook) {
	owner := w.client("webhooks healed", n)
	for _, h := range hooks {
		path, body, err := "/v1/webhooks/"+h.id, map[string]any{"failed_only": true}, error(nil)
		if h.leaves {
			_, err = owner.send(ctx, h.space, request{method: http.MethodPut, path: path, body: map[string]any{"active": true}})
			body = map[string]any{"since": w.log.began.UTC().Add(-time.Minute).Format(time.RFC3339)}
		}
		for err == nil {
			var got answer
			got, err = owner.send(ctx, h.space, request{method: http.MethodPost, path: path + "/replay", body: body})
			var page struct {
				Next *string `json:"next_cursor"`
			}
			if err == nil && (!got.ok() || json.Unmarshal(got.body, &page) != nil) {
				err = fmt.Errorf("%d %s", got.status, got.code())
			}
			if err != nil || page.Next == nil {
				break
			}
			body["cursor"] = *page.Next
		}
		if err != nil {
			n.contradict("a webhook was not revived", err.Error())
		}
	}
}

// endsSQL are the ends that a workspace's webhook must be told.
const endsSQL = `
SELECT t.id, c.generation, c.outcome
  FROM credit_closings c JOIN all_tasks t ON t.id = c.task_id
 WHERE t.workspace_id = $1 AND t.kind <> 'webhook_delivery'`

// toldBound is how long the last messages may take: a look for news, and a delay after a receiver's failure.
const toldBound = 45 * time.Second

// toldAgain is when what is still missing is looked for among what was given up.
const toldAgain = 15 * time.Second

// checkHooks holds that every end was told at least once, under one id, in one body, with a right signature, and nothing else.
func (w *world) checkHooks(ctx context.Context, n *notes, r *report) error {
	deadline, again := time.Now().Add(toldBound), time.Now().Add(toldAgain)
	for _, h := range w.hooks {
		for {
			missing, err := w.untold(ctx, h)
			if err != nil {
				return err
			}
			if len(missing) == 0 {
				break
			}
			if time.Now().After(deadline) {
				for _, what := range missing {
					r.find(lost, "a webhook was not told of an end", "%s: %s", h.space.name, what)
				}
				break
			}
			if time.Now().After(again) {
				again = time.Now().Add(toldAgain)
				w.revive(ctx, n, h)
			}
			rest(ctx, quietPoll)
		}
		h.check(r)
	}
	return nil
}

// untold are the ends that no message was taken of.
func (w *world) untold(ctx context.Context, h *hook) ([]string, error) {
	taken := map[string]bool{}
	h.mu.Lock()
	for _, m := range h.messages {
		var said told
		if m.taken && json.Unmarshal([]byte(m.body), &said) == nil {
			taken[fmt.Sprintf("%s %d %s", said.Data.EventID, said.Data.Generation, said.Type)] = true
		}
	}
	h.mu.Unlock()
	rows, err := w.sql.Query(ctx, endsSQL, h.space.id)
	if err != nil {
		return nil, fmt.Errorf("read ends: %w", err)
	}
	defer rows.Close()
	var missing []string
	for rows.Next() {
		var id uuid.UUID
		var generation int
		var outcome string
		if err := rows.Scan(&id, &generation, &outcome); err != nil {
			return nil, fmt.Errorf("read ends: %w", err)
		}
		if what := fmt.Sprintf("evt_%s %d event.%s", id, generation, outcome); !taken[what] {
			missing = append(missing, what)
		}
	}
	return missing, rows.Err()
}

// check looks at everything that came.
func (h *hook) check(r *report) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, what := range h.wrong {
		r.find(lost, "a message is not what was signed", "%s: %s", h.space.name, what)
	}
	ids := map[string]string{}
	for id, m := range h.messages {
		var said told
		if err := json.Unmarshal([]byte(m.body), &said); err != nil || !strings.HasPrefix(said.Type, "event.") {
			r.find(lost, "a message says nothing", "%s", id)
		}
		if said.Data.EventType == kindDelivery {
			r.find(duplicated, "a webhook was told of a delivery", "%s", id)
		}
		what := fmt.Sprintf("%s %d", said.Data.EventID, said.Data.Generation)
		if other := ids[what]; other != "" {
			r.find(duplicated, "one end has two messages", "%s: %s and %s", what, other, id)
		}
		ids[what] = id
		if words := canariesIn([]byte(m.body)); len(words) > 0 {
			r.find(leaked, "a message has content", "%s: %s", id, words[0])
		}
	}
}

// heard is what the receivers did, for the report.
func (w *world) heard() string {
	calls, messages := 0, 0
	for _, h := range w.hooks {
		h.mu.Lock()
		calls, messages = calls+h.calls, messages+len(h.messages)
		h.mu.Unlock()
	}
	w.receivers.mu.Lock()
	defer w.receivers.mu.Unlock()
	return fmt.Sprintf("%d messages in %d calls; %s", messages, calls, tally(w.receivers.acts))
}
