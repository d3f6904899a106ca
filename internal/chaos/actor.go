package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"
)

// actor is one caller: it sends its commands one after the other, each until the answer is definite.
type actor struct {
	cfg    Config
	number int
	space  *space
	client *client
	notes  *notes
	plan   *rand.Rand
	count  int

	adds      []*command // inferred
	verbatims []*command
	all       []*command
	items     []*item
	exports   []*command
	opinions  map[string]*opinion // by record
}

// choice is every random number of one operation, drawn before anything else: what one operation takes doesn't depend on
// what earlier ones met.
type choice struct {
	op                  float64
	user, target, extra int
	facts, raw          int
	odd                 float64
	pause               float64
}

const usersOfActor = 3

func (a *actor) choose() choice {
	return choice{
		op: a.plan.Float64(), user: a.plan.IntN(usersOfActor), target: a.plan.IntN(1 << 30), extra: a.plan.IntN(1 << 30),
		facts: a.plan.IntN(4), raw: 1 + a.plan.IntN(2), odd: a.plan.Float64(), pause: a.plan.ExpFloat64(),
	}
}

// operation is one thing that an actor does. It is false when there was nothing to do it to.
type operation struct {
	name   string
	weight float64
	do     func(a *actor, ctx context.Context, n int, c choice) bool
}

func operations() []operation {
	return []operation{
		{"add", 30, (*actor).add},
		{"add by mem0", 6, (*actor).addMem0},
		{"replay", 9, (*actor).replay},
		{"conflict", 4, (*actor).conflict},
		{"refused", 3, (*actor).refused},
		{"verbatim", 10, (*actor).verbatim},
		{"put", 5, (*actor).put},
		{"delete", 3, (*actor).remove},
		{"batch put", 2, (*actor).batchPut},
		{"batch delete", 2, (*actor).batchDelete},
		{"cancel", 6, (*actor).cancel},
		{"retry", 6, (*actor).retry},
		{"erase", 2, (*actor).erase},
		{"item", 7, (*actor).keepItem},
		{"item edit", 4, (*actor).editItem},
		{"item forget", 2, (*actor).forgetItem},
		{"search", 3, (*actor).search},
		{"add by tool", 6, (*actor).addTool},
		{"feedback", 4, (*actor).judge},
		{"export", 1.5, (*actor).export},
		{"read export", 2, (*actor).readExport},
	}
}

// run sends every command of the plan, gap apart on average.
func (a *actor) run(ctx context.Context, gap time.Duration) {
	list := operations()
	total := 0.0
	for _, op := range list {
		total += op.weight
	}
	for n := range a.count {
		c := a.choose()
		rest := time.NewTimer(min(time.Duration(c.pause*float64(gap)), 5*gap))
		at := c.op * total
		for _, op := range list {
			if at -= op.weight; at < 0 {
				a.notes.did(op.name, op.do(a, ctx, n, c))
				break
			}
		}
		select {
		case <-rest.C:
		case <-ctx.Done():
			rest.Stop()
			return
		}
	}
}

// settle sends again what got no definite answer, now that nothing is broken any more.
func (a *actor) settle(ctx context.Context) {
	for _, c := range a.all {
		if c.event == uuid.Nil && c.refusal == "" {
			c.late = true
			a.submit(ctx, c)
		}
	}
}

func (a *actor) user(c choice) string { return fmt.Sprintf("user-%d-%d", a.number, c.user) }

func pick[T any](list []T, target int) (T, bool) {
	var none T
	if len(list) == 0 {
		return none, false
	}
	return list[target%len(list)], true
}

// issue notes a new command and sends it.
func (a *actor) issue(ctx context.Context, c *command) {
	c.clean = true
	a.all = append(a.all, c)
	a.notes.add(c)
	a.submit(ctx, c)
}

// submit sends a command, for the first time or again, and notes what is told of it.
func (a *actor) submit(ctx context.Context, c *command) {
	got, err := a.client.send(ctx, c.space, c.request)
	if err != nil {
		c.clean = false
		return
	}
	c.clean = c.clean && got.sure
	if !got.ok() {
		if c.event != uuid.Nil {
			a.notes.contradict("a replay was refused", fmt.Sprintf("%s: %d %s", c.event, got.status, got.code()))
		}
		c.refusal = got.code()
		return
	}
	id, view := got.receipt()
	switch {
	case id == uuid.Nil:
		a.notes.contradict("an acceptance has no receipt", fmt.Sprintf("%s %s: %d", c.request.method, c.request.path, got.status))
	case c.event == uuid.Nil:
		c.event, c.refusal = id, ""
		if c.kind == kindAdd {
			for _, r := range view.Results {
				c.records = append(c.records, r.ID)
			}
		}
	case c.event != id:
		a.notes.contradict("one key has two receipts", fmt.Sprintf("%s and %s", c.event, id))
	}
}

// words returns the canaries of a command.
func (a *actor) words(n, facts, raw int) (f, r []string) {
	for i := range facts {
		f = append(f, a.cfg.canary(canaryFact, a.number, n, i))
	}
	for i := range raw {
		r = append(r, a.cfg.canary(canaryRaw, a.number, n, i))
	}
	return f, r
}

func (a *actor) conversation(n int, c choice) (map[string]any, []string, []string) {
	facts, raw := a.words(n, c.facts, c.raw)
	messages := []map[string]string{}
	for i, word := range raw {
		text := "well, " + word + " and so on"
		if i == 0 && c.odd < 0.08 {
			text += ", " + doomed
		}
		messages = append(messages, map[string]string{"role": "user", "content": text})
	}
	for _, word := range facts {
		messages = append(messages, map[string]string{"role": "user", "content": factMark + word + " is so"})
	}
	return map[string]any{"user_id": a.user(c), "messages": messages}, facts, raw
}

func (a *actor) add(ctx context.Context, n int, c choice) bool {
	body, facts, raw := a.conversation(n, c)
	if c.extra%5 == 0 {
		body["ordered"] = false
	}
	if c.extra%7 == 0 {
		body["instructions"] = "be brief, " + raw[0]
	}
	cmd := &command{
		space: a.space, kind: kindInfer, user: a.user(c), facts: facts, raw: raw,
		request: request{method: http.MethodPost, path: "/v1/memories", key: a.cfg.key(a.number, n), body: body},
	}
	a.adds = append(a.adds, cmd)
	a.issue(ctx, cmd)
	return true
}

func (a *actor) addMem0(ctx context.Context, n int, c choice) bool {
	body, facts, raw := a.conversation(n, c)
	cmd := &command{
		space: a.space, kind: kindInfer, user: a.user(c), facts: facts, raw: raw,
		request: request{method: http.MethodPost, path: "/v3/memories/add/", key: a.cfg.key(a.number, n), body: body, mem0: true},
	}
	a.adds = append(a.adds, cmd)
	a.issue(ctx, cmd)
	return true
}

func (a *actor) replay(ctx context.Context, _ int, c choice) bool {
	cmd, found := pick(a.all, c.target)
	if found {
		again := 1 + c.extra%2
		for range again {
			a.submit(ctx, cmd)
		}
	}
	return found
}

// conflict sends another command under a key that is taken.
func (a *actor) conflict(ctx context.Context, n int, c choice) bool {
	cmd, found := pick(a.adds, c.target)
	if !found || cmd.event == uuid.Nil || cmd.tool {
		return false
	}
	other := request{
		method: http.MethodPost, path: "/v1/memories", key: cmd.request.key,
		body: map[string]any{"user_id": a.user(c), "content": "other words, " + a.cfg.canary(canaryRefused, a.number, n, 0)},
	}
	got, err := a.client.send(ctx, a.space, other)
	if err == nil && got.code() != "IDEMPOTENCY_CONFLICT" {
		a.notes.contradict("a taken key took another command", fmt.Sprintf("%s: %d %s", cmd.event, got.status, got.code()))
	}
	return true
}

// refused sends what must be refused, under a key that must stay free.
func (a *actor) refused(ctx context.Context, n int, c choice) bool {
	word := a.cfg.canary(canaryRefused, a.number, n, 0)
	bodies := []map[string]any{
		{"user_id": a.user(c), "content": "something " + word, word: true},
		{"content": "nobody's " + word},
		{"user_id": a.user(c), "messages": []map[string]string{{"role": "oracle", "content": word, "tone": word}}},
	}
	cmd := &command{
		space: a.space, kind: kindInfer, user: a.user(c), raw: []string{word}, clean: true,
		request: request{method: http.MethodPost, path: "/v1/memories", key: a.cfg.key(a.number, n), body: bodies[c.extra%len(bodies)]},
	}
	a.notes.add(cmd)
	a.submit(ctx, cmd)
	if cmd.event != uuid.Nil {
		a.notes.contradict("nonsense was accepted", cmd.event.String())
	}
	return true
}

func (a *actor) search(ctx context.Context, _ int, c choice) bool {
	body := map[string]any{"query": "what is so", "user_id": a.user(c)}
	if c.extra%2 == 0 {
		_, err := a.client.send(ctx, a.space, request{method: http.MethodPost, path: "/v1/memories/search", body: body})
		return err == nil
	}
	path := "/v1/memories?user_id=" + url.QueryEscape(a.user(c))
	_, err := a.client.send(ctx, a.space, request{method: http.MethodGet, path: path})
	return err == nil
}
