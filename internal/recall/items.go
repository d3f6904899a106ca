package recall

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
)

// Item is what a caller keeps under an id of its own, at its latest revision. Landed tells that the records of that
// revision are there.
type Item struct {
	Key      command.ItemKey
	ID       string
	EventID  string
	Text     string
	Author   string
	Session  string
	At       time.Time
	Revision int
	Landed   bool
	Created  time.Time
}

// ItemPlace is a position among the items of an account, which are ordered by their time, then by when they were first
// sent.
type ItemPlace struct {
	At      time.Time
	Created time.Time
	Key     command.ItemKey
}

// ItemQuery selects items of an account in order. An empty Session is all sessions.
type ItemQuery struct {
	Account string
	Session string
	After   *ItemPlace
	Limit   int
}

// ItemStore reads items.
type ItemStore interface {
	Items(ctx context.Context, workspace uuid.UUID, query ItemQuery) ([]Item, error)
	// ItemsByKey answers those of the items that are there, in any order.
	ItemsByKey(ctx context.Context, workspace uuid.UUID, keys []command.ItemKey) ([]Item, error)
	// TaskOfItem answers the latest task of the item with the event id, a fault EVENT_NOT_FOUND without one.
	TaskOfItem(ctx context.Context, workspace uuid.UUID, eventID string) (uuid.UUID, error)
	Memories(ctx context.Context, workspace uuid.UUID, query MemoryQuery) (MemoryPage, error)
}

// Items reads what callers keep under ids of their own.
type Items struct{ store ItemStore }

// NewItems returns a reader of items.
func NewItems(store ItemStore) (*Items, error) {
	if store == nil {
		return nil, errors.New("items: a store is required")
	}
	return &Items{store: store}, nil
}

// TaskOf answers the latest task of the item with the event id, a fault EVENT_NOT_FOUND without one.
func (s *Items) TaskOf(ctx context.Context, workspace uuid.UUID, eventID string) (uuid.UUID, error) {
	id, err := s.store.TaskOfItem(ctx, workspace, eventID)
	if err != nil {
		return uuid.Nil, fmt.Errorf("find item's task: %w", err)
	}
	return id, nil
}

// ByID answers the items with the ids in that order; unknown ones are left out.
func (s *Items) ByID(ctx context.Context, workspace uuid.UUID, account string, ids []string) ([]Item, error) {
	keys := make([]command.ItemKey, len(ids))
	for i, id := range ids {
		keys[i] = command.ItemKeyOf(account, id)
	}
	found, err := s.store.ItemsByKey(ctx, workspace, keys)
	if err != nil {
		return nil, fmt.Errorf("read items: %w", err)
	}
	byKey := make(map[command.ItemKey]Item, len(found))
	for _, item := range found {
		byKey[item.Key] = item
	}
	items := make([]Item, 0, len(found))
	for _, key := range keys {
		if item, ok := byKey[key]; ok {
			items = append(items, item)
		}
	}
	return items, nil
}

// Session answers items of a session in order, those behind the item with the id after if it isn't empty, and whether
// there are more. A fault INVALID_CURSOR for an after that is no item of the account.
func (s *Items) Session(ctx context.Context, workspace uuid.UUID, account, session, after string, limit int) ([]Item, bool, error) {
	query := ItemQuery{Account: account, Session: session, Limit: limit + 1}
	if after != "" {
		found, err := s.store.ItemsByKey(ctx, workspace, []command.ItemKey{command.ItemKeyOf(account, after)})
		if err != nil {
			return nil, false, fmt.Errorf("find place: %w", err)
		}
		if len(found) == 0 {
			return nil, false, fault.New(fault.InvalidCursor)
		}
		query.After = placeOf(found[0])
	}
	items, err := s.store.Items(ctx, workspace, query)
	if err != nil {
		return nil, false, fmt.Errorf("read session: %w", err)
	}
	if len(items) > limit {
		return items[:limit], true, nil
	}
	return items, false, nil
}

func placeOf(item Item) *ItemPlace {
	return &ItemPlace{At: item.At, Created: item.Created, Key: item.Key}
}

const (
	// MaxPattern is the greatest length of a pattern in characters.
	MaxPattern = 1_000
	// grepBound is how long one grep looks; what it found until then is its answer.
	grepBound = 5 * time.Second
	// grepRows and grepBytes bound how many items, and how many records, one grep reads, and how much text.
	grepRows  = 10_000
	grepBytes = 64 << 20
	// grepPage is how much is read at once: small enough that a page of the longest items fits in memory.
	grepPage = 100
)

// Grep asks for texts of an account that contain Pattern, byte for byte, or that match it as a regular expression.
type Grep struct {
	Account string
	Session string
	Pattern string
	Regex   bool
	Limit   int
}

// Grepped is what was found: at most Limit items and as many records. Truncated tells that the grep ended early, by
// its limit, its time or the amount of text.
type Grepped struct {
	Items     []Item
	Records   []memory.Record
	Truncated bool
}

// Grep looks through items in order and then through live records, newest first. Regular expressions are RE2: their
// time grows with the text alone. Fault INVALID_REQUEST for a pattern that is too long or none.
func (s *Items) Grep(ctx context.Context, workspace uuid.UUID, ask Grep) (Grepped, error) {
	matches, err := matcher(ask)
	if err != nil {
		return Grepped{}, err
	}
	looking, cancel := context.WithTimeout(ctx, grepBound)
	defer cancel()
	g := &grepping{store: s.store, workspace: workspace, ask: ask, matches: matches, bytes: grepBytes}
	if err = g.items(looking); err == nil {
		err = g.records(looking)
	}
	if err != nil && looking.Err() != nil && ctx.Err() == nil { // the time was up
		g.found.Truncated, err = true, nil
	}
	if err != nil {
		return Grepped{}, fmt.Errorf("grep: %w", err)
	}
	return g.found, nil
}

func matcher(ask Grep) (func(string) bool, error) {
	if ask.Pattern == "" || utf8.RuneCountInString(ask.Pattern) > MaxPattern {
		return nil, fault.At(fault.InvalidRequest, "/pattern", "1 to 1000 characters")
	}
	if !ask.Regex {
		return func(text string) bool { return strings.Contains(text, ask.Pattern) }, nil
	}
	expression, err := regexp.Compile(ask.Pattern)
	if err != nil { // its text quotes the pattern
		return nil, fault.At(fault.InvalidRequest, "/pattern", "a regular expression of RE2")
	}
	return expression.MatchString, nil
}

// grepping is one grep under way.
type grepping struct {
	store     ItemStore
	workspace uuid.UUID
	ask       Grep
	matches   func(string) bool
	bytes     int
	found     Grepped
}

// spent takes a text from what may still be read and tells whether that is used up.
func (g *grepping) spent(text string) bool {
	g.bytes -= len(text)
	return g.bytes < 0
}

func (g *grepping) items(ctx context.Context) error {
	query := ItemQuery{Account: g.ask.Account, Session: g.ask.Session, Limit: grepPage}
	for range grepRows / grepPage {
		page, err := g.store.Items(ctx, g.workspace, query)
		if err != nil {
			return err
		}
		for _, item := range page {
			if g.spent(item.Text) || len(g.found.Items) == g.ask.Limit {
				g.found.Truncated = true
				return nil
			}
			if g.matches(item.Text) {
				g.found.Items = append(g.found.Items, item)
			}
		}
		if len(page) < grepPage {
			return nil
		}
		query.After = placeOf(page[len(page)-1])
	}
	g.found.Truncated = true
	return nil
}

func (g *grepping) records(ctx context.Context) error {
	query := MemoryQuery{Scope: memory.Scope{UserID: g.ask.Account, RunID: g.ask.Session}, Limit: grepPage}
	for range grepRows / grepPage {
		page, err := g.store.Memories(ctx, g.workspace, query)
		if err != nil {
			return err
		}
		for _, record := range page.Records {
			if g.spent(record.Text) || len(g.found.Records) == g.ask.Limit {
				g.found.Truncated = true
				return nil
			}
			if g.matches(record.Text) {
				g.found.Records = append(g.found.Records, record)
			}
		}
		if page.Next == nil {
			return nil
		}
		query.After = page.Next
	}
	g.found.Truncated = true
	return nil
}
