package recall

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/task"
)

const (
	// feedPage is how many entries are read at once: with their events some hundred kilobytes.
	feedPage = 100
	// pollEvery bounds how late a stream learns of what no notice told it. It alone is enough.
	pollEvery = 2 * time.Second
	// restFor is the least time between two looks, so that a busy workspace's notices, one for each task, cost a stream
	// twenty reads a second at most.
	restFor = 50 * time.Millisecond
)

// FeedStore reads the feed of a workspace and the events that it tells of.
type FeedStore interface {
	// Feed answers at most limit entries behind a place; without one the place "now". Fault INVALID_CURSOR for a place
	// that is ahead of everything.
	Feed(ctx context.Context, workspace uuid.UUID, after *task.FeedPlace, limit int) (task.FeedPage, error)
	// EventsByID answers those of the events that the workspace has, as they are now.
	EventsByID(ctx context.Context, workspace uuid.UUID, ids []uuid.UUID) (map[uuid.UUID]Event, error)
}

// StreamQuery selects what a stream tells. Without Kinds or Outcomes it is all of them.
type StreamQuery struct {
	Workspace uuid.UUID
	After     *task.FeedPlace // nil: from now on
	Kinds     []task.Kind
	Outcomes  []task.FeedOutcome
}

// Told is one thing that a stream tells: that Outcome happened, and the event as it is now.
type Told struct {
	Place   task.FeedPlace
	Outcome task.FeedOutcome
	Event   Event
}

// Streams opens streams.
type Streams struct {
	store   FeedStore
	notices Notices
}

// NewStreams returns an opener of streams.
func NewStreams(store FeedStore, notices Notices) (*Streams, error) {
	if store == nil || notices == nil {
		return nil, errors.New("streams: store and notices are required")
	}
	return &Streams{store: store, notices: notices}, nil
}

// Stream tells what happens in a workspace from a place on and skips nothing (task.FeedPage). It is for one goroutine,
// holds no database connection between its calls, and must be closed.
type Stream struct {
	store  FeedStore
	query  StreamQuery
	place  task.FeedPlace
	held   time.Duration
	wait   time.Duration // from one look to the next, if nothing wakes the stream before
	looked time.Time
	more   bool
	signal <-chan struct{}
	cancel func()
}

// Open begins a stream. Fault INVALID_CURSOR for a place that this database has not come to.
func (s *Streams) Open(ctx context.Context, query StreamQuery) (*Stream, error) {
	page, err := s.store.Feed(ctx, query.Workspace, query.After, 1)
	if err != nil {
		return nil, fmt.Errorf("open stream: %w", err)
	}
	stream := &Stream{store: s.store, query: query, place: page.Next, more: true}
	if query.After != nil {
		stream.place = *query.After
	}
	stream.signal, stream.cancel = s.notices.Subscribe(query.Workspace, uuid.Nil)
	return stream, nil
}

// Close ends the stream. It may be called twice.
func (s *Stream) Close() { s.cancel() }

// Place is behind everything that Next has answered and before everything that it will: a stream that is opened after
// it goes on without a gap.
func (s *Stream) Place() task.FeedPlace { return s.place }

// Held is how long something has waited that is committed but can't be told yet (task.FeedPage), as of the last look.
func (s *Stream) Held() time.Duration { return s.held }

// Next answers what comes next, in order, as soon as there is something, or nothing when within has passed or ctx ends.
func (s *Stream) Next(ctx context.Context, within time.Duration) ([]Told, error) {
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	for {
		if !s.more {
			if again := s.pause(ctx, deadline.C); !again {
				return nil, nil
			}
		}
		told, err := s.look(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil, nil
			}
			return nil, fmt.Errorf("read on: %w", err)
		}
		if len(told) > 0 {
			return told, nil
		}
		select {
		case <-deadline.C:
			return nil, nil
		default:
		}
	}
}

// pause waits until it is worth looking again; false when there is no time left for it.
func (s *Stream) pause(ctx context.Context, deadline <-chan time.Time) bool {
	poll := time.NewTimer(time.Until(s.looked.Add(s.wait)))
	defer poll.Stop()
	select {
	case <-s.signal:
	case <-poll.C:
		return true
	case <-deadline:
		return false
	case <-ctx.Done():
		return false
	}
	rest := time.NewTimer(restFor - time.Since(s.looked))
	defer rest.Stop()
	select {
	case <-rest.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// look reads one page and moves the place behind it.
func (s *Stream) look(ctx context.Context) ([]Told, error) {
	s.looked = time.Now()
	page, err := s.store.Feed(ctx, s.query.Workspace, &s.place, feedPage)
	if err != nil {
		return nil, err
	}
	told, err := s.tell(ctx, page.Entries)
	if err != nil {
		return nil, err
	}
	s.place, s.more = page.Next, page.More
	s.rest(page.Held, len(page.Entries) > 0)
	return told, nil
}

// rest decides how long to wait for the next look. While something is held back the feed moves on as soon as some
// transaction ends, of which no notice tells: it is looked at soon, and less often the longer it lasts.
func (s *Stream) rest(held time.Duration, moved bool) {
	switch {
	case held == 0:
		s.wait = pollEvery - rand.N(pollEvery/4) // #nosec G404 -- jitter
	case s.held == 0 || moved:
		s.wait = restFor
	default:
		s.wait = min(2*s.wait, pollEvery)
	}
	s.held = held
}

// tell reads the events of the entries that are wanted, as they are now: what has been erased meanwhile isn't there any
// more, and a task that has been retired is not told.
func (s *Stream) tell(ctx context.Context, entries []task.FeedEntry) ([]Told, error) {
	var ids []uuid.UUID
	wanted := slices.DeleteFunc(slices.Clone(entries), func(e task.FeedEntry) bool {
		return len(s.query.Kinds) > 0 && !slices.Contains(s.query.Kinds, e.Kind) ||
			len(s.query.Outcomes) > 0 && !slices.Contains(s.query.Outcomes, e.Outcome)
	})
	for _, e := range wanted {
		if !slices.Contains(ids, e.Place.TaskID) {
			ids = append(ids, e.Place.TaskID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	events, err := s.store.EventsByID(ctx, s.query.Workspace, ids)
	if err != nil {
		return nil, err
	}
	var told []Told
	for _, e := range wanted {
		if event, there := events[e.Place.TaskID]; there {
			told = append(told, Told{Place: e.Place, Outcome: e.Outcome, Event: event})
		}
	}
	return told, nil
}
