package now

import (
	"context"
	"strings"
	"time"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/frame"
	"github.com/holdfast-memory/holdfast/internal/operator"
)

// Providers lets providers of models be left alone by hand. Fault INVALID_REQUEST for a name or a reason that is none.
type Providers interface {
	PauseProvider(ctx context.Context, provider, reason string) error
	ResumeProvider(ctx context.Context, provider string) error
}

// providers is the page of those that are left alone.
type providers struct {
	Pauses []operator.Pause
	Done   string
	// Provider and Reason are what a refused form had, Problem what is wrong with it.
	Provider, Reason, Problem string
}

func (p *servicePage) showProviders(v *frame.Visit) (frame.Answer, error) {
	return p.answerProviders(v, providers{Done: providerText(v.Query("done"))})
}

func (p *servicePage) answerProviders(v *frame.Visit, shown providers) (frame.Answer, error) {
	work, err := p.service.Work(v.Context())
	shown.Pauses = work.Pauses
	return frame.Answer{Title: "Providers", Template: "providers.html", Data: shown}, err
}

func (p *servicePage) pauseProvider(v *frame.Visit) (frame.Answer, error) {
	form := v.Request.PostForm
	name, reason := strings.TrimSpace(form.Get("provider")), strings.TrimSpace(form.Get("reason"))
	err := p.providers.PauseProvider(v.Context(), name, reason)
	if fault.Is(err, fault.InvalidRequest) {
		told := httpapi.Refusal(v.Context(), err)
		answer, err := p.answerProviders(v, providers{Provider: name, Reason: reason, Problem: frame.Told(told)})
		answer.Status = httpapi.StatusOf(told.Code)
		return answer, err
	}
	return p.changed("paused", err)
}

// resumeProvider lets go on what the list has, and nothing else that a form may say.
func (p *servicePage) resumeProvider(v *frame.Visit) (frame.Answer, error) {
	name := v.Request.PostForm.Get("provider")
	work, err := p.service.Work(v.Context())
	if err != nil {
		return frame.Answer{}, err
	}
	for _, pause := range work.Pauses {
		if pause.Provider == name && pause.StoppedAt != nil {
			return p.changed("resumed", p.providers.ResumeProvider(v.Context(), name))
		}
	}
	return frame.Answer{To: providersPath + "?done=resumed"}, nil // it goes on already, as when the form is sent twice
}

// changed leads back to the list, and has Now read what is the case from then on.
func (p *servicePage) changed(done string, err error) (frame.Answer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = time.Time{}
	return frame.Answer{To: providersPath + "?done=" + done}, err
}

const providersPath = frame.Root + "/providers"

func providerText(done string) string {
	switch done {
	case "paused":
		return "The workers leave the provider alone from now on, until it is resumed here."
	case "resumed":
		return "The provider may be used again. What waits comes back little by little."
	}
	return ""
}
