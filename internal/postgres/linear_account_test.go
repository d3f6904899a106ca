package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// The calls on an account: move changes available and held, hold takes the price if it is there, poor is the refusal of a
// hold, read and look see the whole balance or what is available.
type accountCall struct {
	kind            string
	available, held int64
}

// accountAnswer is what a call saw.
type accountAnswer struct{ available, held int64 }

type accountState struct{ available, held int64 }

// accountModel is one account.
func accountModel(start int64) porcupine.NondeterministicModel {
	return porcupine.NondeterministicModel{
		Init: func() []any { return []any{accountState{available: start}} },
		Step: func(state, input, output any) []any {
			now, call, answer := state.(accountState), input.(accountCall), output.(accountAnswer)
			moved := accountState{now.available + call.available, now.held + call.held}
			possible := moved.available >= 0 && moved.held >= 0
			switch call.kind {
			case "poor":
				possible = now.available < credit.DefaultPrices().Infer
			case "look":
				possible = now.available == answer.available
			case "read":
				possible = now == accountState{answer.available, answer.held}
			}
			if !possible {
				return nil
			}
			return []any{moved}
		},
	}
}

// accountClients is how many callers one account has at once. All their calls are one search, which each of them doubles.
const accountClients = 8

// accountant is one caller of an account.
type accountant struct {
	*line
	t       *testing.T
	h       *history
	client  int
	open    []uuid.UUID // its own commands that hold
	granted int
}

// TestLinearizableAccount sets grants, holds, settles, releases and reads of one account against each other. Most of the
// time there is too little for everybody.
func TestLinearizableAccount(t *testing.T) {
	t.Parallel()
	poor := 0
	eachHistory(t, func(w *world, l *line) {
		const start = 6
		w.caller = w.workspace(start)
		h := &history{start: time.Now()}
		var mu sync.Mutex
		together(accountClients, func(client int) {
			a := &accountant{line: l, t: t, h: h, client: client}
			for n := range linearCalls {
				refused := a.step(n)
				mu.Lock()
				poor += refused
				mu.Unlock()
			}
		})
		h.check(t, accountModel(start))
		w.books()
	})
	if poor == 0 {
		t.Error("nobody was ever refused: the account was never empty")
	}
}

// step makes one call and answers 1 if it was refused for want of credits.
func (a *accountant) step(n int) int {
	switch rand.IntN(8) {
	case 0:
		a.grant()
	case 1:
		a.read()
	case 2, 3, 4:
		return a.hold(n)
	default:
		a.end()
	}
	return 0
}

func (a *accountant) grant() {
	a.granted++
	amount := rand.Int64N(2) + 1
	a.h.call(a.client, accountCall{kind: "move", available: amount}, func() (any, bool) {
		granted, err := a.w.db.Grant(context.Background(), a.w.caller.Workspace.ID, fmt.Sprintf("g-%d-%d", a.client, a.granted), amount)
		if err == nil && !granted {
			a.t.Error("a new reference was granted before")
		}
		return a.done("grant", err)
	})
}

// done is the answer of a call that must have happened.
func (a *accountant) done(what string, err error) (any, bool) {
	if err != nil {
		a.t.Errorf("%s: %v", what, err)
	}
	return accountAnswer{}, true
}

func (a *accountant) read() {
	a.h.call(a.client, accountCall{kind: "read"}, func() (any, bool) {
		b, err := a.db.Balance(context.Background(), a.w.caller.Workspace.ID)
		if err != nil {
			a.t.Errorf("read: %v", err)
		}
		return accountAnswer{available: b.Available, held: b.Held}, true
	})
}

// hold accepts a command. A refusal looked at the balance twice: once to decide, and once for its answer.
func (a *accountant) hold(n int) int {
	price := credit.DefaultPrices().Infer
	began := time.Since(a.h.start).Nanoseconds()
	receipt, sent, err := a.accept(fmt.Sprintf("k-%d-%d", a.client, n), "a")
	op := porcupine.Operation{
		ClientId: a.client, Input: accountCall{kind: "move", available: -price, held: price}, Output: accountAnswer{},
		Call: began, Return: time.Since(a.h.start).Nanoseconds(),
	}
	var refused *fault.Error
	switch {
	case err == nil:
		a.open = append(a.open, receipt.EventID)
	case fault.Is(err, fault.InsufficientCredits) && errors.As(err, &refused):
		op.Input = accountCall{kind: "poor"}
		a.h.add(op)
		op.Input, op.Output = accountCall{kind: "look"}, accountAnswer{available: refused.Details["available"].(int64)}
	case fault.Is(err, fault.AcceptanceUnknown):
		// The caller will never know, but the database does: the hold came at some time after the call began, or never.
		if !one[bool](a.w, `SELECT EXISTS (SELECT FROM tasks WHERE id = $1)`, sent) {
			return 0
		}
		op.Return = forever
	default:
		a.t.Errorf("accept: %v", err)
		return 0
	}
	a.h.add(op)
	if refused != nil {
		return 1
	}
	return 0
}

// end settles or releases one of the caller's own holds.
func (a *accountant) end() {
	if len(a.open) == 0 {
		return
	}
	id := a.open[0]
	a.open = a.open[1:]
	price := credit.DefaultPrices().Infer
	if rand.IntN(2) == 0 {
		a.h.call(a.client, accountCall{kind: "move", available: price, held: -price}, func() (any, bool) {
			return a.done("cancel", a.w.canceller().Cancel(context.Background(), a.w.caller, id))
		})
		return
	}
	claimed := a.w.db.Claim(context.Background(), claimant("w"), []worker.ClaimAsk{{TaskID: id, Token: uuid.New()}}, false)[0]
	if claimed.Err != nil || claimed.Lease == nil {
		a.t.Errorf("claim: %+v", claimed)
		return
	}
	l := *claimed.Lease
	if done := a.w.db.Commit(context.Background(), []worker.Commit{{Lease: l, Plan: planOf("fact")}})[0]; done.Err != nil {
		a.t.Errorf("commit: %v", done.Err)
		return
	}
	l.Stage = task.Committed
	a.h.call(a.client, accountCall{kind: "move", held: -price}, func() (any, bool) {
		a.breaks()
		steps := []worker.Settle{{Lease: l, VectorModel: "m"}}
		done := a.db.Settle(context.Background(), steps)[0]
		if errors.Is(done.Err, fault.ErrCommitUnknown) { // the repeat settles, or finds it ended
			if done = a.w.db.Settle(context.Background(), steps)[0]; done.Ended {
				done.Err = nil
			}
		}
		return a.done("settle", done.Err)
	})
}
