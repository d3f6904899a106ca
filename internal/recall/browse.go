package recall

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// MaxBrowsed is how far into a list a numbered page may lie: what comes before it is walked through for each page. A
// cursor has no such end.
const MaxBrowsed = 100_000

// PageQuery asks for one numbered page, the first being 1.
type PageQuery struct {
	Page int
	Size int
}

// Offset is how many entries come before the page.
func (p PageQuery) Offset() int { return (p.Page - 1) * p.Size }

// BrowseQuery selects live records of one workspace, newest first. LatestOnly leaves out what later records
// superseded, Expired doesn't leave out what has expired.
type BrowseQuery struct {
	PageQuery
	Scope      memory.Scope
	Filter     *memory.Filter
	LatestOnly bool
	Expired    bool
}

// Browsed is one numbered page of records and how many there are on all pages.
type Browsed struct {
	Records []memory.Record
	Total   int64
}

// BrowsedEntities is one numbered page of entities, and how many there are of each type.
type BrowsedEntities struct {
	Entities []Entity
	Totals   map[EntityType]int64
}

// Total is how many entities there are.
func (b BrowsedEntities) Total() int64 {
	total := int64(0)
	for _, n := range b.Totals {
		total += n
	}
	return total
}

// BrowsedEvents is one numbered page of events and how many there are on all pages.
type BrowsedEvents struct {
	Events []Event
	Total  int64
}

// Kept is a record whether or not readers of lists see it still. What was erased is kept nowhere.
type Kept struct {
	memory.Record
	Expired bool
	Deleted bool
}

// BrowseStore reads numbered pages. A page behind the end is empty, with the totals all the same.
type BrowseStore interface {
	// KeptMemory answers a record of the workspace, an expired or deleted one too, or a fault MEMORY_NOT_FOUND.
	KeptMemory(ctx context.Context, workspace, id uuid.UUID) (Kept, error)
	BrowseMemories(ctx context.Context, workspace uuid.UUID, query BrowseQuery) (Browsed, error)
	BrowseEntities(ctx context.Context, workspace uuid.UUID, page PageQuery) (BrowsedEntities, error)
}

// EventBrowseStore does the same with events of some kinds, newest first.
type EventBrowseStore interface {
	BrowseEvents(ctx context.Context, workspace uuid.UUID, kinds []task.Kind, page PageQuery) (BrowsedEvents, error)
}

// Browser reads lists by numbered pages with totals, for clients that know no cursors. What is added meanwhile moves
// its pages.
type Browser struct {
	store  BrowseStore
	events EventBrowseStore
}

// NewBrowser returns a Browser.
func NewBrowser(store BrowseStore, events EventBrowseStore) (*Browser, error) {
	if store == nil || events == nil {
		return nil, errors.New("browser: a store and a store of events are required")
	}
	return &Browser{store, events}, nil
}

// Memory answers one record, an expired or deleted one too. Fault MEMORY_NOT_FOUND for what the workspace doesn't keep.
func (b *Browser) Memory(ctx context.Context, workspace, id uuid.UUID) (Kept, error) {
	found, err := b.store.KeptMemory(ctx, workspace, id)
	if err != nil {
		return Kept{}, fmt.Errorf("get kept memory: %w", err)
	}
	return found, nil
}

// Memories answers one page of records. Fault INVALID_REQUEST for a page that lies too far.
func (b *Browser) Memories(ctx context.Context, workspace uuid.UUID, query BrowseQuery) (Browsed, error) {
	if err := query.check(); err != nil {
		return Browsed{}, err
	}
	found, err := b.store.BrowseMemories(ctx, workspace, query)
	if err != nil {
		return Browsed{}, fmt.Errorf("browse memories: %w", err)
	}
	return found, nil
}

// Entities answers one page of entities, by type and then by id. Fault INVALID_REQUEST for a page that lies too far.
func (b *Browser) Entities(ctx context.Context, workspace uuid.UUID, page PageQuery) (BrowsedEntities, error) {
	if err := page.check(); err != nil {
		return BrowsedEntities{}, err
	}
	found, err := b.store.BrowseEntities(ctx, workspace, page)
	if err != nil {
		return BrowsedEntities{}, fmt.Errorf("browse entities: %w", err)
	}
	return found, nil
}

// Events answers one page of events of those kinds. Fault INVALID_REQUEST for a page that lies too far.
func (b *Browser) Events(ctx context.Context, workspace uuid.UUID, kinds []task.Kind, page PageQuery) (BrowsedEvents, error) {
	if err := page.check(); err != nil {
		return BrowsedEvents{}, err
	}
	found, err := b.events.BrowseEvents(ctx, workspace, kinds, page)
	if err != nil {
		return BrowsedEvents{}, fmt.Errorf("browse events: %w", err)
	}
	return found, nil
}

func (p PageQuery) check() error {
	if p.Size < 1 || p.Page < 1 || p.Page-1 > MaxBrowsed/p.Size {
		return fault.At(fault.InvalidRequest, "/page", fmt.Sprintf("1 to the page of entry number %d", MaxBrowsed))
	}
	return nil
}
