package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-memory/holdfast/internal/audit"
)

// audited audits the world's database. A check that was not finished is an error.
func (w *world) audited(opts audit.Options) (audit.Report, error) {
	auditor, err := audit.New(w.db, opts)
	if err != nil {
		return audit.Report{}, err
	}
	report, err := auditor.Run(w.t.Context())
	for _, result := range report.Checks {
		if result.Err != nil {
			err = errors.Join(err, fmt.Errorf("check %s: %w", result.Check.Name, result.Err))
		}
	}
	if len(opts.Checks) == 0 && len(report.Checks) != len(audit.Checks()) {
		err = errors.Join(err, fmt.Errorf("%d checks were asked", len(report.Checks)))
	}
	return report, err
}

// sound fails the test when an audit finds anything. It may be called by any goroutine of the test.
func (w *world) sound() {
	w.t.Helper()
	report, err := w.audited(audit.Options{})
	if err != nil {
		w.t.Errorf("audit: %v", err)
	}
	if found := describe(report); found != "" {
		w.t.Errorf("the audit found:\n%s", found)
	}
}

func describe(r audit.Report) string {
	var lines []string
	for _, f := range r.Findings() {
		lines = append(lines, fmt.Sprintf("%s: %d × %s: events %v, memories %v", f.Check, f.Count, f.Detail, f.Events, f.Memories))
	}
	return strings.Join(lines, "\n")
}

// soundUntil audits again and again until the time has come: in a busy system, too, every snapshot is sound.
func (w *world) soundUntil(end time.Time) {
	w.t.Helper()
	for audits := 0; ; audits++ {
		w.sound()
		if w.t.Failed() || time.Now().After(end) {
			w.t.Logf("%d audits", audits+1)
			return
		}
	}
}
