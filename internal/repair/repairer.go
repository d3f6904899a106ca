package repair

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"
)

// The passes, in the order they run.
const (
	PassTopology  = "topology"
	PassLeases    = "leases"
	PassExhausted = "exhausted"
	PassHints     = "hints"
	PassWebhooks  = "webhooks"
	PassInput     = "input"
	PassArchive   = "archive"
	PassKeys      = "keys"
	PassActs      = "acts"
	PassConsole   = "console"
	PassSeals     = "data_keys"
	PassBooks     = "books"
)

const (
	// passBound is how long one pass may take: six rounds of the default interval. What is left is the next round's.
	passBound = time.Minute
	// booksBound is longer, because the first reconciliation of a workspace reads its whole journal.
	booksBound = 15 * time.Minute
	// sweepSteps bounds the batches of one pass: with the default batch 20,000 rows.
	sweepSteps = 100
)

// Repairer runs the passes, once or in a loop. Its methods may be called from any goroutine.
type Repairer struct {
	deps Deps
	cfg  Config
	log  zerolog.Logger

	turn   sync.Mutex // one round at a time; guards the four below
	places map[string]Cursor
	due    map[string]time.Time
	ledger uuid.UUID // the last workspace whose books were looked at
	found  []Finding // of this round

	totalsMu sync.Mutex
	totals   map[string]Result

	loop loop
}

// New checks deps and cfg and fills in the defaults. It starts nothing.
func New(deps Deps, cfg Config) (*Repairer, error) {
	switch {
	case deps.Leases == nil || deps.Hints == nil || deps.Retention == nil || deps.Books == nil:
		return nil, errors.New("repair: leases, hints, retention and books are required")
	case deps.Publisher == nil || deps.Notifier == nil:
		return nil, errors.New("repair: a publisher and a notifier are required")
	}
	cfg, err := cfg.checked()
	if err != nil {
		return nil, fmt.Errorf("repair: %w", err)
	}
	return &Repairer{
		deps: deps, cfg: cfg, log: cfg.Log, places: map[string]Cursor{}, due: map[string]time.Time{},
		totals: map[string]Result{}, loop: newLoop(),
	}, nil
}

// pass is one thing that is looked after. In the loop it runs at most once in every; zero is every round.
type pass struct {
	name  string
	every time.Duration
	bound time.Duration
	run   func(ctx context.Context, res *Result) error
}

// passes lists all passes. A kick drops the age of hints, and so does a topology that was made anew; a full round looks
// at all books, however fresh.
func (r *Repairer) passes(kicked, full bool) []pass {
	age, fresh := r.cfg.HintAge, r.cfg.BooksEvery*9/10 // another process that checked within the hour did it for us
	if kicked {
		age = 0
	}
	if full {
		fresh = 0
	}
	return []pass{
		{PassTopology, 0, passBound, func(ctx context.Context, _ *Result) error {
			lost, err := r.topology(ctx)
			if lost {
				age = 0
			}
			return err
		}},
		{PassLeases, 0, passBound, r.leases},
		{PassExhausted, 0, passBound, r.exhausted},
		{PassHints, 0, passBound, func(ctx context.Context, res *Result) error { return r.hints(ctx, res, age) }},
		{PassWebhooks, 0, passBound, r.webhooks},
		{PassInput, r.cfg.RetentionEvery, passBound, r.input},
		{PassArchive, r.cfg.RetentionEvery, passBound, r.archive},
		{PassKeys, r.cfg.RetentionEvery, passBound, r.keys},
		{PassActs, r.cfg.RetentionEvery, passBound, r.acts},
		{PassConsole, r.cfg.RetentionEvery, passBound, r.console},
		{PassSeals, r.cfg.RetentionEvery, passBound, r.dataKeys},
		{PassBooks, r.cfg.BooksEvery, booksBound, func(ctx context.Context, res *Result) error {
			return r.books(ctx, res, fresh)
		}},
	}
}

// Once runs every pass once and reports what it found. A failing pass never stops the others: the report is complete
// and the error joins theirs, but for the topology's: without NATS everything else is done all the same. It waits for a
// round that is under way. The end of ctx ends it early.
func (r *Repairer) Once(ctx context.Context) (Report, error) {
	r.turn.Lock()
	defer r.turn.Unlock()
	r.ledger = uuid.Nil // all books, not those that a loop has left over
	report, failed := r.round(ctx, r.passes(false, true), true)
	var errs []error
	for _, res := range report.Results {
		err := failed[res.Pass]
		switch {
		case err != nil && res.Pass == PassTopology:
			r.log.Warn().Err(err).Str("pass", res.Pass).Msg("repair pass failed")
		case err != nil:
			errs = append(errs, fmt.Errorf("repair %s: %w", res.Pass, err))
		}
	}
	if err := ctx.Err(); err != nil {
		errs = append(errs, fmt.Errorf("repair: %w", err))
	}
	return report, errors.Join(errs...)
}

// round runs the passes that are due, or with force all of them, and answers the errors of those that failed.
func (r *Repairer) round(ctx context.Context, passes []pass, force bool) (Report, map[string]error) {
	report := Report{Results: []Result{}}
	r.found = nil
	failed := map[string]error{}
	for _, p := range passes {
		if ctx.Err() != nil {
			break
		}
		began := time.Now()
		if !force && began.Before(r.due[p.name]) {
			continue
		}
		res := Result{Pass: p.name}
		err := r.runPass(ctx, p, &res)
		r.due[p.name] = began.Add(p.every)
		if err != nil {
			failed[p.name] = err
			r.due[p.name] = began.Add(p.every / 4) // what failed or was cut short is tried again sooner
			if res.Failed == 0 {
				res.Failed = 1
			}
		}
		r.count(res, time.Since(began))
		report.Results = append(report.Results, res)
	}
	report.Findings, report.Drift = r.found, len(r.found) > 0
	return report, failed
}

// runPass runs one pass within its bound. A panic is that pass's error.
func (r *Repairer) runPass(ctx context.Context, p pass, res *Result) (err error) {
	ctx, cancel := context.WithTimeout(ctx, p.bound)
	defer cancel()
	defer func() {
		if caught := recover(); caught != nil {
			err = fmt.Errorf("panic of type %T", caught) // what it said may hold a caller's text
		}
	}()
	return p.run(ctx, res)
}

// count adds to the totals and tells of a pass that found something. The error of one that failed is told by whoever
// asked for the round.
func (r *Repairer) count(res Result, took time.Duration) {
	r.totalsMu.Lock()
	sum := r.totals[res.Pass]
	r.totals[res.Pass] = Result{
		Pass: res.Pass, Found: sum.Found + res.Found, Fixed: sum.Fixed + res.Fixed, Skipped: sum.Skipped + res.Skipped,
		Failed: sum.Failed + res.Failed,
	}
	r.totalsMu.Unlock()
	if res.Found == 0 {
		return
	}
	level := zerolog.InfoLevel
	if res.Failed > 0 {
		level = zerolog.WarnLevel
	}
	r.log.WithLevel(level).Str("pass", res.Pass).Int("found", res.Found).Int("fixed", res.Fixed).
		Int("skipped", res.Skipped).Int("failed", res.Failed).Dur("took", took).Msg("repair pass")
}

// Totals returns what each pass that has run has come to since the repairer was made.
func (r *Repairer) Totals() map[string]Result {
	r.totalsMu.Lock()
	defer r.totalsMu.Unlock()
	return maps.Clone(r.totals)
}

// sweep runs step over the rows behind the pass's place until there are no more. After so many steps it stops; the next
// round then goes on from there, so that no number of rows that can't be moved hides those behind them.
func (r *Repairer) sweep(ctx context.Context, name string, steps int, res *Result, step func(ctx context.Context, after Cursor) (Swept, error)) error {
	var failures []error
	for range steps {
		swept, err := step(ctx, r.places[name])
		res.add(swept)
		if err != nil {
			failures = append(failures, err)
		}
		if !swept.More {
			delete(r.places, name)
			break
		}
		r.places[name] = swept.Next
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(failures...)
}
