package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/app"
	"github.com/holdfast-memory/holdfast/internal/audit"
)

type auditCommand struct {
	app.Database
	Workspace            string        `env:"-" help:"Look at one workspace only, by its id or name."`
	Check                []string      `env:"-" placeholder:"NAME" help:"Run this check only; may be given several times. docs/audit.md names them."`
	Events               int           `env:"-" default:"10" help:"How many events a finding names."`
	Timeout              time.Duration `env:"-" default:"10m" help:"How long the whole audit may take. Its snapshot holds back vacuum."`
	CheckTimeout         time.Duration `env:"-" default:"3m" help:"How long one check may take."`
	StuckAfter           time.Duration `env:"-" default:"10m" help:"How long what is due may wait while nothing of its workspace moves."`
	FailedInputRetention time.Duration `name:"failed-input-retention" default:"168h" help:"How long repair keeps the input of a failed task."`
	MaxAttempts          int           `name:"max-attempts" default:"5" help:"Crashes before a task fails with ATTEMPTS_EXHAUSTED."`
}

// Run prints what contradicts the promises and ends with 1 if anything does, or if a check was not finished.
func (c *auditCommand) Run(s *session) error {
	known := audit.Checks()
	for _, name := range c.Check {
		if !slices.ContainsFunc(known, func(k audit.Check) bool { return k.Name == name }) {
			names := make([]string, len(known))
			for i, k := range known {
				names[i] = k.Name
			}
			return exitf(app.ExitUsage, "there is no such check; there are %s", strings.Join(names, ", "))
		}
	}
	report, err := app.Audit(s.ctx, c.Database, c.Workspace, audit.Options{
		Question: audit.Question{
			Events: c.Events, StuckAfter: c.StuckAfter, InputKept: audit.KeptInput(c.FailedInputRetention),
			MaxAttempts: c.MaxAttempts, Bound: c.CheckTimeout,
		},
		Checks: c.Check, Bound: c.Timeout,
	})
	if err != nil {
		return unknownWorkspace(err, c.Workspace)
	}
	if s.json {
		err = s.encode(auditOf(report))
	} else {
		err = s.showAudit(report)
	}
	if err == nil && !report.Clean() {
		return &exitError{code: app.ExitFailed}
	}
	return err
}

// auditReport is an audit as scripts read it.
type auditReport struct {
	Clean    bool           `json:"clean"`
	Complete bool           `json:"complete"`
	At       time.Time      `json:"at"`
	Findings []auditFinding `json:"findings"`
	Checks   []auditCheck   `json:"checks"`
}

type auditFinding struct {
	Check      string   `json:"check"`
	Detail     string   `json:"detail"`
	Count      int64    `json:"count"`
	Events     []string `json:"events"`
	Memories   []string `json:"memories"`
	Workspaces []string `json:"workspaces"`
}

type auditCheck struct {
	Name      string `json:"name"`
	Invariant string `json:"invariant"`
	TookMS    int64  `json:"took_ms"`
	Findings  int    `json:"findings"`
	Error     string `json:"error,omitempty"`
}

func auditOf(r audit.Report) auditReport {
	shown := auditReport{Clean: r.Clean(), Complete: r.Complete(), At: r.At.UTC(), Findings: []auditFinding{}}
	for _, f := range r.Findings() {
		shown.Findings = append(shown.Findings, auditFinding{
			f.Check, f.Detail, f.Count, prefixed("evt_", f.Events), prefixed("mem_", f.Memories), prefixed("ws_", f.Workspaces),
		})
	}
	for _, result := range r.Checks {
		check := auditCheck{result.Check.Name, result.Check.Invariant, result.Took.Milliseconds(), len(result.Findings), ""}
		if result.Err != nil {
			check.Error = result.Err.Error()
		}
		shown.Checks = append(shown.Checks, check)
	}
	return shown
}

func prefixed(prefix string, ids []uuid.UUID) []string {
	shown := make([]string, len(ids))
	for i, id := range ids {
		shown[i] = prefix + id.String()
	}
	return shown
}

func (s *session) showAudit(r audit.Report) error {
	var rows []string
	unfinished := 0
	for _, result := range r.Checks {
		verdict := "ok"
		switch {
		case result.Err != nil:
			unfinished++
			verdict = "NOT FINISHED"
		case len(result.Findings) > 0:
			verdict = "FOUND"
		}
		rows = append(rows, fmt.Sprintf("%s\t%s\t%s\t%s", verdict, result.Check.Name, result.Check.Invariant, result.Check.Proves))
		if result.Err != nil {
			rows = append(rows, "\t\t\t  "+result.Err.Error())
		}
		for _, f := range result.Findings {
			rows = append(rows, fmt.Sprintf("\t\t\t  %d × %s", f.Count, f.Detail))
			for _, ids := range [][]string{prefixed("evt_", f.Events), prefixed("mem_", f.Memories), prefixed("ws_", f.Workspaces)} {
				if len(ids) > 0 {
					rows = append(rows, "\t\t\t    "+strings.Join(ids, " "))
				}
			}
		}
	}
	return errors.Join(
		s.table("verdict\tcheck\tproves\twhat holds", rows),
		s.show(nil, "%d checks of the snapshot of %s, %d findings, %d checks not finished\n", len(r.Checks),
			r.At.UTC().Format(time.RFC3339), len(r.Findings()), unfinished),
	)
}
