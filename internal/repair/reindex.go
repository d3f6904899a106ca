package repair

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/task"
)

const (
	// reindexPage is how many records are rebuilt between two marks of progress: a second start does at most so
	// many again.
	reindexPage = 256
	// reindexCall is how many texts one call of the embedder carries.
	reindexCall = 64
	// reindexTries is how often one step is tried: with the delays below that is two minutes, after which somebody
	// should look. The progress is kept.
	reindexTries = 8
	reindexDelay = time.Second
	reindexCap   = 30 * time.Second
	// reindexRounds is how often the records of a page are done anew that changed while they were embedded: whoever
	// changes one more often than that has to be stopped first.
	reindexRounds = 8
	// reindexPatience is the longest wait that a provider may ask for.
	reindexPatience = 5 * time.Minute
	// reindexPages bounds one run; what is left goes on with the next.
	reindexPages = 10_000_000
)

// Reindex is one rebuild of the projections: of all records that were live when it began. After is the last record
// that is done.
type Reindex struct {
	ID        uuid.UUID
	Model     string
	After     uuid.UUID
	Done      int64
	Total     int64
	StartedAt time.Time
	Finished  bool
}

// Source is a live record whose projections are to be made.
type Source struct {
	ID          uuid.UUID
	WorkspaceID uuid.UUID
	Version     int
	Text        string
}

// Projections is what was made of one Source. A nil vector says that the embedder refuses the text for good.
type Projections struct {
	RecordID uuid.UUID
	Version  int
	Terms    memory.Terms
	Vector   model.Vector
}

// ReindexStore keeps the progress and writes projections.
type ReindexStore interface {
	// OpenReindex answers the unfinished rebuild for the model, or begins one.
	OpenReindex(ctx context.Context, model string) (Reindex, error)
	// ReindexSources answers the live records after the last one done, in the order of their ids.
	ReindexSources(ctx context.Context, r Reindex, limit int) ([]Source, error)
	// StaleSources answers those of the records that are live and lack projections of their present version by model.
	StaleSources(ctx context.Context, model string, ids []uuid.UUID) ([]Source, error)
	// Reproject writes projections of one workspace, only where a record still has the version they were made from.
	Reproject(ctx context.Context, workspace uuid.UUID, model string, made []Projections) error
	// MarkReindex moves the progress from r to the record `to`, which ends it if last is set, and answers where it is
	// now. If another run has moved it, it moves nothing.
	MarkReindex(ctx context.Context, r Reindex, to uuid.UUID, records int, last bool) (Reindex, error)
}

// Reindexer rebuilds lexical terms and vectors from the canonical records, while everything else goes on. Any number
// of them at once is harmless.
type Reindexer struct {
	store    ReindexStore
	embedder model.Embedder
	wait     func(ctx context.Context, d time.Duration) error
}

// NewReindexer returns a Reindexer that makes vectors with embedder. A nil wait is real time.
func NewReindexer(store ReindexStore, embedder model.Embedder, wait func(ctx context.Context, d time.Duration) error) (*Reindexer, error) {
	if store == nil || embedder == nil {
		return nil, errors.New("reindexer: store and embedder are required")
	}
	if wait == nil {
		wait = pause
	}
	return &Reindexer{store: store, embedder: embedder, wait: wait}, nil
}

// Run begins a rebuild, or goes on with the unfinished one of this embedder's model, until its end, and tells progress
// after each page. An error leaves the progress where it is: the next Run goes on there.
func (x *Reindexer) Run(ctx context.Context, progress func(Reindex)) (Reindex, error) {
	var r Reindex
	err := x.try(ctx, func() (err error) {
		r, err = x.store.OpenReindex(ctx, x.embedder.Model())
		return err
	})
	if err != nil {
		return r, fmt.Errorf("open reindex: %w", err)
	}
	for range reindexPages {
		progress(r)
		if r.Finished {
			return r, nil
		}
		if r, err = x.page(ctx, r); err != nil {
			return r, err
		}
	}
	return r, errors.New("reindex: more pages than one run may do; start it again")
}

// page rebuilds the next records and marks them. Nothing is locked while the embedder works.
func (x *Reindexer) page(ctx context.Context, r Reindex) (Reindex, error) {
	var sources []Source
	err := x.try(ctx, func() (err error) {
		sources, err = x.store.ReindexSources(ctx, r, reindexPage)
		return err
	})
	if err != nil {
		return r, fmt.Errorf("read records: %w", err)
	}
	if err := x.rebuild(ctx, r.Model, sources); err != nil {
		return r, err
	}
	to := r.After
	if len(sources) > 0 {
		to = sources[len(sources)-1].ID
	}
	next := r
	err = x.try(ctx, func() (err error) {
		next, err = x.store.MarkReindex(ctx, r, to, len(sources), len(sources) < reindexPage)
		return err
	})
	if err != nil {
		return r, fmt.Errorf("mark progress: %w", err)
	}
	return next, nil
}

var errRestless = errors.New("records change faster than they are rebuilt; start it again")

// rebuild makes the projections of a page, and again of those records whose version has moved meanwhile.
func (x *Reindexer) rebuild(ctx context.Context, vectorModel string, sources []Source) error {
	ids := make([]uuid.UUID, len(sources))
	for i, s := range sources {
		ids[i] = s.ID
	}
	for range reindexRounds {
		if len(sources) == 0 {
			return nil
		}
		if err := x.project(ctx, vectorModel, sources); err != nil {
			return err
		}
		err := x.try(ctx, func() (err error) {
			sources, err = x.store.StaleSources(ctx, vectorModel, ids)
			return err
		})
		if err != nil {
			return fmt.Errorf("read changed records: %w", err)
		}
	}
	if len(sources) > 0 {
		return errRestless
	}
	return nil
}

func (x *Reindexer) project(ctx context.Context, vectorModel string, sources []Source) error {
	vectors, err := x.embed(ctx, sources)
	if err != nil {
		return fmt.Errorf("embed: %w", err)
	}
	// Each workspace is a transaction of its own, in the order in which its first record comes.
	var order []uuid.UUID
	made := map[uuid.UUID][]Projections{}
	for i, s := range sources {
		if made[s.WorkspaceID] == nil {
			order = append(order, s.WorkspaceID)
		}
		made[s.WorkspaceID] = append(made[s.WorkspaceID], Projections{s.ID, s.Version, memory.TermsOf(s.Text), vectors[i]})
	}
	for _, workspace := range order {
		err := x.try(ctx, func() error { return x.store.Reproject(ctx, workspace, vectorModel, made[workspace]) })
		if err != nil {
			return fmt.Errorf("write projections: %w", err)
		}
	}
	return nil
}

func (x *Reindexer) embed(ctx context.Context, sources []Source) ([]model.Vector, error) {
	texts := make([]string, len(sources))
	for i, s := range sources {
		texts[i] = s.Text
	}
	vectors := make([]model.Vector, 0, len(texts))
	for first := 0; first < len(texts); first += reindexCall {
		some, err := x.embedSome(ctx, texts[first:min(first+reindexCall, len(texts))])
		if err != nil {
			return nil, err
		}
		vectors = append(vectors, some...)
	}
	return vectors, nil
}

// embedSome embeds one batch. A refusal of the batch as a whole is narrowed down by halves to the texts that are meant.
func (x *Reindexer) embedSome(ctx context.Context, texts []string) ([]model.Vector, error) {
	var made []model.Vector
	err := x.try(ctx, func() error {
		answer, err := x.embedder.Embed(ctx, texts)
		if err == nil && len(answer.Vectors) != len(texts) {
			err = fmt.Errorf("%d vectors for %d texts", len(answer.Vectors), len(texts))
		}
		made = answer.Vectors
		return err
	})
	if e, ok := errors.AsType[*model.Error](err); !ok || e.Class != task.ProjectionRejected {
		return made, err
	}
	if len(texts) == 1 {
		return []model.Vector{nil}, nil
	}
	left, err := x.embedSome(ctx, texts[:len(texts)/2])
	if err != nil {
		return nil, err
	}
	right, err := x.embedSome(ctx, texts[len(texts)/2:])
	return append(left, right...), err
}

// try repeats what may pass by itself: a provider or a database that does not answer now. Every step may be done
// twice.
func (x *Reindexer) try(ctx context.Context, step func() error) error {
	delay := reindexDelay
	var err error
	for n := range reindexTries {
		if err = step(); err == nil || ctx.Err() != nil {
			return err
		}
		passes, least := passing(err)
		if !passes || n == reindexTries-1 {
			return err
		}
		if waited := x.wait(ctx, max(delay, min(least, reindexPatience))); waited != nil {
			return errors.Join(err, waited)
		}
		delay = min(2*delay, reindexCap)
	}
	return err
}

// passing tells whether a failure may pass by itself, and how long its provider asks to be left alone.
func passing(err error) (passes bool, least time.Duration) {
	if e, ok := errors.AsType[*model.Error](err); ok {
		switch e.Class {
		case task.ProviderTimeout, task.ProviderUnavailable, task.ProviderRateLimited, task.ProjectionFailed:
			return true, e.RetryAfter
		case task.ProviderRejected, task.OutputInvalid, task.ExtractionRejected, task.InputRejected, task.PayloadUnreadable, task.InternalFailure,
			task.ProjectionRejected, task.LeaseLost, task.Shutdown, task.Crash, task.Cancelled, task.DeliveryFailed, task.EndpointDisabled:
		}
		return false, 0
	}
	if errors.Is(err, fault.ErrCommitUnknown) {
		return true, 0
	}
	e, ok := errors.AsType[*fault.Error](err)
	return ok && e.Retryable(), 0
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
