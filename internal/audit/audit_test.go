package audit_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/audit"
)

// answers is a store whose checks answer what the test says.
type answers struct {
	asked []string
	find  func(ctx context.Context, check string) ([]audit.Finding, error)
}

func (a *answers) InSnapshot(ctx context.Context, fn func(ctx context.Context, s audit.Snapshot) error) error {
	return fn(ctx, a)
}

func (a *answers) At() time.Time { return time.Unix(1_700_000_000, 0) }

func (a *answers) Find(ctx context.Context, check string, _ audit.Question) ([]audit.Finding, error) {
	a.asked = append(a.asked, check)
	if a.find == nil {
		return nil, nil
	}
	return a.find(ctx, check)
}

func run(t *testing.T, a *answers, opts audit.Options) audit.Report {
	t.Helper()
	auditor, err := audit.New(a, opts)
	if err != nil {
		t.Fatal(err)
	}
	report, err := auditor.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestRun(t *testing.T) {
	t.Parallel()

	t.Run("WithoutFindingsIsClean", func(t *testing.T) {
		t.Parallel()
		a := &answers{}
		report := run(t, a, audit.Options{})
		if !report.Clean() || !report.Complete() || len(a.asked) != len(audit.Checks()) || !report.At.Equal(a.At()) {
			t.Fatalf("asked %v: %+v", a.asked, report)
		}
	})

	t.Run("OneFindingIsNotClean", func(t *testing.T) {
		t.Parallel()
		event := uuid.New()
		a := &answers{find: func(_ context.Context, check string) ([]audit.Finding, error) {
			if check == audit.Keys {
				return []audit.Finding{{Check: check, Count: 3, Events: []uuid.UUID{event}}}, nil
			}
			return nil, nil
		}}
		report := run(t, a, audit.Options{})
		if found := report.Findings(); report.Clean() || !report.Complete() || len(found) != 1 || found[0].Events[0] != event {
			t.Fatalf("%+v", report)
		}
	})

	t.Run("OnlyTheChosenChecksAreAsked", func(t *testing.T) {
		t.Parallel()
		a := &answers{}
		run(t, a, audit.Options{Checks: []string{audit.Stuck, audit.Keys, audit.Stuck}})
		if strings.Join(a.asked, " ") != "keys stuck" {
			t.Fatalf("asked %v", a.asked)
		}
	})

	t.Run("ACheckThatFailsIsNotCleanAndStopsNoOther", func(t *testing.T) {
		t.Parallel()
		a := &answers{find: func(_ context.Context, check string) ([]audit.Finding, error) {
			if check == audit.Runs {
				return nil, errors.New("too slow")
			}
			return nil, nil
		}}
		report := run(t, a, audit.Options{})
		if report.Clean() || report.Complete() || len(a.asked) != len(audit.Checks()) || len(report.Findings()) != 0 {
			t.Fatalf("asked %v: %+v", a.asked, report)
		}
	})

	t.Run("ALostSnapshotIsNotAskedAgain", func(t *testing.T) {
		t.Parallel()
		a := &answers{find: func(context.Context, string) ([]audit.Finding, error) { return nil, audit.ErrSnapshotLost }}
		report := run(t, a, audit.Options{})
		if report.Clean() || len(a.asked) != 1 || len(report.Checks) != len(audit.Checks()) {
			t.Fatalf("asked %v: %+v", a.asked, report)
		}
	})

	t.Run("WhenTheTimeIsOverTheRestIsNotBegun", func(t *testing.T) {
		t.Parallel()
		a := &answers{find: func(ctx context.Context, _ string) ([]audit.Finding, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		report := run(t, a, audit.Options{Bound: time.Second})
		if report.Clean() || len(a.asked) != 1 || len(report.Checks) != len(audit.Checks()) {
			t.Fatalf("asked %v: %+v", a.asked, report)
		}
		for _, result := range report.Checks {
			if result.Err == nil {
				t.Errorf("check %s counts as finished", result.Check.Name)
			}
		}
	})

	t.Run("WhoGivesUpIsTold", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		a := &answers{find: func(context.Context, string) ([]audit.Finding, error) {
			cancel()
			return nil, context.Canceled
		}}
		auditor, err := audit.New(a, audit.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if report, err := auditor.Run(ctx); !errors.Is(err, context.Canceled) || report.Clean() {
			t.Fatalf("%+v, %v", report, err)
		}
	})
}

func TestNew(t *testing.T) {
	t.Parallel()
	if _, err := audit.New(nil, audit.Options{}); err == nil {
		t.Error("without a store")
	}
	for name, opts := range map[string]audit.Options{
		"an unknown check":          {Checks: []string{"luck"}},
		"a bound too short":         {Bound: time.Millisecond},
		"a bound too long":          {Bound: 48 * time.Hour},
		"a check's bound too short": {Question: audit.Question{Bound: time.Millisecond}},
		"too many events":           {Question: audit.Question{Events: 100_000}},
		"a negative number":         {Question: audit.Question{Events: -1}},
		"a negative time":           {Question: audit.Question{StuckAfter: -time.Second}},
		"no attempts":               {Question: audit.Question{MaxAttempts: -1}},
	} {
		if _, err := audit.New(&answers{}, opts); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

// TestDocs holds the catalogue and its page together.
func TestDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/audit.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, check := range audit.Checks() {
		if !strings.Contains(string(page), "| `"+check.Name+"` | "+check.Invariant+" | "+check.Proves+" |") {
			t.Errorf("docs/audit.md has no line of check %s as the catalogue has it", check.Name)
		}
		if !strings.Contains(string(page), "**`"+check.Name+"`**") {
			t.Errorf("docs/audit.md doesn't say what to do about %s", check.Name)
		}
	}
}
