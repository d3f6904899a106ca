package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"
)

const auditBound = 15 * time.Minute // more than the command's own bound

// columnOf is the column in which a check of the auditor counts; a name that is not here counts as lost.
func columnOf(check string) string {
	switch check {
	case "keys", "results", "records":
		return duplicated
	case "closings":
		return doubleCharged
	case "runs", "balances", "checkpoints":
		return ledgerDrift
	case "leases", "heads", "stuck":
		return stuck
	case "input", "erased", "leftovers", "fences", "tenancy":
		return leaked
	}
	return lost
}

// checkAudit asks the operator's own auditor.
func (w *world) checkAudit(ctx context.Context, _ *notes, r *report) error {
	ctx, cancel := context.WithTimeout(ctx, auditBound)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(w.bin, "holdfast"), "audit", "--json", "--stuck-after=10s")
	cmd.Env = append(os.Environ(), "HOLDFAST_DATABASE_URL="+w.pg.URL())
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	failed := cmd.Run()
	var said struct {
		Clean    bool
		Complete bool
		Findings []struct {
			Check, Detail string
			Count         int64
			Events        []string
		}
		Checks []struct{ Name string }
	}
	if err := json.Unmarshal(out.Bytes(), &said); err != nil {
		return fmt.Errorf("holdfast audit: %w\n%s", errors.Join(failed, err), errs.Bytes())
	}
	r.audited = len(said.Checks)
	for _, f := range said.Findings {
		r.find(columnOf(f.Check), "holdfast audit, "+f.Check, "%d × %s %v", f.Count, f.Detail, f.Events[:min(3, len(f.Events))])
	}
	if !said.Complete || said.Clean != (len(said.Findings) == 0) {
		r.find(lost, "holdfast audit", "it was not finished")
	}
	return nil
}

// checkClock holds that the shifted worker's clock was off indeed: otherwise the run shows nothing about clocks.
func (w *world) checkClock(_ context.Context, _ *notes, _ *report) error {
	if !w.cfg.has(faultClock) {
		return nil
	}
	log := filepath.Join(w.dir, fmt.Sprintf("worker-%d.log", w.cfg.Workers-1))
	text, err := os.ReadFile(log)
	if err != nil {
		return fmt.Errorf("read the shifted clock: %w", err)
	}
	stamp := regexp.MustCompile(`"time":"([^"]+)"`).FindSubmatch(text)
	if stamp == nil {
		return errors.New("read the shifted clock: its log has no times")
	}
	at, err := time.Parse(time.RFC3339, string(stamp[1]))
	if err != nil {
		return fmt.Errorf("read the shifted clock: %w", err)
	}
	if ahead := at.Sub(w.log.began); ahead < clockShift-time.Minute { // it starts after the journal
		return fmt.Errorf("the shifted clock was %s ahead, not %s", ahead, clockShift)
	}
	return nil
}
