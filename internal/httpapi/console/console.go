// Package console is the console: pages in which a person sees what happened to a write, and does something about it,
// without reading logs. It is served at /console by the API itself.
//
// It only puts the sections together; each is a package below, and what they stand in is the package frame. A new section
// is a package with a function that returns a frame.Page: its name and key in the navigation, its routes with the
// permission that each needs, and its templates, of which each defines "main", and "live" for the part that is asked for
// again. Its dependencies are small interfaces of its own, which app fills with the use cases of the API. It gets a line
// in New, and its pages a place in the tests here and in the journey of internal/endtoend.
//
// It belongs to the httpapi family.
package console

import (
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/credits"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/events"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/frame"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/keys"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/memories"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/now"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/playground"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/recovery"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/settings"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/webhooks"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/workspaces"
)

// Deps are what the sections need, all of it.
type Deps struct {
	Store      frame.Store
	Service    now.Service
	Health     now.Health
	Providers  now.Providers
	Workspaces workspaces.Lister
	Pulses     now.Pulses
	Credits    now.Credits
	Events     events.Deps
	Memories   memories.Deps
	Account    credits.Deps
	Keys       keys.Keys
	Playground playground.Deps
	Webhooks   webhooks.Deps
	Settings   settings.Deps
	Recovery   recovery.Deps
}

// New returns the console, to be mounted into an httpapi.Server. The navigation has the sections in this order.
func New(deps Deps) (httpapi.Mount, error) {
	var pages []frame.Page
	for _, build := range []func() (frame.Page, error){
		func() (frame.Page, error) { return now.ServicePage(deps.Service, deps.Health, deps.Providers) },
		func() (frame.Page, error) { return workspaces.Page(deps.Workspaces) },
		func() (frame.Page, error) { return now.WorkspacePage(deps.Pulses, deps.Credits) },
		func() (frame.Page, error) { return events.Page(deps.Events) },
		func() (frame.Page, error) { return memories.Page(deps.Memories) },
		func() (frame.Page, error) { return playground.Page(deps.Playground) },
		func() (frame.Page, error) { return credits.Page(deps.Account) },
		func() (frame.Page, error) { return keys.Page(deps.Keys) },
		func() (frame.Page, error) { return webhooks.Page(deps.Webhooks) },
		func() (frame.Page, error) { return recovery.Page(deps.Recovery) },
		func() (frame.Page, error) { return settings.Page(deps.Settings) },
	} {
		page, err := build()
		if err != nil {
			return httpapi.Mount{}, err
		}
		pages = append(pages, page)
	}
	return frame.New(deps.Store, pages)
}
