package repair

import "github.com/google/uuid"

// Result is what one pass came to. Skipped is what somebody else took or changed first; for the books Failed is what
// does not agree.
type Result struct {
	Pass    string `json:"pass"`
	Found   int    `json:"found"`
	Fixed   int    `json:"fixed"`
	Skipped int    `json:"skipped"`
	Failed  int    `json:"failed"`
}

func (r *Result) add(s Swept) {
	r.Found += s.Found
	r.Fixed += s.Fixed
	r.Failed += s.Failed
	r.Skipped += s.Found - s.Fixed - s.Failed
}

// Report is what one round came to, one Result for each pass that ran.
type Report struct {
	Results []Result `json:"results"`
	// Drift tells that the books do not agree: somebody has to look.
	Drift bool `json:"drift"`
	// Findings are the first hundred disagreements.
	Findings []Finding `json:"findings,omitempty"`
}

// Check names one thing that must hold in the books.
type Check string

// The checks.
const (
	// CheckBalance holds available + held = granted − settled.
	CheckBalance Check = "balance"
	// CheckHeld holds held = the amounts of open runs.
	CheckHeld Check = "held"
	// CheckClosing holds that a run with an outcome has its closing.
	CheckClosing Check = "run_without_closing"
	// CheckOpenRun holds that an open run belongs to an unfinished task of its generation.
	CheckOpenRun Check = "open_run_without_unfinished_task"
	// CheckTaskRun holds that an unfinished task has an open run of its generation.
	CheckTaskRun Check = "unfinished_task_without_open_run"
	// CheckOutcome holds that a task and its run ended the same way.
	CheckOutcome Check = "ended_task_without_same_outcome"
	// CheckResults holds that a success that stored something says what.
	CheckResults Check = "success_without_results"
	// CheckKey holds that a key leads to its task.
	CheckKey Check = "key_without_task"
)

// Finding is one disagreement of a workspace's books. Events are the first twenty of Count. Want and Have are amounts
// and set for balances only.
type Finding struct {
	Check     Check       `json:"check"`
	Workspace uuid.UUID   `json:"workspace_id"`
	Count     int         `json:"count"`
	Events    []uuid.UUID `json:"event_ids,omitempty"`
	Want      int64       `json:"want,omitempty"`
	Have      int64       `json:"have,omitempty"`
}
