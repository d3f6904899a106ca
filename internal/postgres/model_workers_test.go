package postgres_test

import (
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// grip is a lease in a worker's hand, held or long lost. Its stage is what the worker believes.
type grip struct {
	lease worker.Lease
	task  *modelTask
	space *modelSpace
	stage task.Stage
}

// held tells whether a step of the stage is still this worker's to make.
func (g *grip) held(from task.Stage) bool {
	return g.task.Status == task.Running && g.task.token == g.lease.Token && g.task.Stage == from
}

func (m *machine) doClaim(check *rapid.T) {
	s := m.at(check)
	if t := m.aTask(s, s.takable); t != nil {
		m.take(s, t)
	}
}

// take claims a task if it may be had.
func (m *machine) take(s *modelSpace, t *modelTask) *grip {
	who := claimant("model")
	who.TTL, who.MaxAttempts = modelTTL, modelAttempts
	want := s.takable(t)
	claimed := m.db.Claim(m.t.Context(), who, []worker.ClaimAsk{{TaskID: t.id, Token: uuid.New()}}, false)[0]
	if claimed.Err != nil || (claimed.Lease != nil) != want {
		m.check.Fatalf("claim: %+v, want a lease: %v", claimed, want)
	}
	if !want {
		return nil
	}
	t.Status, t.token, t.leaseUntil = task.Running, claimed.Lease.Token, s.now.Add(modelTTL)
	t.Claims++
	t.Starts++
	t.Crashes++
	g := &grip{*claimed.Lease, t, s, t.Stage}
	m.grips = append(m.grips, g)
	return g
}

// aGrip picks one of the leases that fit, nil if none does.
func (m *machine) aGrip(check *rapid.T, fits func(*grip) bool) *grip {
	m.within(check)
	var of []*grip
	for _, g := range m.grips {
		if fits(g) {
			of = append(of, g)
		}
	}
	if len(of) == 0 {
		return nil
	}
	g := of[rapid.IntRange(0, len(of)-1).Draw(check, "lease")]
	m.caller = g.space.caller
	return g
}

func anyGrip(*grip) bool { return true }

// mine tells whether the worker still has its lease and knows how far the task is.
func (g *grip) mine() bool { return g.held(g.stage) }

// stale tells whether somebody else has the task now, as far as this worker believes it to be.
func (g *grip) stale() bool {
	return g.task.Status == task.Running && g.task.token != g.lease.Token && g.task.Stage == g.stage
}

// doTakeOver lets a lease end under its worker and gives the task to another. The first, who knows nothing of it, goes on
// at once or later.
func (m *machine) doTakeOver(check *rapid.T) {
	g := m.aGrip(check, (*grip).mine)
	if g == nil {
		return
	}
	m.setClock(m.now.Add(modelTTL))
	if m.take(g.space, g.task) != nil && rapid.Bool().Draw(check, "at once") {
		m.step(g, m.stepOf(g))
	}
}

// wrote checks whether a step that must be held did something.
func (m *machine) wrote(what string, done worker.Done, held bool) {
	if held && done.Err != nil || !held && !errorsIs(done.Err, fault.ErrLeaseLost) {
		m.check.Fatalf("%s: %v, the lease is held: %v", what, done.Err, held)
	}
}

func (m *machine) doHeartbeat(check *rapid.T) {
	g := m.aGrip(check, anyGrip)
	if g == nil {
		return
	}
	held := g.held(g.task.Stage)
	_, err := m.db.Heartbeat(m.t.Context(), g.lease, modelTTL, "p")
	m.wrote("heartbeat", worker.Done{Err: err}, held)
	if held {
		g.task.leaseUntil = g.space.now.Add(modelTTL)
	}
}

// doWork makes a step of a worker that has its lease.
func (m *machine) doWork(check *rapid.T) {
	if g := m.aGrip(check, (*grip).mine); g != nil {
		m.step(g, m.stepOf(g))
	}
}

// doStaleStep makes a step of a worker that has lost its lease to another and doesn't know it.
func (m *machine) doStaleStep(check *rapid.T) {
	if g := m.aGrip(check, (*grip).stale); g != nil {
		m.step(g, m.stepOf(g))
	}
}

// stepOf draws what a worker does next.
func (m *machine) stepOf(g *grip) string {
	steps := []string{"settle", "settle", "later", "back"}
	if g.stage == task.Accepted {
		steps = []string{"commit", "commit", "complete", "fail", "later", "back"}
	}
	return rapid.SampledFrom(steps).Draw(m.check, "step")
}

// doAnyStep makes any step with any lease, whether it is still held and the step's turn or not.
func (m *machine) doAnyStep(check *rapid.T) {
	if g := m.aGrip(check, anyGrip); g != nil {
		m.step(g, rapid.SampledFrom([]string{"commit", "complete", "settle", "fail", "later", "back"}).Draw(check, "step"))
	}
}

func (m *machine) step(g *grip, step string) {
	switch step {
	case "commit":
		m.commits(g, false)
	case "complete":
		m.commits(g, true)
	case "settle":
		m.settles(g)
	case "fail":
		held := g.held(task.Accepted)
		m.wrote("fail", m.fail(g.lease, task.OutputInvalid), held)
		if held {
			g.space.fail(g.task, task.CodeOutputInvalid, true)
		}
	case "later":
		m.gives(g, task.ProviderTimeout, rapid.SampledFrom([]time.Duration{0, time.Second}).Draw(m.check, "delay"))
	case "back":
		m.gives(g, "", 0)
	}
}

// finish does what a worker does whose lease nobody takes.
func (m *machine) finish(s *modelSpace, g *grip) {
	m.caller = s.caller
	if g.stage == task.Accepted {
		m.commits(g, false)
	}
	m.settles(g)
}

// commits commits up to two facts, alone or with the task's end.
func (m *machine) commits(g *grip, complete bool) {
	t, s := g.task, g.space
	texts := rapid.SliceOfN(rapid.SampledFrom([]string{"tea", "coffee", "rain"}), 0, 2).Draw(m.check, "facts")
	held, fenced := g.held(task.Accepted), s.fenced(t)
	moved := t.Status == task.Running && t.token == g.lease.Token && t.Stage != g.lease.Stage && !fenced
	var done worker.Done
	if complete {
		done = m.complete(g.lease, texts...)
	} else {
		done = m.commit(g.lease, texts...)
	}
	m.wrote("commit", done, held || moved)
	switch {
	case !held:
	case fenced:
		s.fail(t, task.CodeCancelled, true)
		t.Input = false
	default:
		s.commit(t, texts)
		g.stage = task.Committed
		if complete {
			s.succeed(t, true)
		}
	}
}

func (m *machine) settles(g *grip) {
	held := g.held(task.Committed)
	m.wrote("settle", m.settle(g.lease), held)
	if held {
		g.space.succeed(g.task, true)
	}
}

// gives gives a lease up, with a recorded failure or without.
func (m *machine) gives(g *grip, class task.Class, delay time.Duration) {
	held := g.held(g.stage)
	l := g.lease
	l.Stage = g.stage
	m.wrote("give up", m.later(l, class, delay), held)
	if !held {
		return
	}
	t := g.task
	t.unlease(true)
	t.Status, t.runAfter = task.Pending, g.space.now.Add(delay)
	if class == "" {
		t.Starts--
	} else {
		t.Code = task.CodeOf(class)
	}
}

func (m *machine) doRescue(check *rapid.T) {
	m.within(check)
	m.rescueAll()
}

// rescueAll moves every expired lease on.
func (m *machine) rescueAll() {
	if _, err := m.db.Rescue(m.t.Context(), modelAttempts, 1000); err != nil {
		m.check.Fatalf("rescue: %v", err)
	}
	for _, s := range m.spaces {
		for _, t := range s.tasks {
			switch {
			case t.Status != task.Running || t.leaseUntil.After(s.now):
			case t.Stage == task.Accepted && t.Crashes >= modelAttempts:
				s.fail(t, task.CodeAttemptsExhausted, false)
			default:
				t.unlease(false)
				t.Status, t.runAfter = task.Pending, s.now
			}
		}
	}
}
