package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/google/uuid"
)

// boss is the operator: it does its acts over the operators' API while everything breaks, each until the answer is
// definite, and often twice.
type boss struct {
	cfg    Config
	spaces []*space
	client *client
	notes  *notes
	plan   *rand.Rand
	token  string
	count  int

	owed      []grant
	newcomers []*newcomer
}

// grant is one that was asked for, and not answered definitely yet.
type grant struct {
	space     *space
	reference string
	amount    int64
}

// newcomer is a workspace that an operator makes while everything breaks. It brings what it knows.
type newcomer struct {
	space   *space
	name    string
	words   []string
	event   uuid.UUID // of its import
	deleted bool
	spare   string // a key that was revoked
}

const (
	shareOfActs    = 12 // one act of the operator for so many commands
	mostNewcomers  = 40 // each brings more than a hundred memories
	suspensionMost = 1500 * time.Millisecond
)

// duty is one thing to do, with every random number that it needs.
type duty struct {
	op             float64
	target, amount int
	twice          bool
	last           time.Duration
	pause          float64
}

func (b *boss) choose() duty {
	return duty{
		op: b.plan.Float64(), target: b.plan.IntN(1 << 30), amount: 1 + b.plan.IntN(9), twice: b.plan.IntN(2) == 0,
		last: between(b.plan, 200*time.Millisecond, suspensionMost), pause: b.plan.ExpFloat64(),
	}
}

// run does every act of the plan, gap apart on average.
func (b *boss) run(ctx context.Context, gap time.Duration) {
	for n := range b.count {
		d := b.choose()
		rest := time.NewTimer(min(time.Duration(d.pause*float64(gap)), 3*gap))
		s := b.spaces[d.target%len(b.spaces)]
		switch {
		case d.op < 0.35:
			b.grant(ctx, s, n, d)
		case d.op < 0.55:
			b.suspend(ctx, s, d)
		case d.op < 0.70:
			b.limit(ctx, s, d)
		case d.op < 0.90:
			b.welcome(ctx, n, d)
		default:
			b.look(ctx)
		}
		select {
		case <-rest.C:
		case <-ctx.Done():
			rest.Stop()
			return
		}
	}
}

func (b *boss) ask(ctx context.Context, method, path string, body any) (answer, error) {
	return b.client.send(ctx, nil, request{method: method, path: "/admin/v1" + path, body: body, bearer: b.token})
}

func (b *boss) done(name string, worked bool) { b.notes.did("operator: "+name, worked) }

// must notes an answer that an operator must not get.
func (b *boss) must(what string, got answer, err error, statuses ...int) bool {
	if err != nil {
		return false
	}
	for _, status := range statuses {
		if got.status == status {
			return true
		}
	}
	b.notes.contradict("an operator was refused", fmt.Sprintf("%s: %d %s", what, got.status, got.code()))
	return false
}

func (b *boss) grant(ctx context.Context, s *space, n int, d duty) {
	g := grant{s, fmt.Sprintf("grant/%d", n), int64(d.amount)}
	path := "/workspaces/" + s.id.String() + "/grants/" + fmt.Sprintf("grant%%2F%d", n)
	b.done("grant", true)
	b.give(ctx, g, path)
	if d.twice {
		got, err := b.ask(ctx, http.MethodPut, path, map[string]any{"amount": g.amount + 1})
		if err == nil && got.ok() { // the reference is taken by now, unless nothing has arrived yet
			if len(b.owed) > 0 && b.owed[len(b.owed)-1] == g {
				b.owed = b.owed[:len(b.owed)-1]
				s.granted += g.amount + 1
				return
			}
			b.notes.contradict("a taken key took another command", fmt.Sprintf("grant %s", g.reference))
		}
	}
}

// give asks for a grant until it is known to be given.
func (b *boss) give(ctx context.Context, g grant, path string) {
	got, err := b.ask(ctx, http.MethodPut, path, map[string]any{"amount": g.amount})
	switch {
	case err != nil:
		b.owed = append(b.owed, g)
	case b.must("grant", got, err, http.StatusOK, http.StatusCreated):
		g.space.granted += g.amount
	}
}

// suspend stops a workspace for a moment.
func (b *boss) suspend(ctx context.Context, s *space, d duty) {
	path := "/workspaces/" + s.id.String() + "/suspension"
	b.done("suspend", true)
	for range 2 {
		got, err := b.ask(ctx, http.MethodPut, path, nil)
		b.must("suspend", got, err, http.StatusOK)
	}
	rest(ctx, d.last)
	got, err := b.ask(ctx, http.MethodDelete, path, nil)
	b.must("resume", got, err, http.StatusOK)
}

func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// limit keeps a workspace short for a moment.
func (b *boss) limit(ctx context.Context, s *space, d duty) {
	path := "/workspaces/" + s.id.String() + "/limits"
	b.done("limit", true)
	got, err := b.ask(ctx, http.MethodPatch, path, map[string]any{"max_pending": d.amount, "lease_cap": 1})
	b.must("limit", got, err, http.StatusOK)
	rest(ctx, d.last)
	b.unlimit(ctx, s)
}

func (b *boss) unlimit(ctx context.Context, s *space) {
	got, err := b.ask(ctx, http.MethodPatch, "/workspaces/"+s.id.String()+"/limits", map[string]any{"max_pending": 0, "lease_cap": 0})
	b.must("limit", got, err, http.StatusOK)
}

func (b *boss) look(ctx context.Context) {
	b.done("look", true)
	for _, path := range []string{"/health", "/acts?limit=100", "/workspaces"} {
		got, err := b.ask(ctx, http.MethodGet, path, nil)
		b.must(path, got, err, http.StatusOK)
	}
}

// welcome makes a workspace with keys and lets it import what it brings. Every third one is deleted at once.
func (b *boss) welcome(ctx context.Context, n int, d duty) {
	if len(b.newcomers) >= mostNewcomers {
		b.done("newcomer", false)
		return
	}
	b.done("newcomer", true)
	c := &newcomer{name: fmt.Sprintf("newcomer-%d", n), space: &space{}}
	var made struct{ ID string }
	for range 2 {
		got, err := b.ask(ctx, http.MethodPut, "/workspaces/"+c.name, nil)
		if !b.must("create workspace", got, err, http.StatusOK, http.StatusCreated) || json.Unmarshal(got.body, &made) != nil {
			return
		}
	}
	id, err := uuid.Parse(made.ID[len("ws_"):])
	if err != nil {
		b.notes.contradict("an operator was refused", "a workspace has no id")
		return
	}
	c.space.id = id
	b.newcomers = append(b.newcomers, c)
	c.space.key, _ = b.key(ctx, c, "main")
	if c.space.key == "" {
		return
	}
	if spare, id := b.key(ctx, c, "spare"); spare != "" {
		for range 2 {
			got, err := b.ask(ctx, http.MethodDelete, "/workspaces/"+c.name+"/keys/"+id, nil)
			if b.must("revoke", got, err, http.StatusOK) {
				c.spare = spare
			}
		}
	}
	b.bring(ctx, c, n, d)
	if d.target%3 == 0 {
		b.remove(ctx, c)
	}
}

// key makes a key of the newcomer. Where the answer with its secret got lost it asks under another reference.
func (b *boss) key(ctx context.Context, c *newcomer, reference string) (secret, id string) {
	for i := range 5 {
		got, err := b.ask(ctx, http.MethodPost, "/workspaces/"+c.name+"/keys", map[string]any{
			"reference": fmt.Sprintf("%s %d", reference, i), "permissions": []string{"memory:read", "memory:write", "operations:read", "admin"},
		})
		if !b.must("create key", got, err, http.StatusOK, http.StatusCreated) {
			return "", ""
		}
		var made struct {
			ID     string
			Secret *string
		}
		if json.Unmarshal(got.body, &made) != nil || got.sure && made.Secret == nil {
			b.notes.contradict("an operator was refused", "a new key has no secret")
			return "", ""
		}
		if made.Secret != nil {
			return *made.Secret, made.ID
		}
	}
	return "", ""
}

// bring imports the newcomer's snapshot, often twice under one key.
func (b *boss) bring(ctx context.Context, c *newcomer, n int, d duty) {
	snapshot, words, err := b.cfg.baggage(n)
	if err != nil {
		b.notes.contradict("an operator was refused", err.Error())
		return
	}
	c.words = words
	tries := 1
	if d.twice {
		tries = 2
	}
	for range tries {
		got, err := b.client.send(ctx, c.space, request{
			method: http.MethodPost, path: "/v1/imports", key: b.cfg.key(newcomerActor, n), raw: snapshot,
		})
		if !b.must("import", got, err, http.StatusAccepted, http.StatusOK) {
			continue
		}
		id, _ := got.receipt()
		if c.event != uuid.Nil && c.event != id {
			b.notes.contradict("one key has two receipts", fmt.Sprintf("%s and %s", c.event, id))
		}
		c.event = id
	}
}

func (b *boss) remove(ctx context.Context, c *newcomer) {
	b.done("delete", true)
	for range 2 {
		got, err := b.ask(ctx, http.MethodDelete, "/workspaces/"+c.space.id.String(), nil)
		c.deleted = b.must("delete workspace", got, err, http.StatusAccepted) || c.deleted
	}
}

// settle ends what an outage has left half done, now that nothing is broken any more.
func (b *boss) settle(ctx context.Context) {
	for _, s := range b.spaces {
		got, err := b.ask(ctx, http.MethodDelete, "/workspaces/"+s.id.String()+"/suspension", nil)
		b.must("resume", got, err, http.StatusOK)
		b.unlimit(ctx, s)
	}
	owed := b.owed
	b.owed = nil
	for _, g := range owed {
		b.give(ctx, g, "/workspaces/"+g.space.id.String()+"/grants/grant%2F"+g.reference[len("grant/"):])
	}
}
