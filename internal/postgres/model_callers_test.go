package postgres_test

import (
	"errors"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/model/offline"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// The pools are small, so that keys, texts and lanes meet.
func (m *machine) aKey() string {
	return rapid.SampledFrom([]string{"k1", "k2", "k3", "k4", "k5", "k6"}).Draw(m.check, "key")
}

func (m *machine) aText() string {
	return rapid.SampledFrom([]string{"tea", "coffee", "rain"}).Draw(m.check, "text")
}

func (m *machine) aScope() int {
	return rapid.IntRange(0, len(modelScopes())-1).Draw(m.check, "scope")
}

// wants checks that a call was refused with the code, or not at all when it is empty.
func (m *machine) wants(what string, err error, code fault.Code) {
	if code == "" && err == nil {
		return
	}
	if code == "" || !fault.Is(err, code) {
		m.check.Fatalf("%s: %v, want %q", what, err, code)
	}
}

// refusal is how a new command is refused that another one's key or the balance is in the way of.
func (s *modelSpace) refusal(key string, cmd said, price credit.Amount) (held *modelTask, code fault.Code) {
	taken, known := s.keys[key]
	switch {
	case known && taken.said != cmd:
		return nil, fault.IdempotencyConflict
	case known:
		return taken.task, ""
	case s.books.Available < price:
		return nil, fault.InsufficientCredits
	}
	return nil, ""
}

// insufficient checks what a refusal for want of credits says.
func (m *machine) insufficient(s *modelSpace, err error) {
	var f *fault.Error
	if errors.As(err, &f) && f.Code == fault.InsufficientCredits && f.Details["available"] != s.books.Available {
		m.check.Fatalf("the refusal says %v are available, want %d", f.Details["available"], s.books.Available)
	}
}

func addOf(c said) command.Add {
	return command.Add{
		Scope: modelScopes()[c.scope], Infer: c.infer, Ordered: c.ordered,
		Messages: []command.Message{{Role: "user", Content: c.text}},
	}
}

func (m *machine) doAccept(check *rapid.T) {
	s := m.at(check)
	k, c := m.aKey(), said{scope: m.aScope(), text: m.aText(), infer: true}
	c.ordered = rapid.IntRange(0, 3).Draw(check, "ordered") > 0
	if rapid.Bool().Draw(check, "fresh key") {
		m.names++
		k = keyName(m.names)
	}
	price := credit.DefaultPrices().Infer
	holder, code := s.refusal(k, c, price)
	receipt, err := m.accepter(m.db).Accept(m.t.Context(), m.caller, key(m.t, k), addOf(c))
	m.wants("accept", err, code)
	m.insufficient(s, err)
	switch {
	case code != "":
	case holder != nil:
		if want := (write.Receipt{EventID: holder.id, Status: s.shown(holder), Replayed: true}); receipt != want {
			check.Fatalf("replay %+v, want %+v", receipt, want)
		}
	default:
		t := &modelTask{scope: c.scope, ordered: c.ordered, price: price, runAfter: s.now}
		t.taskRow = taskRow{Kind: task.Infer, Status: task.Pending, Stage: task.Accepted, Input: true}
		s.add(t, receipt.EventID, s.takeLane(c.scope))
		s.keys[k] = modelKey{c, t}
		if receipt.Replayed || receipt.Status != task.EventPending {
			check.Fatalf("receipt %+v of a new command", receipt)
		}
	}
}

// doWrite stores a text as it is, with a key or without, with its vector at once or to come.
func (m *machine) doWrite(check *rapid.T) {
	s := m.at(check)
	c := said{scope: m.aScope(), text: m.aText()}
	local := rapid.Bool().Draw(check, "local embedder")
	var name *command.Key
	k := ""
	if rapid.Bool().Draw(check, "with a key") {
		k = m.aKey()
		parsed := key(m.t, k)
		name = &parsed
	}
	price := credit.DefaultPrices().Add
	holder, code := s.refusal(k, c, price)
	embedder := model.Embedder(remote{offline.NewEmbedder()})
	if local {
		embedder = offline.NewEmbedder()
	}
	stored, err := m.writer(embedder).Write(m.t.Context(), m.caller, name, addOf(c))
	m.wants("write", err, code)
	m.insufficient(s, err)
	switch {
	case code != "":
	case holder != nil:
		if stored.EventID != holder.id || !stored.Replayed {
			check.Fatalf("replay %+v, want that of %s", stored, holder.id)
		}
	default:
		s.written(stored.EventID, c, name == nil, local, price)
		if name != nil {
			s.keys[k] = modelKey{c, s.tasks[len(s.tasks)-1]}
		}
	}
}

// written takes in a verbatim add: only one without a key repeats a record of its lane.
func (s *modelSpace) written(id uuid.UUID, c said, dedupe, local bool, price credit.Amount) {
	at := s.takeLane(c.scope)
	t := &modelTask{scope: c.scope, price: price, runAfter: at}
	t.taskRow = taskRow{Kind: task.Add, Status: task.Pending, Stage: task.Committed}
	s.add(t, id, at)
	t.did = task.Unchanged
	if !dedupe || !s.repeats(c.scope, c.text) {
		t.did = task.Stored
		s.records = append(s.records, modelRecord{c.scope, c.text, at})
	}
	if local {
		s.succeed(t, false)
	}
}

func (m *machine) doWait(check *rapid.T) {
	m.within(check)
	m.setClock(m.now.Add(rapid.SampledFrom([]time.Duration{
		modelTTL, modelTTL / 2, time.Microsecond, time.Second, time.Hour,
	}).Draw(check, "time")))
}

func (m *machine) doCancel(check *rapid.T) {
	s := m.at(check)
	t := m.aTask(s, (*modelTask).open)
	if t == nil {
		return
	}
	var code fault.Code
	open := t.open() && t.Stage == task.Accepted
	if !open && (t.Status != task.Failed || t.Code != task.CodeCancelled) {
		code = fault.NotCancellable
	}
	m.wants("cancel", m.canceller().Cancel(m.t.Context(), m.caller, t.id), code)
	if open {
		s.fail(t, task.CodeCancelled, false)
	}
}

// doRetry asks for a new run, by the generation that the caller saw or by a key.
func (m *machine) doRetry(check *rapid.T) {
	s := m.at(check)
	t := m.aTask(s, func(t *modelTask) bool { return t.Status == task.Failed })
	if t == nil {
		return
	}
	generation := t.Generation + rapid.SampledFrom([]int{0, 0, -1, 1}).Draw(check, "generation")
	seen := &generation
	var name *command.Key
	k, c := "", said{retry: t.id}
	if rapid.Bool().Draw(check, "by key") {
		k = m.aKey()
		parsed := key(m.t, k)
		name, seen = &parsed, nil
	}
	code, replay, opens := s.retried(t, k, c, seen)
	replayed, err := m.retrier().Retry(m.t.Context(), m.caller, t.id, seen, name)
	m.wants("retry", err, code)
	m.insufficient(s, err)
	if replayed != replay {
		check.Fatalf("replayed: %v, want %v", replayed, replay)
	}
	if !opens {
		return
	}
	s.takeLane(t.scope)
	t.Status, t.Code, t.Crashes, t.Starts, t.runAfter, t.seq = task.Pending, "", 0, 0, s.now, s.seq
	t.Generation++
	t.Head = t.ordered && !s.hasHead(t.scope)
	s.hold(t.price)
	if name != nil {
		s.keys[k] = modelKey{c, t}
	}
}

// retried predicts the answer to a retry.
func (s *modelSpace) retried(t *modelTask, k string, c said, seen *int) (code fault.Code, replayed, opens bool) {
	if taken, known := s.keys[k]; known {
		if taken.said == c {
			return "", true, false
		}
		return fault.IdempotencyConflict, false, false
	}
	input := t.Input && !s.fenced(t)
	switch {
	case seen != nil && *seen > t.Generation:
		return fault.InvalidRequest, false, false
	case seen != nil && *seen < t.Generation, t.open():
		return "", false, false
	case t.Status == task.Failed && !input:
		return fault.InputExpired, false, false
	case t.Status != task.Failed:
		return fault.NotRetryable, false, false
	case s.books.Available < t.price:
		return fault.InsufficientCredits, false, false
	}
	return "", false, true
}

func (m *machine) aFilter() memory.Scope {
	return rapid.SampledFrom([]memory.Scope{{UserID: "ann"}, {UserID: "bob"}, {RunID: "one"}}).Draw(m.check, "filter")
}

func (m *machine) doErase(check *rapid.T) {
	s := m.at(check)
	scope := m.aFilter()
	alone := len(s.fences) == 0
	erased, err := m.eraser().Erase(m.t.Context(), m.caller, nil, scope)
	if err != nil || !erased.Finished {
		check.Fatalf("erase: %+v, %v", erased, err)
	}
	deleted, cancelled := s.endFence(s.placeFence(erased.EventID, scope))
	if alone && (erased.Deleted != int64(deleted) || erased.Cancelled != int64(cancelled)) {
		check.Fatalf("erased %+v, want %d records and %d commands", erased, deleted, cancelled)
	}
}

// doBeginErase leaves an erase at its fence, as a crash does.
func (m *machine) doBeginErase(check *rapid.T) {
	s := m.at(check)
	if len(s.fences) > 1 {
		return // enough are open
	}
	scope := m.aFilter()
	s.placeFence(m.fenceScope(scope), scope)
}

func (m *machine) doEndErase(check *rapid.T) {
	s := m.at(check)
	if len(s.fences) == 0 {
		return
	}
	m.finishErase(s, s.fences[rapid.IntRange(0, len(s.fences)-1).Draw(check, "erase")])
}

func (m *machine) finishErase(s *modelSpace, f modelFence) {
	m.caller = s.caller
	m.endErase(f.id)
	s.endFence(f)
}

func (m *machine) doGrant(check *rapid.T) {
	s := m.at(check)
	reference := rapid.SampledFrom([]string{"g1", "g2", "g3"}).Draw(check, "reference")
	amount := rapid.Int64Range(1, 3).Draw(check, "amount")
	there, known := s.grants[reference]
	var code fault.Code
	if known && there != amount {
		code = fault.IdempotencyConflict
	}
	granted, err := m.db.Grant(m.t.Context(), s.caller.Workspace.ID, reference, amount)
	m.wants("grant", err, code)
	if granted == known {
		check.Fatalf("granted: %v, known before: %v", granted, known)
	}
	if granted {
		s.grants[reference] = amount
		s.books.Granted += amount
		s.books.Available += amount
	}
}
