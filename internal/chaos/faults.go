package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	faultGap  = 500 * time.Millisecond // between the beginnings of two faults, on average
	restartBy = 2 * time.Minute        // for a restart of PostgreSQL; recovery of a run's log takes seconds
	cutBy     = 3 * time.Second        // for a COMMIT to come by
)

// harnessError counts what the harness itself could not do.
const harnessError = "harness error"

// saboteur makes faults strike while the traffic runs.
type saboteur struct {
	w    *world
	plan *rand.Rand
	wg   sync.WaitGroup
	busy map[*link]*sync.Mutex // a link suffers from one thing at a time
}

func newSaboteur(w *world) *saboteur {
	s := &saboteur{w: w, plan: w.cfg.stream("faults"), busy: map[*link]*sync.Mutex{}}
	for _, l := range w.net.links {
		s.busy[l] = &sync.Mutex{}
	}
	return s
}

// strike is one fault of the plan: every number it needs is drawn when it is planned.
type strike struct {
	kind   string
	after  time.Duration // since the beginning of the one before
	last   time.Duration
	target int
	side   bool
	ail    ailment
	points string
}

// weights says how often each kind strikes, against the others that are switched on.
func weights() map[string]float64 {
	return map[string]float64{
		faultKill: 4, faultStop: 3, faultPoint: 7, faultNet: 5, faultCommit: 4, faultRestart: 0.5, faultCrash: 0.7, faultFsync: 1,
		faultNATS: 0.7, faultFreeze: 0.5, faultWipe: 0.5, faultHints: 3,
	}
}

// next draws the next strike of the plan. The order of Kinds makes equal seeds give equal plans.
func (s *saboteur) next() (strike, bool) {
	r := s.plan
	x := strike{
		after: time.Duration(r.ExpFloat64() * float64(faultGap)), last: between(r, 300*time.Millisecond, 5*time.Second),
		target: r.IntN(1 << 30), side: r.IntN(2) == 0, ail: newAilment(r), points: newPoints(r),
	}
	x.after = min(x.after, 4*faultGap)
	total, odds := 0.0, weights()
	for _, kind := range Kinds() {
		if s.w.cfg.has(kind) {
			total += odds[kind]
		}
	}
	at := r.Float64() * total
	for _, kind := range Kinds() {
		if !s.w.cfg.has(kind) || odds[kind] == 0 {
			continue
		}
		if at -= odds[kind]; at < 0 {
			x.kind = kind
			return x, true
		}
	}
	return x, false
}

// run strikes until ctx ends, and returns when what it began is over.
func (s *saboteur) run(ctx context.Context) {
	defer s.wg.Wait()
	for {
		x, any := s.next()
		if !any {
			return
		}
		select {
		case <-time.After(x.after):
		case <-ctx.Done():
			return
		}
		s.do(ctx, x)
	}
}

// do begins one strike and lets it last.
func (s *saboteur) do(ctx context.Context, x strike) {
	w := s.w
	processes := w.programs()
	p := processes[x.target%len(processes)]
	if p.asleep.Load() > 0 && (x.kind == faultKill || x.kind == faultPoint) {
		return // one who comes back late is worse than one who is dead
	}
	switch x.kind {
	case faultKill:
		s.note(x.kind, "%s dies", p.name)
		p.signal(syscall.SIGKILL)
	case faultStop:
		s.lasting(ctx, x, p.name+" freezes", p.freeze, p.thaw)
	case faultPoint:
		s.note("armed", "%s starts with %s", p.name, x.points)
		p.arm(x.points)
	case faultNet:
		s.sicken(ctx, x)
	case faultCommit:
		s.cut(ctx, x)
	case faultRestart, faultCrash:
		s.restart(ctx, x)
	case faultFsync:
		by := min(x.last/20, 200*time.Millisecond)
		s.lasting(ctx, x, fmt.Sprintf("the disk takes %s more", by),
			func() { s.must(w.disk.slow(by)) }, func() { s.must(w.disk.slow(0)) })
	case faultNATS:
		s.note(x.kind, "nats dies")
		w.nats.signal(syscall.SIGKILL)
	case faultFreeze:
		s.lasting(ctx, x, "nats freezes", func() { w.nats.signal(syscall.SIGSTOP) }, func() { w.nats.signal(syscall.SIGCONT) })
	case faultWipe:
		s.note(x.kind, "nats dies and loses its store")
		w.nats.signal(syscall.SIGKILL)
		s.must(os.RemoveAll(w.store))
	case faultHints:
		s.lasting(ctx, x, "hints are lost, doubled and late", func() { w.hints.on.Store(true) }, func() { w.hints.on.Store(false) })
	}
}

func (s *saboteur) note(kind, format string, args ...any) {
	s.w.log.count(kind)
	s.w.log.say(kind+": "+format, args...)
}

// must notes what the harness itself could not do; the run then proves nothing and fails.
func (s *saboteur) must(err error) {
	if err != nil {
		s.w.log.count(harnessError)
		s.w.log.say(harnessError+": %v", err)
	}
}

// lasting begins something and ends it later, or at once when ctx ends.
func (s *saboteur) lasting(ctx context.Context, x strike, what string, begin, end func()) {
	s.note(x.kind, "%s for %s", what, x.last)
	begin()
	s.wg.Go(func() {
		select {
		case <-time.After(x.last):
		case <-ctx.Done():
		}
		end()
		s.w.log.say("%s: over: %s", x.kind, what)
	})
}

func (s *saboteur) sicken(ctx context.Context, x strike) {
	l := s.w.net.links[x.target%len(s.w.net.links)]
	if !s.busy[l].TryLock() {
		return // it suffers already
	}
	s.lasting(ctx, x, fmt.Sprintf("%s between %s and %s", x.ail.name, l.from, l.to),
		func() {
			s.w.log.count("net " + strings.Fields(x.ail.name)[0])
			s.must(l.suffer(x.ail))
		},
		func() {
			defer s.busy[l].Unlock()
			s.must(l.mend(ctx, x.ail))
		})
}

// cut loses one COMMIT or its answer.
func (s *saboteur) cut(ctx context.Context, x strike) {
	i := x.target % len(s.w.cuts)
	who := []string{"an API", "a worker or repair"}[i]
	what := "the next COMMIT"
	if x.side {
		what = "the answer to the next COMMIT"
	}
	s.w.log.say("%s: %s of %s will be lost", x.kind, what, who)
	lost := s.w.cuts[i].CutNextCommit(x.side)
	s.wg.Go(func() {
		select {
		case tag := <-lost:
			s.note(x.kind, "lost %s of %s; the server said %q", what, who, tag)
		case <-time.After(cutBy):
		case <-ctx.Done():
		}
	})
}

func (s *saboteur) restart(ctx context.Context, x strike) {
	s.wg.Go(func() {
		if !s.w.pgOp.TryLock() {
			return // it is restarting already
		}
		defer s.w.pgOp.Unlock()
		s.note(x.kind, "postgres restarts")
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restartBy)
		defer cancel()
		s.must(s.w.pg.Restart(ctx, x.kind == faultCrash))
		s.w.log.say("%s: over: postgres answers", x.kind)
	})
}

// thaw lets a process that a crash point has frozen go on, after its leases have expired.
func (w *world) thaw(p *process) {
	w.log.say("point: %s froze itself", p.name)
	p.asleep.Add(1)
	time.Sleep(leaseTTL * 3 / 2)
	p.thaw()
	w.log.say("point: %s goes on", p.name)
}

// heal takes every fault away and starts every process afresh, without crash points.
func (w *world) heal() {
	w.log.say("healing")
	w.nats.signal(syscall.SIGCONT)
	for _, p := range w.programs() {
		p.arm("") // also ends one that is frozen, or that a crash point hangs
	}
}
