package postgres_test

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// modelTTL and modelAttempts are the lease and the crash budget of the model's workers.
const (
	modelTTL      = time.Minute
	modelAttempts = 2
)

// modelScopes returns the lanes of the model: a filter of the first user covers two of them.
func modelScopes() []memory.Scope {
	return []memory.Scope{{UserID: "ann"}, {UserID: "ann", RunID: "one"}, {UserID: "bob"}}
}

// said is what makes two commands the same command. A retry is the command that names its event.
type said struct {
	scope   int
	text    string
	infer   bool
	ordered bool
	retry   uuid.UUID
}

// taskRow is what model and database must agree on about a task after every action.
type taskRow struct {
	Kind       task.Kind
	Status     task.Status
	Stage      task.Stage
	Generation int
	Claims     int
	Starts     int
	Crashes    int
	Head       bool
	Code       task.ErrorCode
	Outcome    task.Outcome
	Input      bool
	Erased     bool
	Shown      task.EventStatus
	AcceptedAt time.Time
}

// modelTask is a task as the rules say it is.
type modelTask struct {
	taskRow
	id         uuid.UUID
	scope      int
	ordered    bool
	seq        int
	price      credit.Amount
	token      uuid.UUID
	runAfter   time.Time
	leaseUntil time.Time
	did        task.Outcome // of its commit
}

func (t *modelTask) open() bool { return !t.Status.Terminal() }

// modelRecord is a record as readers see it.
type modelRecord struct {
	scope int
	text  string
	at    time.Time
}

// modelFence is an erase that has begun.
type modelFence struct {
	id    uuid.UUID
	scope memory.Scope
	at    time.Time
}

func (f modelFence) covers(scope int, at time.Time) bool {
	s := modelScopes()[scope]
	return !at.After(f.at) && (f.scope.UserID == "" || f.scope.UserID == s.UserID) &&
		(f.scope.RunID == "" || f.scope.RunID == s.RunID)
}

// modelKey is a key that is taken.
type modelKey struct {
	said said
	task *modelTask
}

// journal is the sum of the ledger's entries by type, and the balance.
type journal struct {
	Granted, Held, Settled, Released int64
	Available, Holding               int64
}

// modelSpace is one workspace in memory.
type modelSpace struct {
	caller  access.Caller
	now     time.Time
	keys    map[string]modelKey
	grants  map[string]int64
	tasks   []*modelTask
	records []modelRecord
	fences  []modelFence
	books   journal
	seq     int
	lanes   map[int]time.Time // last_accepted_at
	newest  time.Time         // accepted_at over all tasks
}

func newModelSpace(caller access.Caller, credits int64) *modelSpace {
	s := &modelSpace{
		caller: caller, keys: map[string]modelKey{}, grants: map[string]int64{}, lanes: map[int]time.Time{},
	}
	s.books.Granted, s.books.Available = credits, credits
	return s
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// takeLane answers the time of the next acceptance of a lane.
func (s *modelSpace) takeLane(scope int) time.Time {
	at := s.now
	for _, f := range s.fences {
		at = later(at, f.at.Add(time.Microsecond))
	}
	if last, ok := s.lanes[scope]; ok {
		at = later(at, last.Add(time.Microsecond))
	}
	s.lanes[scope] = at
	s.seq++
	return at
}

func (s *modelSpace) fenced(t *modelTask) bool {
	return !t.Erased && slices.ContainsFunc(s.fences, func(f modelFence) bool { return f.covers(t.scope, t.AcceptedAt) })
}

func (s *modelSpace) hasHead(scope int) bool {
	return slices.ContainsFunc(s.tasks, func(t *modelTask) bool { return t.scope == scope && t.Head })
}

// passHead makes the lowest waiting task of a lane its head, if it has none.
func (s *modelSpace) passHead(scope int) {
	if s.hasHead(scope) {
		return
	}
	var next *modelTask
	for _, t := range s.tasks {
		waits := t.scope == scope && t.ordered && t.open() && t.Stage == task.Accepted
		if waits && (next == nil || t.seq < next.seq) {
			next = t
		}
	}
	if next != nil {
		next.Head = true
	}
}

// add takes a new task in and its price from what is available.
func (s *modelSpace) add(t *modelTask, id uuid.UUID, at time.Time) {
	t.id, t.AcceptedAt, t.Generation, t.seq = id, at, 1, s.seq
	if t.ordered {
		t.Head = !s.hasHead(t.scope)
	}
	s.newest = later(s.newest, at)
	s.tasks = append(s.tasks, t)
	s.hold(t.price)
}

func (s *modelSpace) hold(price credit.Amount) {
	s.books.Available -= price
	s.books.Holding += price
	s.books.Held += price
}

func (t *modelTask) unlease(uncount bool) {
	if uncount && t.Crashes > 0 {
		t.Crashes--
	}
	t.token, t.leaseUntil = uuid.Nil, time.Time{}
}

// fail ends a run without success: its hold is released, its lane goes on.
func (s *modelSpace) fail(t *modelTask, code task.ErrorCode, uncount bool) {
	t.unlease(uncount)
	t.Status, t.Head, t.Code = task.Failed, false, code
	s.books.Holding -= t.price
	s.books.Available += t.price
	s.books.Released += t.price
	s.passHead(t.scope)
}

// succeed ends a run whose records are committed.
func (s *modelSpace) succeed(t *modelTask, uncount bool) {
	t.unlease(uncount)
	t.Status, t.Stage, t.Code, t.Outcome, t.Input = task.Succeeded, task.Projected, "", t.did, false
	s.books.Holding -= t.price
	s.books.Settled += t.price
}

// commit writes the records of inferred texts, but for repeats, and passes the lane on.
func (s *modelSpace) commit(t *modelTask, texts []string) {
	t.Stage, t.Head, t.did = task.Committed, false, task.NoMemory
	for _, text := range texts {
		if s.repeats(t.scope, text) {
			if t.did == task.NoMemory {
				t.did = task.Unchanged
			}
			continue
		}
		t.did = task.Stored
		s.records = append(s.records, modelRecord{t.scope, text, t.AcceptedAt})
	}
	s.passHead(t.scope)
}

// repeats tells whether a live record of the lane says the same. What an erase is about to remove says nothing.
func (s *modelSpace) repeats(scope int, text string) bool {
	return slices.ContainsFunc(s.records, func(r modelRecord) bool {
		return r.scope == scope && r.text == text && !slices.ContainsFunc(s.fences, func(f modelFence) bool {
			return f.covers(r.scope, r.at)
		})
	})
}

// takable tells whether the task may be claimed now.
func (s *modelSpace) takable(t *modelTask) bool {
	ready := t.Head || !t.ordered || t.Stage != task.Accepted
	due := t.Status == task.Pending && !t.runAfter.After(s.now) || t.Status == task.Running && !t.leaseUntil.After(s.now)
	return ready && due && (t.Stage != task.Accepted || t.Crashes < modelAttempts) && !s.fenced(t)
}

// placeFence begins an erase.
func (s *modelSpace) placeFence(id uuid.UUID, scope memory.Scope) modelFence {
	f := modelFence{id, scope, later(s.now, s.newest)}
	s.newest = f.at
	s.fences = append(s.fences, f)
	return f
}

// endFence does what an erase does, and answers how many records and open commands it removed.
func (s *modelSpace) endFence(f modelFence) (deleted, cancelled int) {
	for _, t := range s.tasks {
		if t.Erased || !f.covers(t.scope, t.AcceptedAt) {
			continue
		}
		running := t.Status == task.Running
		switch {
		case t.open() && t.Stage == task.Accepted:
			cancelled++
			s.fail(t, task.CodeCancelled, running)
		case t.open():
			s.succeed(t, running)
		}
		t.Input, t.Erased = false, true
	}
	kept := len(s.records)
	s.records = slices.DeleteFunc(s.records, func(r modelRecord) bool { return f.covers(r.scope, r.at) })
	s.fences = slices.DeleteFunc(s.fences, func(o modelFence) bool { return o.id == f.id })
	for scope := range modelScopes() {
		s.passHead(scope)
	}
	return kept - len(s.records), cancelled
}

// shown is what a reader of the event sees.
func (s *modelSpace) shown(t *modelTask) task.EventStatus {
	switch {
	case t.Status == task.Succeeded:
		return task.EventSucceeded
	case t.Status == task.Failed:
		return task.EventFailed
	case t.Status == task.Running && t.leaseUntil.After(s.now):
		return task.EventRunning
	case t.Starts > 0:
		return task.EventRetrying
	default:
		return task.EventPending
	}
}
