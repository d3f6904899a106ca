package settings

import (
	"time"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/frame"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/operator"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// spareRows is how many more categories a form has room for: more come with each save.
const spareRows = 3

// limit is one of the workspace's.
type limit struct {
	Name, Label, Unit string
	// Own is its own limit, 0 for the service's, which is Standard, 0 for none.
	Own, Standard int
	// Typed is what a refused form had, empty for Own.
	Typed string
}

// shown is the page.
type shown struct {
	operator.Workspace
	Here  string
	State string
	Tone  string

	Instructions string
	Categories   []memory.Category
	// Rows are the categories with room for more.
	Rows                               []memory.Category
	MaxInstructions, MaxName, MaxAbout int

	Limits             []limit
	InferCost, AddCost credit.Amount

	FailedInput, Keys, Acts string
	// Edits tells that the visitor may change the policy, Operates that state and limits too.
	Edits, Operates bool
	Done            string
	// PolicyProblem and LimitProblem say what is wrong with what was sent.
	PolicyProblem, LimitProblem string
}

func (s section) page(v *frame.Visit) (shown, error) {
	w, err := s.deps.Workspaces.Workspace(v.Context(), v.Workspace().String())
	if err != nil {
		return shown{}, err
	}
	service, policy := s.deps.Service, command.ReadExtractionPolicy(v.Caller.Workspace.Extraction)
	p := shown{
		Workspace: w, Here: v.Link("/settings"), State: w.Status(), Tone: "warn",
		Instructions: policy.Instructions, Categories: policy.Categories,
		MaxInstructions: command.MaxInstructions, MaxName: memory.MaxCategoryName, MaxAbout: memory.MaxCategoryText,
		InferCost: service.Prices.Of(task.Infer, w.Metered), AddCost: service.Prices.Of(task.Add, w.Metered),
		FailedInput: days(service.FailedInput), Keys: days(service.Keys), Acts: days(service.Acts),
		Edits: v.May(access.Admin), Operates: v.Operator(), Done: doneText(v.Query("done")),
		Limits: []limit{
			{Name: "max_pending", Label: "Writes that wait at most", Own: w.MaxPending, Standard: service.MaxPending},
			{Name: "rate_limit", Label: "Requests", Unit: "a minute", Own: w.RateLimit, Standard: service.RateLimit},
			{Name: "lease_cap", Label: "Tasks under way", Own: w.LeaseCap, Standard: service.LeaseCap},
		},
	}
	if p.State == "active" {
		p.Tone = "good"
	}
	p.makeRoom()
	return p, nil
}

func (p *shown) makeRoom() {
	p.Rows = append([]memory.Category{}, p.Categories...)
	for range min(spareRows, memory.MaxCategories-len(p.Categories)) {
		p.Rows = append(p.Rows, memory.Category{})
	}
}

// days says a long time in days where it is a whole number of them.
func days(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= 2*day && d%day == 0 {
		return frame.Number(int(d/day)) + " days"
	}
	return frame.Span(d)
}

func (s section) show(v *frame.Visit) (frame.Answer, error) {
	p, err := s.page(v)
	return answerOf(p), err
}

func answerOf(p shown) frame.Answer {
	return frame.Answer{Title: "Settings", Template: "settings.html", Data: p}
}

// refused answers the page with what is wrong, for what a person can put right in the form.
func refused(v *frame.Visit, err error, page func(problem string) (shown, error)) (frame.Answer, error) {
	if !fault.Is(err, fault.InvalidRequest) {
		return frame.Answer{}, err
	}
	told := httpapi.Refusal(v.Context(), err)
	p, err := page(frame.Told(told))
	answer := answerOf(p)
	answer.Status = httpapi.StatusOf(told.Code)
	return answer, err
}

func doneText(done string) string {
	switch done {
	case "policy":
		return "The policy is saved. It is for what is accepted from now on."
	case "limits":
		return "The limits are saved."
	case "state":
		return "The state is changed."
	}
	return ""
}
