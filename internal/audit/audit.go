package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Finding is one way in which the database contradicts a check.
type Finding struct {
	Check string
	// Detail says in words what is wrong. Findings of one check with the same detail are one finding.
	Detail string
	// Count is how many rows are wrong in this way, all of them.
	Count int64
	// Events, Memories and Workspaces name the first of these rows, each id once. A row need not have each of them: the
	// balance of a workspace has no event, and the event of an imported memory is in another database.
	Events     []uuid.UUID
	Memories   []uuid.UUID
	Workspaces []uuid.UUID
}

// Result is what one check came to.
type Result struct {
	Check    Check
	Findings []Finding
	Took     time.Duration
	// Err says why the check was not finished; it is nil when it was.
	Err error
}

// Report is what an audit came to.
type Report struct {
	// At is the time of the snapshot by the database's clock.
	At     time.Time
	Checks []Result
}

// Clean tells whether every check was finished and none has a finding.
func (r Report) Clean() bool { return r.Complete() && len(r.Findings()) == 0 }

// Complete tells whether every check was finished.
func (r Report) Complete() bool {
	for _, result := range r.Checks {
		if result.Err != nil {
			return false
		}
	}
	return true
}

// Findings returns those of all checks.
func (r Report) Findings() []Finding {
	var all []Finding
	for _, result := range r.Checks {
		all = append(all, result.Findings...)
	}
	return all
}

// Question is what a check is asked with.
type Question struct {
	// Workspace restricts the check; nil is all of them.
	Workspace *uuid.UUID
	// Events is how many rows a finding names.
	Events int
	// StuckAfter is how long what is due may wait while nothing else of its workspace moves.
	StuckAfter time.Duration
	// InputKept is how long after its end a failed event may still have its input.
	InputKept time.Duration
	// MaxAttempts is how many crashes end an event before its commit.
	MaxAttempts int
	// Bound is how long the check may take.
	Bound time.Duration
}

// Snapshot is one view of the database, in which every check sees the same.
type Snapshot interface {
	// At is when the view was taken, by the database's clock.
	At() time.Time
	// Find answers what contradicts the check. An error leaves the snapshot as it was, unless it is ErrSnapshotLost.
	Find(ctx context.Context, check string, q Question) ([]Finding, error)
}

// ErrSnapshotLost says that a snapshot can't be asked any more.
var ErrSnapshotLost = errors.New("the snapshot is lost")

// Store is a database that can be audited.
type Store interface {
	// InSnapshot runs fn with a snapshot that ends with it. Nothing is written.
	InSnapshot(ctx context.Context, fn func(ctx context.Context, s Snapshot) error) error
}

// Options say what an audit looks at. Zero values mean the defaults of DefaultOptions.
type Options struct {
	Question
	// Checks are the names of those that are run, in the catalogue's order; none means all.
	Checks []string
	// Bound is how long the whole audit may take and so hold back vacuum.
	Bound time.Duration
}

const (
	// auditBound is long enough for some ten million rows, and what vacuum catches up on within minutes.
	auditBound = 10 * time.Minute
	// checkBound keeps one check from spending the time of all others.
	checkBound = 3 * time.Minute
	// maxBound is where a snapshot that holds back vacuum does more harm than it finds.
	maxBound = 24 * time.Hour
	// namedRows are as many as a person looks into; maxNamed is what a terminal and a report still take.
	namedRows = 10
	maxNamed  = 10_000
	// stuckAfter is ten times a lease and more than the longest delay of a retry.
	stuckAfter = 10 * time.Minute
	// inputSlack is how far repair may be behind with removing failed input before that is a finding.
	inputSlack = 24 * time.Hour
)

// DefaultOptions returns the defaults.
func DefaultOptions() Options {
	return Options{
		Question: Question{
			Events: namedRows, StuckAfter: stuckAfter, InputKept: 7*24*time.Hour + inputSlack, MaxAttempts: 5, Bound: checkBound,
		},
		Bound: auditBound,
	}
}

// KeptInput returns how long failed input may be there when it is removed after retention.
func KeptInput(retention time.Duration) time.Duration { return retention + inputSlack }

func (o Options) checked() (Options, error) {
	d := DefaultOptions()
	for _, setting := range []struct{ value, fallback *time.Duration }{
		{&o.Bound, &d.Bound},
		{&o.Question.Bound, &d.Question.Bound},
		{&o.StuckAfter, &d.StuckAfter},
		{&o.InputKept, &d.InputKept},
	} {
		if *setting.value == 0 {
			*setting.value = *setting.fallback
		}
	}
	for _, setting := range []struct{ value, fallback *int }{{&o.Events, &d.Events}, {&o.MaxAttempts, &d.MaxAttempts}} {
		if *setting.value == 0 {
			*setting.value = *setting.fallback
		}
	}
	switch {
	case o.Bound < time.Second || o.Bound > maxBound || o.Question.Bound < time.Second || o.Question.Bound > maxBound:
		return o, fmt.Errorf("audit: the bounds must be 1s to %s", maxBound)
	case o.Events < 1 || o.Events > maxNamed:
		return o, fmt.Errorf("audit: events must be 1 to %d, not %d", maxNamed, o.Events)
	case o.StuckAfter < 0 || o.InputKept < 0 || o.MaxAttempts < 1:
		return o, errors.New("audit: times must not be negative, and max attempts not below 1")
	}
	return o, nil
}

// Auditor runs checks.
type Auditor struct {
	store  Store
	opts   Options
	checks []Check
}

// New returns an auditor, or names the option that can't be.
func New(store Store, opts Options) (*Auditor, error) {
	if store == nil {
		return nil, errors.New("audit: a store is required")
	}
	opts, err := opts.checked()
	if err != nil {
		return nil, err
	}
	checks, err := selected(opts.Checks)
	if err != nil {
		return nil, err
	}
	return &Auditor{store, opts, checks}, nil
}

// errNoTime says of a check that the audit's time was over before it began.
var errNoTime = errors.New("not begun: the time of the audit was over")

// Run asks every check in one snapshot. A check that fails doesn't keep the others from being asked. The error says
// that there was no snapshot, or that the caller gave up; the report then holds what was done.
func (a *Auditor) Run(ctx context.Context) (Report, error) {
	var report Report
	bounded, cancel := context.WithTimeout(ctx, a.opts.Bound)
	defer cancel()
	err := a.store.InSnapshot(bounded, func(ctx context.Context, s Snapshot) error {
		report = Report{At: s.At()}
		lost := false
		for _, check := range a.checks {
			result := Result{Check: check, Err: errNoTime}
			if !lost && ctx.Err() == nil {
				began := time.Now()
				result.Findings, result.Err = s.Find(ctx, check.Name, a.opts.Question)
				result.Took = time.Since(began)
				lost = errors.Is(result.Err, ErrSnapshotLost)
			} else if lost {
				result.Err = ErrSnapshotLost
			}
			report.Checks = append(report.Checks, result)
		}
		return nil
	})
	if err != nil {
		return report, fmt.Errorf("audit: %w", err)
	}
	if ctx.Err() != nil {
		return report, fmt.Errorf("audit: %w", ctx.Err())
	}
	return report, nil
}
