package task

import (
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-memory/holdfast/internal/testkit/property"
)

// drawing is the picture in the package documentation. Who changes the one changes the other, and drawn below.
const drawing = `
                claim                         commit                       settle
pending/accepted ─────▶ running/accepted ────────────▶ running/committed ─────────▶ succeeded/projected
   ▲   │   ▲               │    │    │                    │        ▲                      ▲
   │   │   └──retry, give──┘    │    └──────settle────────┼────────┼──────────────────────┤ (local embedder)
   │   │      back, rescue      │       (both at once)    ▼ retry, │ claim                │
   │   │                        │                   pending/committed ◀── write now ──────┘ (born succeeded)
   │   └─cancel, exhaust─▶ failed/accepted ◀─fail, cancel, exhaust
   └──────────────────────────manual retry (a new generation)
`

// drawn is what the drawing says, arrow by arrow. The ways back to pending are named at the upper arrow; the
// moves that change nothing of the state are not drawn.
func drawn() []Step {
	pa, pc := State{Pending, Accepted}, State{Pending, Committed}
	ra, rc := State{Running, Accepted}, State{Running, Committed}
	done, failed := State{Succeeded, Projected}, State{Failed, Accepted}
	return []Step{
		{Claim, pa, ra},
		{Commit, ra, rc},
		{Settle, rc, done},
		{Settle, ra, done},
		{Retry, ra, pa},
		{GiveBack, ra, pa},
		{Rescue, ra, pa},
		{Retry, rc, pc},
		{GiveBack, rc, pc},
		{Rescue, rc, pc},
		{Claim, pc, rc},
		{Cancel, pa, failed},
		{Exhaust, pa, failed},
		{Fail, ra, failed},
		{Cancel, ra, failed},
		{Exhaust, ra, failed},
		{ManualRetry, failed, pa},
	}
}

func TestMoves(t *testing.T) {
	t.Parallel()
	t.Run("TheDocumentationShowsThisDrawing", func(t *testing.T) {
		t.Parallel()
		file, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := picture(file.Doc.Text()), picture(drawing); !slices.Equal(got, want) {
			t.Fatalf("doc.go shows\n%s\nthe test reads\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
	t.Run("TheDrawingAndTheTableAgree", func(t *testing.T) {
		t.Parallel()
		for _, step := range drawn() {
			if !slices.Contains(Moves(), step) {
				t.Errorf("the table lacks %s from %s to %s", step.Move, step.From, step.To)
			}
		}
		for _, step := range Moves() {
			if step.From != step.To && !slices.Contains(drawn(), step) {
				t.Errorf("the drawing lacks %s from %s to %s", step.Move, step.From, step.To)
			}
		}
	})
	t.Run("NoStepIsListedTwice", func(t *testing.T) {
		t.Parallel()
		seen := map[Step]bool{}
		for _, step := range Moves() {
			if seen[step] {
				t.Errorf("%+v is listed twice", step)
			}
			seen[step] = true
		}
	})
	t.Run("SuccessHasNoExit", func(t *testing.T) {
		t.Parallel()
		for _, step := range Moves() {
			if step.From.Status == Succeeded {
				t.Errorf("%s leads out of %s", step.Move, step.From)
			}
		}
	})
	t.Run("OnlyAManualRetryLeavesFailure", func(t *testing.T) {
		t.Parallel()
		for _, step := range Moves() {
			if (step.From.Status == Failed) != (step.Move == ManualRetry) {
				t.Errorf("%s leads from %s to %s", step.Move, step.From, step.To)
			}
		}
	})
	t.Run("CommittedWorkNeverFails", func(t *testing.T) {
		t.Parallel()
		for _, step := range Moves() {
			if step.From.Stage != Accepted && step.To.Status == Failed {
				t.Errorf("%s leads from %s to %s", step.Move, step.From, step.To)
			}
		}
	})
	t.Run("TheStageNeverGoesBack", func(t *testing.T) {
		t.Parallel()
		order := []Stage{Accepted, Committed, Projected}
		for _, step := range Moves() {
			if slices.Index(order, step.To.Stage) < slices.Index(order, step.From.Stage) {
				t.Errorf("%s leads from %s to %s", step.Move, step.From, step.To)
			}
		}
	})
	t.Run("EveryUnfinishedStateCanSucceed", func(t *testing.T) {
		t.Parallel()
		for _, step := range Moves() {
			if !reaches(step.From, State{Succeeded, Projected}) && !step.From.Status.Terminal() {
				t.Errorf("%s is a dead end", step.From)
			}
		}
	})
}

// picture returns the lines of the drawing in text, without what indents all of them.
func picture(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if strings.ContainsAny(line, "─▶◀▲▼│") || strings.Contains(line, "claim") && strings.Contains(line, "settle") && strings.Contains(line, "commit") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

func reaches(from, to State) bool {
	seen := map[State]bool{from: true}
	queue := []State{from}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for _, step := range Moves() {
			if step.From == at && !seen[step.To] {
				seen[step.To] = true
				queue = append(queue, step.To)
			}
		}
	}
	return seen[to]
}

func TestPermits(t *testing.T) {
	t.Parallel()
	t.Run("ExactlyTheTable", func(t *testing.T) {
		t.Parallel()
		moves := []Move{Claim, Heartbeat, Commit, Settle, Fail, Retry, GiveBack, Rescue, Exhaust, Cancel, ManualRetry, "undo"}
		var states []State
		for _, status := range []Status{Pending, Running, Succeeded, Failed} {
			for _, stage := range []Stage{Accepted, Committed, Projected} {
				states = append(states, State{status, stage})
			}
		}
		for _, move := range moves {
			for _, from := range states {
				for _, to := range states {
					if got, want := Permits(move, from, to), slices.Contains(Moves(), Step{move, from, to}); got != want {
						t.Errorf("%s from %s to %s: %v", move, from, to, got)
					}
				}
			}
		}
	})
	t.Run("AnyWalkKeepsTheInvariants", func(t *testing.T) {
		t.Parallel()
		property.Check(t, func(t *rapid.T) {
			at, committed := State{Pending, Accepted}, false
			for range rapid.IntRange(1, 30).Draw(t, "steps") {
				var open []Step
				for _, step := range Moves() {
					if step.From == at {
						open = append(open, step)
					}
				}
				if len(open) == 0 {
					if at != (State{Succeeded, Projected}) {
						t.Fatalf("stuck in %s", at)
					}
					return
				}
				step := rapid.SampledFrom(open).Draw(t, "step")
				at = step.To
				committed = committed || at.Stage != Accepted
				if committed && (at.Status == Failed || at.Stage == Accepted) {
					t.Fatalf("%s undid the commit: %s", step.Move, at)
				}
			}
		})
	})
}

func TestEventStatus(t *testing.T) {
	t.Parallel()
	t.Run("ParsesItsOwnNamesOnly", func(t *testing.T) {
		t.Parallel()
		for _, s := range []EventStatus{EventPending, EventRunning, EventRetrying, EventSucceeded, EventFailed} {
			if got, ok := ParseEventStatus(string(s)); !ok || got != s {
				t.Errorf("%s is %q, %v", s, got, ok)
			}
		}
		for _, text := range []string{"", "pending", "DONE", " RUNNING"} {
			if got, ok := ParseEventStatus(text); ok {
				t.Errorf("%q is %q", text, got)
			}
		}
	})
	t.Run("TwoEndARun", func(t *testing.T) {
		t.Parallel()
		if !EventSucceeded.Terminal() || !EventFailed.Terminal() || EventPending.Terminal() || EventRunning.Terminal() || EventRetrying.Terminal() {
			t.Fatal("wrong ends")
		}
	})
}
