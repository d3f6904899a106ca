package worker

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// canary is in every payload, and must be in no log.
const canary = "canary-7f3a"

// rig is a worker in a bubble of fake time, over a store in memory: these tests are about timing and order. What
// the real store does is tested with it. The test holds mu but while time elapses, so that it may read and set
// everything here.
type rig struct {
	t     *testing.T
	start time.Time
	cfg   Config
	deps  Deps
	logs  *buffer
	w     *Worker

	mu     sync.Mutex
	order  []string // what happened, in order
	leases map[uuid.UUID]Lease
	due    []uuid.UUID
	lone   []uuid.UUID // tasks that crashed, due

	claims      []time.Time
	beats       []time.Time
	dues        []time.Time
	looks       []time.Time // for tasks that crashed
	counts      []time.Time
	commits     []Commit
	settles     []Settle
	fails       []Fail
	laters      []Later
	rescued     []Rescued
	rescues     int
	live        []LiveRecord
	published   []task.Hint
	notified    []uuid.UUID
	extractions int
	requests    []model.Request
	asked       [][]string // the terms by which known records were looked for
	embedded    [][]string

	claim     func() error
	rescue    func() error
	lookAlone func() error
	leased    func() (map[uuid.UUID]Load, error)
	heartbeat func(ctx context.Context) (Beat, error)
	commit    func(ctx context.Context, try int) Done
	settle    func(ctx context.Context) Done
	later     func(ctx context.Context) Done
	outage    func() int
	extract   func(ctx context.Context) (model.Extraction, error)
	reply     func(request model.Request) (model.Extraction, error) // before extract, if it is set
	known     func() ([]KnownRecord, error)
	embed     func(ctx context.Context, texts []string) (model.Embedding, error)
	hints     *hints
}

// bubble runs a test in fake time with a rig that has hints and no poll; change it before begin.
func bubble(t *testing.T, f func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{
			t: t, start: time.Now(), leases: map[uuid.UUID]Lease{}, logs: &buffer{},
			hints: &hints{interactive: make(chan *message, 100), bulk: make(chan *message, 100)},
			cfg: Config{
				LeaseTTL: time.Minute, ModelTimeout: 10 * time.Minute, Slots: 8, Rand: func() float64 { return 0.5 },
			},
		}
		r.hints.mu = &r.mu
		r.extract = func(context.Context) (model.Extraction, error) { return oneFact(), nil }
		r.embed = func(_ context.Context, texts []string) (model.Embedding, error) {
			return model.Embedding{Vectors: make([]model.Vector, len(texts))}, nil
		}
		r.deps = Deps{
			Claims: r, Steps: r, Providers: r, Extractor: &extractor{rig: r}, Embedder: &embedder{rig: r, local: true},
			Wakeups: r.hints, Publisher: r, Notifier: r,
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		f(t, r)
		if bytes.Contains(r.logs.bytes(), []byte(canary)) {
			t.Errorf("a payload was logged: %s", r.logs.bytes())
		}
	})
}

func oneFact() model.Extraction {
	return model.Extraction{Facts: []model.Fact{{Text: "The user likes tea"}}, Usage: model.Usage{Calls: 1, TokensIn: 7}}
}

// begin starts the worker; it is stopped at the end of the test if it wasn't before.
func (r *rig) begin() {
	r.t.Helper()
	r.cfg.Log = zerolog.New(r.logs)
	w, err := New(r.deps, r.cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	r.w = w
	if err := w.Start(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

// end stops the worker and reports what doesn't stop within a minute.
func (r *rig) end() {
	r.t.Helper()
	if err := r.stop(time.Minute); err != nil {
		r.t.Error(err)
	}
}

// elapse lets d pass, of the bubble's fake time, and everything come to rest.
func (r *rig) elapse(d time.Duration) {
	r.mu.Unlock()
	defer r.mu.Lock()
	<-time.After(d)
	synctest.Wait()
}

func (r *rig) stop(bound time.Duration) error {
	r.mu.Unlock()
	defer r.mu.Lock()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	return r.w.Stop(ctx)
}

// add stores a task; change edits its lease.
func (r *rig) add(change func(*Lease)) uuid.UUID {
	payload, err := command.Add{
		Scope: memory.Scope{UserID: "u"}, Infer: true, Messages: []command.Message{{Role: "user", Content: canary}},
		Metadata: []byte(`{"k":1}`),
	}.Encode()
	if err != nil {
		r.t.Fatal(err)
	}
	l := Lease{
		TaskID: uuid.New(), WorkspaceID: uuid.New(), Kind: task.Infer, Stage: task.Accepted, Generation: 1, Claim: 1,
		Crashes: 1, Spent: task.Spent{}, Payload: payload, Format: command.Format,
	}
	if change != nil {
		change(&l)
	}
	r.leases[l.TaskID] = l
	if l.Crashes > CrashedFrom {
		r.lone = append(r.lone, l.TaskID)
	}
	return l.TaskID
}

// hint stores a task and delivers its hint.
func (r *rig) hint(change func(*Lease)) *message {
	m := &message{rig: r, id: r.add(change)}
	m.workspace = r.leases[m.id].WorkspaceID
	r.hints.interactive <- m
	return m
}

// since tells how long after the start something happened.
func (r *rig) since(times []time.Time) []time.Duration {
	var all []time.Duration
	for _, at := range times {
		all = append(all, at.Sub(r.start))
	}
	return all
}

func (r *rig) note(what string) { r.order = append(r.order, what) }

func (r *rig) Claim(_ context.Context, who Claimant, asks []ClaimAsk, _ bool) []Claimed {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.claims = append(r.claims, time.Now())
	answers := make([]Claimed, len(asks))
	for i, ask := range asks {
		if r.claim != nil {
			if err := r.claim(); err != nil {
				answers[i].Err = err
				continue
			}
		}
		l, ok := r.leases[ask.TaskID]
		if !ok || who.Among != Anyone && (who.Among == Crashed) != (l.Crashes > CrashedFrom) {
			continue
		}
		delete(r.leases, ask.TaskID)
		r.lone = slices.DeleteFunc(r.lone, func(id uuid.UUID) bool { return id == ask.TaskID })
		l.Token = ask.Token
		answers[i].Lease = &l
		r.note("claim")
	}
	return answers
}

func (r *rig) Due(_ context.Context, who Claimant, limit int) ([]uuid.UUID, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if who.Among == Crashed {
		r.looks = append(r.looks, time.Now())
		if r.lookAlone != nil {
			if err := r.lookAlone(); err != nil {
				return nil, false, err
			}
		}
		n := min(limit, len(r.lone))
		return slices.Clone(r.lone[:n]), len(r.lone) > n, nil
	}
	r.dues = append(r.dues, time.Now())
	n := min(limit, len(r.due))
	ids := slices.Clone(r.due[:n])
	r.due = r.due[n:]
	return ids, len(r.due) > 0, nil
}

func (r *rig) Heartbeat(ctx context.Context, _ Lease, _ time.Duration, _ string) (Beat, error) {
	r.mu.Lock()
	r.beats = append(r.beats, time.Now())
	f := r.heartbeat
	r.mu.Unlock()
	if f != nil {
		return f(ctx)
	}
	return Beat{}, nil
}

func (r *rig) Leases(context.Context, string) (map[uuid.UUID]Load, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts = append(r.counts, time.Now())
	if r.leased != nil {
		return r.leased()
	}
	return nil, nil
}

func (r *rig) Rescue(context.Context, int, int) ([]Rescued, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rescues++
	rescued := r.rescued
	r.rescued = nil
	if r.rescue != nil {
		return rescued, r.rescue()
	}
	return rescued, nil
}

func (r *rig) Commit(ctx context.Context, items []Commit) []Done {
	r.mu.Lock()
	r.commits = append(r.commits, items...)
	r.note("commit")
	for _, planned := range items[0].Plan.Records {
		r.live = append(r.live, LiveRecord{ID: planned.ID, Version: 1, Text: planned.Text})
	}
	try, f := len(r.commits), r.commit
	r.mu.Unlock()
	if f != nil {
		return []Done{f(ctx, try)}
	}
	return []Done{{Ended: items[0].Complete}}
}

func (r *rig) Known(_ context.Context, _ Lease, terms []string, limit int) ([]KnownRecord, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, terms)
	r.note(fmt.Sprint("known ", limit))
	return r.known()
}

func (r *rig) Settle(ctx context.Context, items []Settle) []Done {
	r.mu.Lock()
	r.settles = append(r.settles, items...)
	r.note("settle")
	f := r.settle
	r.mu.Unlock()
	if f != nil {
		return []Done{f(ctx)}
	}
	return []Done{{Ended: true}}
}

func (r *rig) Fail(_ context.Context, items []Fail) []Done {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fails = append(r.fails, items...)
	r.note("fail")
	return []Done{{Ended: true}}
}

func (r *rig) Later(ctx context.Context, items []Later) []Done {
	r.mu.Lock()
	r.laters = append(r.laters, items...)
	r.note("later")
	f := r.later
	r.mu.Unlock()
	if f != nil {
		return []Done{f(ctx)}
	}
	return []Done{{Hint: &task.Hint{TaskID: items[0].Lease.TaskID, Seq: 2}}}
}

func (r *rig) Unprojected(context.Context, Lease, string) ([]LiveRecord, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.live), nil
}

func (r *rig) Pause(_ context.Context, provider string, _ task.Class, d time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.note("pause " + provider + " " + d.String())
	return nil
}

func (r *rig) Outage(_ context.Context, provider string, _ task.Class) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.note("outage " + provider)
	if r.outage != nil {
		return r.outage(), nil
	}
	return 1, nil
}

func (r *rig) Healthy(_ context.Context, provider string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.note("healthy " + provider)
	return nil
}

func (r *rig) Publish(_ context.Context, hint task.Hint) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.published = append(r.published, hint)
}

func (r *rig) Notify(_ context.Context, _, event uuid.UUID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notified = append(r.notified, event)
	r.note("notify")
}
