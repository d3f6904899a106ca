package settings

import (
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/frame"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/operator"
)

// lines undoes how forms write the end of a line.
func lines(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// changePolicy replaces the policy with the form. Rows without a word are none.
func (s section) changePolicy(v *frame.Visit) (frame.Answer, error) {
	form := v.Request.PostForm
	instructions, categories := lines(form.Get("instructions")), []memory.Category{}
	names, abouts := form["name"], form["description"]
	if len(names) != len(abouts) {
		return frame.Answer{}, fault.At(fault.InvalidRequest, "/categories", "a name and a description each")
	}
	for i := range names {
		c := memory.Category{Name: names[i], Description: lines(abouts[i])}
		if strings.TrimSpace(c.Name+c.Description) != "" {
			categories = append(categories, c)
		}
	}
	change, err := command.NewPolicyChange(command.PolicyChange{Instructions: &instructions, Categories: &categories})
	if err == nil {
		_, err = s.deps.Policies.Change(v.Context(), v.Caller, change)
	}
	if err != nil {
		return refused(v, err, func(problem string) (shown, error) {
			p, err := s.page(v)
			p.Instructions, p.Categories, p.PolicyProblem = instructions, categories, problem
			p.makeRoom()
			return p, err
		})
	}
	return frame.Answer{To: v.Link("/settings?done=policy")}, nil
}

// limit sets the limits that the form has. An empty one becomes the service's.
func (s section) limit(v *frame.Visit) (frame.Answer, error) {
	var limits operator.Limits
	var err error
	for _, field := range []struct {
		name string
		to   **int
	}{{"max_pending", &limits.MaxPending}, {"rate_limit", &limits.RateLimit}, {"lease_cap", &limits.LeaseCap}} {
		text := strings.TrimSpace(v.Request.PostForm.Get(field.name))
		if text == "" {
			text = "0"
		}
		n, bad := strconv.Atoi(text)
		if bad != nil && err == nil {
			err = fault.At(fault.InvalidRequest, "/"+field.name, "0 to 2147483647")
		}
		*field.to = &n
	}
	if err == nil {
		_, err = s.deps.Workspaces.LimitWorkspace(v.Context(), v.Workspace().String(), limits)
	}
	if err != nil {
		return refused(v, err, func(problem string) (shown, error) {
			p, err := s.page(v)
			p.LimitProblem = problem
			for i := range p.Limits {
				p.Limits[i].Typed = v.Request.PostForm.Get(p.Limits[i].Name)
			}
			return p, err
		})
	}
	return frame.Answer{To: v.Link("/settings?done=limits")}, nil
}

// state is a change of state with what it means.
type state struct {
	Name, Title, Meaning, Button string
	Here                         string
	Danger                       bool
}

func states() []state {
	return []state{
		{
			Name: "suspend", Title: "Suspend this workspace?", Button: "Suspend", Danger: true,
			Meaning: "Its writes are refused and nothing of it is claimed. Its keys can still read.",
		},
		{Name: "resume", Title: "Resume this workspace?", Button: "Resume", Meaning: "Its writes are accepted again, and what waits is claimed."},
		{
			Name: "pause", Title: "Pause this workspace?", Button: "Pause", Danger: true,
			Meaning: "Its writes are accepted as ever and wait, up to its limit. What runs goes on to its end.",
		},
		{Name: "unpause", Title: "Let this workspace go on?", Button: "Go on", Meaning: "What has waited is claimed."},
	}
}

func stateOf(v *frame.Visit) (state, error) {
	all := states()
	i := slices.IndexFunc(all, func(s state) bool { return s.Name == v.Request.PathValue("state") })
	if i < 0 {
		return state{}, fault.New(fault.RouteNotFound)
	}
	all[i].Here = v.Link("/settings")
	return all[i], nil
}

func (s section) askState(v *frame.Visit) (frame.Answer, error) {
	asked, err := stateOf(v)
	return frame.Answer{Title: asked.Title, Template: "settings-state.html", Data: asked}, err
}

func (s section) changeState(v *frame.Visit) (frame.Answer, error) {
	asked, err := stateOf(v)
	if err != nil {
		return frame.Answer{}, err
	}
	id := v.Workspace().String()
	switch asked.Name {
	case "suspend", "resume":
		_, err = s.deps.Workspaces.SuspendWorkspace(v.Context(), id, asked.Name == "suspend")
	default:
		_, err = s.deps.Workspaces.PauseWorkspace(v.Context(), id, asked.Name == "pause")
	}
	return frame.Answer{To: v.Link("/settings?done=state")}, err
}
