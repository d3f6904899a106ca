package now

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-memory/holdfast/internal/httpapi/console/frame"
	"github.com/holdfast-memory/holdfast/internal/operator"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

//go:embed pages/*.html
var pages embed.FS

const (
	// window is what the plots show.
	window = time.Hour
	// renewed is how often the page asks again, remembered how long what is read for everybody is good for.
	renewed    = 3 * time.Second
	remembered = 2 * time.Second
)

// Service reads how the whole service stands.
type Service interface {
	Standing(ctx context.Context) (operator.Standing, error)
	Work(ctx context.Context) (operator.Work, error)
	Minutes(ctx context.Context, window time.Duration) ([]operator.ProcessMinute, error)
	Standings(ctx context.Context, window time.Duration) ([]operator.ServiceMinute, error)
}

// Health judges the service.
type Health interface {
	Check(ctx context.Context) (recall.Verdict, error)
}

// ServicePage is Now for operators.
func ServicePage(service Service, health Health, providers Providers) (frame.Page, error) {
	if service == nil || health == nil || providers == nil {
		return frame.Page{}, errors.New("console: now: the service, its health and its providers are required")
	}
	templates, err := fs.Sub(pages, "pages")
	if err != nil {
		return frame.Page{}, err
	}
	p := &servicePage{service: service, health: health, providers: providers}
	return frame.Page{
		Name: "Now", Key: "n", Templates: templates, Routes: []frame.Route{
			{Method: http.MethodGet, Path: "/now", Handler: p.show},
			{Method: http.MethodGet, Path: "/providers", Handler: p.showProviders},
			{Method: http.MethodPost, Path: "/providers", Handler: p.pauseProvider},
			{Method: http.MethodPost, Path: "/providers/resume", Handler: p.resumeProvider},
		},
	}, nil
}

type servicePage struct {
	service   Service
	health    Health
	providers Providers

	mu   sync.Mutex
	last *service
	err  error
	at   time.Time
}

// service is what is shown.
type service struct {
	Verdict recall.Verdict
	operator.Standing
	Hour
	Processes []operator.ProcessMinute
	Pauses    []operator.Pause
}

func (p *servicePage) show(v *frame.Visit) (frame.Answer, error) {
	shown, err := p.read(v.Context())
	if err != nil {
		return frame.Answer{}, err
	}
	return frame.Answer{
		Title: "Now", Template: "service.html", Data: shown, Every: renewed, Said: saying(shown.Running, shown.Retrying, shown.Failed),
	}, nil
}

// read asks the database once for all who look at the same time.
func (p *servicePage) read(ctx context.Context) (*service, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.at.IsZero() && time.Since(p.at) < remembered {
		return p.last, p.err
	}
	shown := &service{}
	var standings []operator.ServiceMinute
	var minutes []operator.ProcessMinute
	verdict, err := p.health.Check(ctx)
	if err == nil {
		shown.Verdict = verdict
		shown.Standing, err = p.service.Standing(ctx)
	}
	if err == nil {
		standings, err = p.service.Standings(ctx, window)
	}
	if err == nil {
		minutes, err = p.service.Minutes(ctx, window)
	}
	var work operator.Work
	if err == nil {
		work, err = p.service.Work(ctx)
		shown.Pauses = work.Pauses
	}
	if ctx.Err() != nil { // one who has gone is no news for the others
		return nil, err
	}
	if err == nil {
		shown.Hour = hourOf(time.Now(), minutes, standings)
		shown.Processes = latest(minutes)
	}
	p.last, p.err, p.at = shown, err, time.Now()
	return shown, err
}

// maxProcesses bounds the list of processes.
const maxProcesses = 100

// latest are the newest rows of each process.
func latest(minutes []operator.ProcessMinute) []operator.ProcessMinute {
	var rows []operator.ProcessMinute
	seen := map[string]bool{}
	for _, m := range minutes { // the newest come first
		if !seen[m.Process] && len(rows) < maxProcesses {
			seen[m.Process] = true
			rows = append(rows, m)
		}
	}
	return rows
}
