package credits

import (
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/frame"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

const (
	// addedPage and addedPages bound what is added up for a page: some hundred milliseconds' worth. Beyond it the audit of
	// the command line adds up all of it.
	addedPage  = 1_000
	addedPages = 20
	// addedTimes is how often it is begun anew because something moved meanwhile. More means that it never stands still.
	addedTimes = 3
)

// verdict is what adding up came to.
type verdict string

const (
	agrees    verdict = "agrees"
	disagrees verdict = "disagrees"
	moving    verdict = "moving"
	tooLong   verdict = "too long"
)

// books is an account beside its journal.
type books struct {
	credit.Balance
	Back    string
	Verdict verdict
	// Entries is how many lines were added up; the sums are of them.
	Entries                         int
	Granted, Used, Taken, GivenBack credit.Amount
	// WantTotal and WantHeld are what the account has to have by its journal.
	WantTotal, WantHeld credit.Amount
}

// Total is all that the account has.
func (b books) Total() credit.Amount { return b.Available + b.Held }

// Most is how many lines are added up at most.
func (books) Most() int { return addedPage * addedPages }

// add adds a line of the journal.
func (b *books) add(e credit.Entry) {
	b.Entries++
	switch e.Type {
	case credit.Grant:
		b.Granted += e.Amount
	case credit.Hold:
		b.Taken += e.Amount
	case credit.Settle:
		b.Used += e.Amount
	case credit.Release:
		b.GivenBack += e.Amount
	}
}

func (s section) books(v *frame.Visit) (frame.Answer, error) {
	var shown books
	for range addedTimes {
		var err error
		if shown, err = s.addUp(v); err != nil {
			return frame.Answer{}, err
		}
		if shown.Verdict != moving {
			break
		}
	}
	shown.Back = v.Link("/credits")
	return frame.Answer{Title: "Books", Template: "books.html", Data: shown}, nil
}

// addUp adds up the journal and compares. The account and the newest line are read before and after: when they are the same, nothing
// has moved between the pages.
func (s section) addUp(v *frame.Visit) (books, error) {
	before, err := s.deps.Accounts.Balance(v.Context(), v.Workspace())
	if err != nil {
		return books{}, err
	}
	sums, newest := books{Balance: before, Verdict: tooLong}, credit.Entry{}
	var after *recall.EntryPlace
	for range addedPages {
		page, err := s.deps.Accounts.Entries(v.Context(), v.Workspace(), after, addedPage)
		if err != nil {
			return books{}, err
		}
		if after == nil && len(page.Entries) > 0 {
			newest = page.Entries[0]
		}
		for _, entry := range page.Entries {
			sums.add(entry)
		}
		if after = page.Next; after == nil {
			return s.compare(v, sums, newest)
		}
	}
	return sums, nil
}

func (s section) compare(v *frame.Visit, sums books, newest credit.Entry) (books, error) {
	page, err := s.deps.Accounts.Entries(v.Context(), v.Workspace(), nil, 1)
	if err != nil {
		return books{}, err
	}
	now, err := s.deps.Accounts.Balance(v.Context(), v.Workspace())
	if err != nil {
		return books{}, err
	}
	last := credit.Entry{}
	if len(page.Entries) > 0 {
		last = page.Entries[0]
	}
	sums.WantTotal, sums.WantHeld = sums.Granted-sums.Used, sums.Taken-sums.Used-sums.GivenBack
	switch {
	case now != sums.Balance || !same(last, newest):
		sums.Verdict = moving
	case sums.Total() == sums.WantTotal && sums.Held == sums.WantHeld:
		sums.Verdict = agrees
	default:
		sums.Verdict = disagrees
	}
	return sums, nil
}

// same tells whether two lines are one: no two of an event have its type and run.
func same(a, b credit.Entry) bool {
	return a.Type == b.Type && a.Generation == b.Generation && a.Reference == b.Reference && a.At.Equal(b.At) &&
		(a.TaskID == nil) == (b.TaskID == nil) && (a.TaskID == nil || *a.TaskID == *b.TaskID)
}
