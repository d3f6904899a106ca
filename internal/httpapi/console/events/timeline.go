package events

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-memory/holdfast/internal/httpapi/console/frame"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// moment is one point of the timeline. Coming is what is still expected.
type moment struct {
	At     time.Time
	After  string // since the acceptance
	Tone   string
	What   string
	Detail string
	Coming bool
}

// moments tell the life of an event in words.
func moments(v *frame.Visit, event recall.Event, life recall.Life) []moment {
	t := teller{event: event, life: life, names: map[string]string{}, open: v.Operator()}
	begin := life.AcceptedAt
	if len(life.Runs) > 0 && life.Runs[0].Generation == 1 {
		begin = life.Runs[0].OpenedAt
	}
	var all []moment
	for _, step := range life.Steps() {
		m := t.tell(step)
		m.At, m.After = step.At, "+"+frame.Span(step.At.Sub(begin))
		if step.At.Sub(begin) < time.Millisecond {
			m.After = "0"
		}
		all = append(all, m)
	}
	if m, ok := t.present(); ok {
		all = append(all, m)
	}
	return all
}

// teller puts steps into words. Workers have their own names for operators, and letters for everybody else.
type teller struct {
	event recall.Event
	life  recall.Life
	names map[string]string
	open  bool
}

func (t *teller) worker(name string) string {
	if t.open {
		return name
	}
	if t.names[name] == "" {
		t.names[name] = fmt.Sprintf("%c", 'A'+rune(len(t.names)%26))
	}
	return t.names[name]
}

func (t *teller) tell(s recall.Step) moment {
	switch s.Kind {
	case recall.StepAccepted:
		return moment{Tone: "accent", What: "Accepted", Detail: held(s.Run.Amount)}
	case recall.StepReopened:
		return moment{Tone: "accent", What: fmt.Sprintf("Retried by hand, run %d", s.Run.Generation), Detail: held(s.Run.Amount)}
	case recall.StepHinted:
		return moment{What: "Hinted", Detail: hints(s.Hints)}
	case recall.StepClaimed:
		return moment{Tone: "busy", What: fmt.Sprintf("Attempt %d claimed", s.Attempt.Claim), Detail: "by worker " + t.worker(s.Attempt.Worker)}
	case recall.StepModel:
		return moment{What: "Model called", Detail: modelText(*s.Attempt)}
	case recall.StepPlanned:
		return moment{What: "Plan frozen", Detail: "what the records will be is fixed: from here on no model is asked again"}
	case recall.StepCommitted:
		return moment{Tone: "good", What: "Committed", Detail: t.recordsText()}
	case recall.StepAttempt:
		return t.ending(*s.Attempt)
	case recall.StepProjected:
		return moment{Tone: "good", What: "Projected", Detail: "the records can be found by meaning too: succeeded" + outcomeText(t.event.Outcome)}
	case recall.StepSettled:
		return moment{Tone: "good", What: "Settled", Detail: credits(s.Run.Settled) + " charged"}
	case recall.StepReleased:
		return moment{What: "Released", Detail: credits(s.Run.Released) + " given back"}
	}
	return moment{What: string(s.Kind)}
}

// ending tells how a claim ended that didn't bring success.
func (t *teller) ending(a recall.Attempt) moment {
	took := "after " + frame.Span(a.EndedAt.Sub(a.ClaimedAt))
	switch a.Ending {
	case "crashed":
		return moment{
			Tone: "bad", What: fmt.Sprintf("Attempt %d crashed", a.Claim),
			Detail: "worker " + t.worker(a.Worker) + " fell silent; its lease ran out and the event went on to the next worker " + took,
		}
	case "retry":
		return moment{
			Tone: "warn", What: fmt.Sprintf("Attempt %d failed for now", a.Claim),
			Detail: strings.Join([]string{classText(a.Class), took, "next try in " + frame.Span(a.Delay)}, " · "),
		}
	case "failed":
		return moment{Tone: "bad", What: fmt.Sprintf("Attempt %d failed", a.Claim), Detail: classText(a.Class) + " · " + took}
	case "given_back":
		return moment{What: fmt.Sprintf("Attempt %d given back", a.Claim), Detail: "by a worker that stopped, nothing spent · " + took}
	}
	return moment{What: fmt.Sprintf("Attempt %d: %s", a.Claim, a.Ending), Detail: took}
}

func classText(class task.Class) string {
	if class == "" {
		return "no reason given"
	}
	return strings.ReplaceAll(string(class), "_", " ") + " (" + string(task.CodeOf(class)) + ")"
}

// present tells what the event waits for now, false once it has ended. Times are those of a clock: what counts down would
// make every answer another one.
func (t *teller) present() (moment, bool) {
	l := t.life.Lease
	switch {
	case t.event.Status.Terminal():
		return moment{}, false
	case l != nil && l.Expired:
		return moment{At: t.life.Now, Tone: "warn", What: "Lease expired", Detail: "worker " + t.worker(l.Worker) +
			" has fallen silent; another one takes over", Coming: true}, true
	case l != nil:
		return moment{At: t.life.Now, Tone: "busy", What: "In work", Detail: "the lease holds until " + frame.Clock(l.Until) + " UTC", Coming: true}, true
	case !t.life.InTurn:
		return moment{At: t.life.Now, What: "Waits its turn", Detail: "an earlier write of the same scope comes first", Coming: true}, true
	case t.event.NextAttemptAt != nil:
		return moment{At: *t.event.NextAttemptAt, Tone: "warn", What: "Next attempt", Detail: "at " + frame.Clock(*t.event.NextAttemptAt) + " UTC", Coming: true}, true
	}
	return moment{At: t.life.Now, What: "Waits for a worker", Coming: true}, true
}

func held(amount int64) string {
	if amount == 0 {
		return "free of charge"
	}
	return credits(amount) + " held"
}

func credits(n int64) string {
	if n == 1 {
		return "1 credit"
	}
	return fmt.Sprintf("%d credits", n)
}

func hints(n int64) string {
	if n == 1 {
		return "a worker was told"
	}
	return fmt.Sprintf("workers were told %d times, the last time here", n)
}

func modelText(a recall.Attempt) string {
	text := fmt.Sprintf("%d calls", a.ProviderCalls)
	if a.ProviderCalls == 1 {
		text = "1 call"
	}
	if a.Model > 0 {
		text += " · " + frame.Span(a.Model)
	}
	if a.TokensIn+a.TokensOut > 0 {
		text += fmt.Sprintf(" · %d tokens in, %d out", a.TokensIn, a.TokensOut)
	}
	return text
}

func (t *teller) recordsText() string {
	if n := len(t.event.Results); n == 1 {
		return "1 record is canonical"
	} else if n > 1 {
		return fmt.Sprintf("%d records are canonical", n)
	}
	return "canonical: from here on it can only succeed"
}

func outcomeText(o task.Outcome) string {
	if o == "" {
		return ""
	}
	return ", " + strings.ToLower(strings.ReplaceAll(string(o), "_", " "))
}
