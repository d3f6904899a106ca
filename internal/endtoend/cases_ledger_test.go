package endtoend

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

func ledgerCases() map[string]func(*system) {
	return map[string]func(*system){
		"ManyAtOnceOnABalanceForOne":      manyOnBalanceForOne,
		"ManyClosersOfOneHold":            manyClosers,
		"AgeAloneReleasesNothing":         ageReleasesNothing,
		"NoCreditsNoWork":                 noCreditsNoWork,
		"CancelAfterDelivery":             cancelAfterDelivery,
		"NothingIsRefundedThatWasNotPaid": nothingMinted,
		"FailedOrAbortedWorkIsRefunded":   failedIsRefunded,
		"RetryOfARefundedJobPaysAnew":     retryPaysAnew,
		"ManualRetryDuringAnAutomaticOne": manualDuringAutomatic,
		"ManualRetriesAtOnce":             manualRetriesAtOnce,
		"JournalAndBalanceAgreeUnderFire": journalUnderFire,
		"ChargesOnlySettledWork":          chargesOnlySettled,
	}
}

// balance fails unless the workspace has so much available and held.
func (s *system) balance(available, held int64) {
	s.t.Helper()
	s.want(s.do("GET", "/v1/credits", "", nil), http.StatusOK, fmt.Sprintf(`"available":%d,`, available), fmt.Sprintf(`"held":%d,`, held))
}

// journalEntry is one movement as a client reads it.
type journalEntry struct {
	Type       string
	Amount     int64
	EventID    string `json:"event_id"`
	Generation int
}

// journal reads all movements, newest first.
func (s *system) journal() []journalEntry {
	s.t.Helper()
	var all []journalEntry
	for path := "/v1/credits/entries?limit=100"; ; {
		var page struct {
			Results []journalEntry
			Next    *string `json:"next_cursor"`
		}
		s.do("GET", path, "", nil).into(s.t, &page)
		all = append(all, page.Results...)
		if page.Next == nil {
			return all
		}
		path = "/v1/credits/entries?limit=100&cursor=" + *page.Next
	}
}

// moved is what the journal says of an event: the generation, the kind and the amount of each movement, sorted.
func (s *system) moved(id string) string {
	s.t.Helper()
	var lines []string
	for _, e := range s.journal() {
		if e.EventID == id {
			lines = append(lines, fmt.Sprintf("%d %s %d", e.Generation, e.Type, e.Amount))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, ", ")
}

// movedAs fails unless the journal says exactly that of the event.
func (s *system) movedAs(id, want string) {
	s.t.Helper()
	if got := s.moved(id); got != want {
		s.t.Errorf("the journal of %s: %s, want %s", id, got, want)
	}
}

// breaks adds what the model answers with nonsense, and waits until it has failed.
func (s *system) breaks(key, marker string) string {
	s.t.Helper()
	s.stub.Always(withMarker(marker), stubmodel.Reply(stubmodel.Content("broken")))
	id := s.add(key, conversation(marker, marker))
	if e := s.ended(id); e.Status != "FAILED" {
		s.t.Fatalf("event %+v", e)
	}
	return id
}

// manyOnBalanceForOne sends twenty adds of three kinds to a workspace that can pay for one.
func manyOnBalanceForOne(s *system) {
	poor := s.purse(2)
	statuses := make([]answer, 20)
	var wg sync.WaitGroup
	for i := range statuses {
		wg.Go(func() {
			var err error
			key, body := fmt.Sprint("for-one-", i), conversation(fmt.Sprint("for-one-", i), "FACT: one of many")
			if i%2 == 0 {
				statuses[i], err = poor.try("POST", "/v1/memories", key, body)
			} else {
				statuses[i], err = poor.try("POST", "/v1/memories", key, map[string]any{"user_id": key, "content": key, "infer": false})
			}
			if err != nil {
				s.t.Error(err)
			}
		})
	}
	wg.Wait()
	spent := int64(0)
	for i, a := range statuses {
		switch a.status {
		case http.StatusAccepted:
			spent += 2
		case http.StatusOK:
			spent++
		default:
			s.want(a, http.StatusPaymentRequired, "INSUFFICIENT_CREDITS")
			s.want(poor.do("GET", "/v1/events", fmt.Sprint("for-one-", i), nil), http.StatusOK, `"results":[]`)
		}
	}
	s.until("the work has ended", func() bool {
		return one[int64](s, `SELECT count(*) FROM tasks WHERE workspace_id = $1 AND completed_at IS NULL`, poor.ws) == 0
	})
	if spent == 0 || spent > 2 || one[int64](s, owedSQL, poor.ws) != spent {
		s.t.Fatalf("%d spent of 2", spent)
	}
	poor.balance(2-spent, 0)
}

// manyClosers lets clients, an erase, the worker and repair end one event together: its hold is closed once.
func manyClosers(s *system) {
	hold := s.stub.Hold(withMarker("many-closers"))
	id := s.add("many-closers", conversation("many-closers", "FACT: many-closers"))
	<-hold.Arrived()
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() { _, _ = s.try("POST", "/v1/events/"+id+"/cancel", "", nil) })
	}
	wg.Go(func() { _, _ = s.try("DELETE", "/v1/memories?user_id=many-closers", "many-closers-erase", nil) })
	wg.Go(hold.Release)
	wg.Go(func() { s.repairOnce() })
	wg.Wait()
	want := "1 hold 2, 1 release 2"
	if e := s.ended(id); e.Status == "SUCCEEDED" {
		want = "1 hold 2, 1 settle 2"
	}
	s.repairOnce()
	s.movedAs(id, want)
}

// ageReleasesNothing lets a run be a month old by the clock: while it works, nobody gives its credits back.
func ageReleasesNothing(s *system) {
	hold := s.stub.Hold(withMarker("month-old"))
	id := s.add("month-old", conversation("month-old", "FACT: month-old"))
	<-hold.Arrived()
	s.exec(`UPDATE tasks SET accepted_at = accepted_at - interval '30 days', updated_at = updated_at - interval '30 days' WHERE user_id = 'month-old'`)
	s.repairOnce()
	s.movedAs(id, "1 hold 2")
	hold.Release()
	s.succeeded(id)
	s.movedAs(id, "1 hold 2, 1 settle 2")
}

// noCreditsNoWork sends work that nobody can pay: no model is asked, in no way.
func noCreditsNoWork(s *system) {
	poor := s.purse(1)
	s.want(poor.do("POST", "/v1/memories", "no-credits", conversation("no-credits", "FACT: no-credits")), http.StatusPaymentRequired)
	s.want(poor.twin("add", "", `{"items":[{"id":"no-credits","text":"FACT: no-credits"}]}`), http.StatusPaymentRequired)
	s.want(poor.mem0("POST", "/v3/memories/add/", `{"messages":"FACT: no-credits","user_id":"no-credits"}`), http.StatusPaymentRequired)
	marker := s.add("no-credits-behind", conversation("no-credits-behind", "FACT: behind")) // whatever had been queued would come first
	s.succeeded(marker)
	if n := s.stub.Count(withMarker("no-credits")); n != 0 || one[int64](s, `SELECT count(*) FROM tasks WHERE workspace_id = $1`, poor.ws) != 0 {
		s.t.Fatalf("%d extractions without credits", n)
	}
	poor.balance(1, 0)
}

// cancelAfterDelivery cancels what has stored its records and only waits for their vectors: it is too late, and paid.
func cancelAfterDelivery(s *system) {
	hold := s.stub.Hold(stubmodel.Match{Endpoint: stubmodel.Embeddings, Marker: "delivered"})
	id := s.add("delivered", conversation("delivered", "FACT: delivered"))
	<-hold.Arrived()
	if got := s.texts("delivered"); got != "delivered" {
		s.t.Fatalf("records %q", got)
	}
	s.want(s.do("POST", "/v1/events/"+id+"/cancel", "", nil), http.StatusConflict, "NOT_CANCELLABLE")
	s.movedAs(id, "1 hold 2")
	hold.Release()
	s.succeeded(id)
	s.movedAs(id, "1 hold 2, 1 settle 2")
}

// nothingMinted ends work that cost nothing: cancels and erases of it move no credits.
func nothingMinted(s *system) {
	poor := s.purse(3)
	ids := make([]string, 0, 3)
	for _, m := range []string{"x", "y", "z"} {
		var v stored
		poor.do("POST", "/v1/memories", "", map[string]any{"user_id": "minted", "content": m, "infer": false}).into(s.t, &v)
		poor.succeeded(v.EventID)
		ids = append(ids, v.Results[0].ID)
	}
	poor.balance(0, 0)
	free := poor.batch("DELETE", "minted", map[string]any{"ids": ids})
	poor.ended(free)
	for range 2 {
		if a := poor.do("POST", "/v1/events/"+free+"/cancel", "", nil); a.status != http.StatusConflict {
			s.t.Errorf("cancel of an ended batch: %d %s", a.status, a.body)
		}
		s.want(poor.do("DELETE", "/v1/memories?user_id=minted", "", nil), http.StatusOK)
	}
	poor.balance(0, 0)
	sums := map[string]int64{}
	for _, e := range poor.journal() {
		sums[e.Type] += e.Amount
	}
	if sums["grant"] != 3 || sums["settle"] != 3 || sums["release"] != 0 {
		s.t.Fatalf("the journal says %v", sums)
	}
}

// failedIsRefunded ends work in each way that stores nothing: its credits come back with the outcome, once.
func failedIsRefunded(s *system) {
	rich := s.purse(10)
	broken := rich.breaks("refund-broken", "refund-broken")
	held := s.stub.HoldAll(withMarker("refund-held"))
	cancelled := rich.add("refund-cancelled", conversation("refund-cancelled", "FACT: refund-held a"))
	erased := rich.add("refund-erased", conversation("refund-erased", "FACT: refund-held b"))
	<-held.Arrived()
	rich.balance(6, 4)
	for range 2 {
		s.want(rich.do("POST", "/v1/events/"+cancelled+"/cancel", "", nil), http.StatusAccepted)
		s.want(rich.do("DELETE", "/v1/memories?user_id=refund-erased", "refund-erase", nil), http.StatusOK)
	}
	held.Release()
	s.repairOnce()
	for _, id := range []string{broken, cancelled, erased} {
		if e := rich.ended(id); e.Status != "FAILED" || e.Usage.Reserved != 2 || e.Usage.Released != 2 || e.Usage.Settled != 0 {
			s.t.Errorf("event %+v", e)
		}
		rich.movedAs(id, "1 hold 2, 1 release 2")
	}
	rich.balance(10, 0)
}

// retryPaysAnew retries what was refunded after the credits went elsewhere.
func retryPaysAnew(s *system) {
	poor := s.purse(2)
	id := poor.breaks("pays-anew", "pays-anew")
	poor.balance(2, 0)
	elsewhere := poor.add("elsewhere", conversation("elsewhere", "FACT: elsewhere"))
	poor.succeeded(elsewhere)
	calls := s.stub.Count(withMarker("pays-anew"))
	for range 2 {
		s.want(poor.do("POST", "/v1/events/"+id+"/retry", "", map[string]any{"generation": 1}), http.StatusPaymentRequired, "INSUFFICIENT_CREDITS")
		s.want(poor.do("POST", "/v1/events/"+id+"/retry", "pays-anew-retry", nil), http.StatusPaymentRequired, "INSUFFICIENT_CREDITS")
	}
	if e := poor.event(id); e.Status != "FAILED" || e.Generation != 1 || s.stub.Count(withMarker("pays-anew")) != calls {
		s.t.Fatalf("event %+v", e)
	}
	poor.grant("top-up", 2)
	s.stub.Always(withMarker("pays-anew"), stubmodel.Reply(stubmodel.Facts("paid anew")))
	s.want(poor.do("POST", "/v1/events/"+id+"/retry", "pays-anew-retry", nil), http.StatusAccepted)
	if e := poor.succeeded(id); e.Generation != 2 || e.Usage.Settled != 2 {
		s.t.Fatalf("event %+v", e)
	}
	poor.movedAs(id, "1 hold 2, 1 release 2, 2 hold 2, 2 settle 2")
	poor.balance(0, 0)
}

// manualDuringAutomatic retries by hand what the service is just retrying by itself: it stays one run with one hold.
func manualDuringAutomatic(s *system) {
	first := s.stub.Hold(withMarker("by-hand"))
	s.stub.Queue(withMarker("by-hand"), stubmodel.Reply(stubmodel.Refuse(http.StatusServiceUnavailable, "down")))
	id := s.add("by-hand", conversation("by-hand", "FACT: by-hand"))
	<-first.Arrived()
	second := s.stub.Hold(withMarker("by-hand"))
	first.Release()
	<-second.Arrived()
	for i := range 3 {
		s.want(s.do("POST", "/v1/events/"+id+"/retry", "", map[string]any{"generation": 1}), http.StatusAccepted, `"generation":1,`)
		s.want(s.do("POST", "/v1/events/"+id+"/retry", fmt.Sprint("by-hand-", i), nil), http.StatusAccepted, `"generation":1,`)
	}
	s.movedAs(id, "1 hold 2")
	second.Release()
	if e := s.succeeded(id); e.Attempts != 2 || e.Generation != 1 || e.Usage.Settled != 2 {
		s.t.Fatalf("event %+v", e)
	}
	s.movedAs(id, "1 hold 2, 1 settle 2")
}

// manualRetriesAtOnce sends ten retries of one failure together, five without a key: one run is opened.
func manualRetriesAtOnce(s *system) {
	id := s.breaks("at-once", "retries-at-once")
	s.stub.Always(withMarker("retries-at-once"), stubmodel.Reply(stubmodel.Facts("retried at once")))
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			key, body := fmt.Sprint("at-once-", i), any(nil)
			if i%2 == 0 {
				key, body = "", map[string]any{"generation": 1}
			}
			a, err := s.try("POST", "/v1/events/"+id+"/retry", key, body)
			// A key is a wish for a run of its own: once the run has succeeded there is nothing to retry.
			if err != nil || a.status != http.StatusAccepted && !(key != "" && strings.Contains(string(a.body), "NOT_RETRYABLE")) {
				s.t.Errorf("%d %s: %v", a.status, a.body, err)
			}
		})
	}
	wg.Wait()
	if e := s.succeeded(id); e.Generation != 2 {
		s.t.Fatalf("event %+v", e)
	}
	s.movedAs(id, "1 hold 2, 1 release 2, 2 hold 2, 2 settle 2")
}

// journalUnderFire moves credits in every way at once: what the journal adds up to is the balance, at the end to the
// last credit.
func journalUnderFire(s *system) {
	busy := s.purse(30)
	s.stub.Always(withMarker("fire-broken"), stubmodel.Reply(stubmodel.Content("broken")))
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			name := fmt.Sprint("fire-", i)
			text := "FACT: " + name
			if i%4 == 0 {
				text = "fire-broken"
			}
			a, err := busy.try("POST", "/v1/memories", name, conversation(name, text))
			if err != nil || a.status != http.StatusAccepted && a.status != http.StatusPaymentRequired {
				s.t.Errorf("%d %s: %v", a.status, a.body, err)
				return
			}
			var receipt struct {
				EventID string `json:"event_id"`
			}
			if a.status == http.StatusAccepted && i%4 == 1 && json.Unmarshal(a.body, &receipt) == nil {
				_, _ = busy.try("POST", "/v1/events/"+receipt.EventID+"/cancel", "", nil)
			}
		})
	}
	for i := range 3 {
		wg.Go(func() { busy.grant(fmt.Sprint("fire-", i), 5) })
	}
	wg.Wait()
	s.until("everything has ended", func() bool {
		return one[int64](s, `SELECT count(*) FROM tasks WHERE workspace_id = $1 AND completed_at IS NULL`, busy.ws) == 0
	})
	sums := map[string]int64{}
	for _, e := range busy.journal() {
		sums[e.Type] += e.Amount
	}
	if sums["grant"] != 45 || sums["hold"] != sums["settle"]+sums["release"] || sums["settle"] != one[int64](s, owedSQL, busy.ws) {
		s.t.Fatalf("the journal says %v", sums)
	}
	busy.balance(45-sums["settle"], 0)
}

// chargesOnlySettled follows what a failed write, its repeats and a success cost.
func chargesOnlySettled(s *system) {
	paying := s.purse(10)
	failed := paying.breaks("charge-failed", "charge-failed")
	body := conversation("charge", "FACT: charge")
	id := paying.add("charge", body)
	paying.succeeded(id)
	for range 5 {
		paying.replays("a success", paying.do("POST", "/v1/memories", "charge", body))
		paying.replays("a failure", paying.do("POST", "/v1/memories", "charge-failed", conversation("charge-failed", "charge-failed")))
	}
	paying.movedAs(failed, "1 hold 2, 1 release 2")
	paying.movedAs(id, "1 hold 2, 1 settle 2")
	paying.balance(8, 0)
}
