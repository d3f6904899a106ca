package postgres_test

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/write"
)

const (
	// modelHistories is how many histories TestModel tries in `make test`, as long as modelTime lasts.
	modelHistories = 40
	// modelTime is how much of `make test` each of these tests may take: a busy machine tries fewer histories.
	modelTime = 20 * time.Second
	// modelSteps is how many actions such a history has on average: it takes some to come to a stale lease under an erase.
	modelSteps = 100
	// linearHistories is how many concurrent histories each TestLinearizable tries there, linearLeast whatever the time.
	linearHistories = 8
	linearLeast     = 3
	// linearBound is how long the search for an order of one history may take; it takes milliseconds.
	linearBound = 60 * time.Second
	// linearClients is how many callers a history has at once, linearCalls how many calls each of them makes.
	linearClients = 12
	linearCalls   = 12
	// forever is when a call ends whose outcome nobody knows.
	forever = math.MaxInt64
)

// askedHistories is what -rapid.checks asks for (`make model` does), 0 without it. It sets how much TestModel does.
var askedHistories = sync.OnceValue(func() int {
	_ = flag.Set("rapid.steps", strconv.Itoa(modelSteps))
	given := flag.Lookup("rapid.checks")
	if given.Value.String() == given.DefValue {
		_ = given.Value.Set(strconv.Itoa(modelHistories))
		return 0
	}
	n, _ := strconv.Atoi(given.Value.String())
	return n
})

// history records concurrent calls with the time of each, for a checker that looks for an order in which a single
// register would have answered the same.
type history struct {
	mu    sync.Mutex
	start time.Time
	calls []porcupine.Operation
}

// call makes one call. A call whose outcome nobody knows may take effect at any time after it began.
func (h *history) call(client int, input any, run func() (output any, known bool)) {
	began := time.Since(h.start).Nanoseconds()
	output, known := run()
	ended := time.Since(h.start).Nanoseconds()
	if !known {
		ended = forever
	}
	h.add(porcupine.Operation{ClientId: client, Input: input, Output: output, Call: began, Return: ended})
}

func (h *history) add(op porcupine.Operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, op)
}

// check fails the test unless the history is linearizable.
func (h *history) check(t *testing.T, nm porcupine.NondeterministicModel) {
	t.Helper()
	switch porcupine.CheckOperationsTimeout(nm.ToModel(), h.calls, linearBound) {
	case porcupine.Ok:
	case porcupine.Illegal:
		var lines strings.Builder
		for _, op := range h.calls {
			fmt.Fprintf(&lines, "%d  %12d  %19d  %+v  %+v\n", op.ClientId, op.Call, op.Return, op.Input, op.Output)
		}
		t.Fatalf("no order of these calls explains their answers (client, from, to, call, answer):\n%s", &lines)
	default:
		t.Fatalf("no verdict on %d calls within %s", len(h.calls), linearBound)
	}
}

// forgetful is a store that remembers which task was sent. With once the line breaks for good: after the answer to a
// COMMIT was lost no repeat gets through.
type forgetful struct {
	*postgres.DB
	once bool
	sent uuid.UUID
	lost bool
}

func (f *forgetful) Accept(ctx context.Context, items []write.Acceptance) []write.Accepted {
	if f.once && f.lost {
		return []write.Accepted{{Refused: fault.New(fault.UnavailableNow)}}
	}
	f.sent = items[0].TaskID
	answers := f.DB.Accept(ctx, items)
	f.lost = errorsIs(answers[0].Refused, fault.ErrCommitUnknown)
	return answers
}

// line is the way of a history's callers to the database. Now and then it loses the answer to a COMMIT, or the COMMIT.
type line struct {
	w     *world
	proxy *testkit.CommitProxy
	db    *postgres.DB
}

func newLine(w *world) *line {
	l := &line{w: w, proxy: testkit.CommitCutProxy(w.t, w.url)}
	l.db = w.open(l.proxy.URL())
	return l
}

// breaks lets the next COMMIT on the line have no answer, one time in ten.
func (l *line) breaks() {
	if rand.IntN(10) == 0 {
		l.proxy.CutNextCommit(rand.IntN(2) == 0)
	}
}

// accept sends a command. Half of the callers repeat an acceptance whose answer was lost, as the service does; the others
// never get through again. It answers the receipt and the task that was sent, whatever became of it.
func (l *line) accept(k string, text string) (receipt write.Receipt, sent uuid.UUID, err error) {
	l.breaks()
	store := &forgetful{DB: l.db, once: rand.IntN(2) == 0}
	a, err := write.NewAccepter(store, l.w.hints, credit.DefaultPrices(), nil)
	if err != nil {
		return receipt, sent, err
	}
	add := say("u-"+text, text)
	add.Ordered = false
	receipt, err = a.Accept(context.Background(), l.w.caller, key(l.w.t, k), add)
	return receipt, store.sent, err
}

// eachHistory runs a number of histories one after the other, each with a workspace of its own in one database.
func eachHistory(t *testing.T, run func(w *world, l *line)) {
	t.Helper()
	asked := askedHistories()
	w := newWorld(t, 0)
	l := newLine(w)
	start := time.Now()
	for n := 0; n < max(asked, linearHistories); n++ {
		if asked == 0 && n >= linearLeast && time.Since(start) > modelTime {
			return
		}
		run(w, l)
	}
}
