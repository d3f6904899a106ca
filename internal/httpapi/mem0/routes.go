package mem0

import (
	"context"
	"net/http"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
)

const (
	get    = http.MethodGet
	post   = http.MethodPost
	put    = http.MethodPut
	patch  = http.MethodPatch
	remove = http.MethodDelete

	orgsPath     = "/api/v1/orgs/organizations"
	projectsPath = orgsPath + "/{org}/projects"
	projectPath  = projectsPath + "/{project}"
	membersPath  = projectPath + "/members"
	webhooksPath = "/api/v1/webhooks/projects/{project}"
	webhookPath  = "/api/v1/webhooks/{id}"
)

// routes is every route of the dialect, one a line. Slashes at the end of a path are gone when it is held against them.
func (h handlers) routes() []httpapi.GuestRoute {
	return []httpapi.GuestRoute{
		{Method: get, Path: "/v1/ping", Handler: h.ping},

		{Method: post, Path: "/v3/memories/add", Permission: access.MemoryWrite, Body: true, Waits: true, Handler: h.addV3},
		{Method: post, Path: "/v1/memories", Permission: access.MemoryWrite, Body: true, Waits: true, Handler: h.addV1},
		{Method: post, Path: "/v3/memories/search", Permission: access.MemoryRead, Body: true, Handler: h.searchV3},
		{Method: post, Path: "/v2/memories/search", Permission: access.MemoryRead, Body: true, Handler: h.searchV2},
		{Method: post, Path: "/v1/memories/search", Permission: access.MemoryRead, Body: true, Handler: h.searchV1},
		{Method: post, Path: "/v3/memories", Permission: access.MemoryRead, Body: true, Handler: h.listV3},
		{Method: post, Path: "/v2/memories", Permission: access.MemoryRead, Body: true, Handler: h.listV2},
		{Method: get, Path: "/v1/memories", Permission: access.MemoryRead, Handler: h.listV1},
		{Method: remove, Path: "/v1/memories", Permission: access.Admin, Handler: h.removeAll},

		{Method: get, Path: "/v1/memories/{id}", Permission: access.MemoryRead, Handler: h.get},
		{Method: put, Path: "/v1/memories/{id}", Permission: access.MemoryWrite, Body: true, Handler: h.update},
		{Method: remove, Path: "/v1/memories/{id}", Permission: access.MemoryWrite, Handler: h.remove},
		{Method: get, Path: "/v1/memories/{id}/history", Permission: access.MemoryRead, Handler: h.history},
		{Method: put, Path: "/v1/batch", Permission: access.MemoryWrite, Body: true, Waits: true, Handler: h.batchUpdate},
		{Method: remove, Path: "/v1/batch", Permission: access.MemoryWrite, Body: true, Waits: true, Handler: h.batchDelete},

		{Method: get, Path: "/v1/entities", Permission: access.MemoryRead, Handler: h.entities},
		{Method: get, Path: "/v1/entities/filters", Permission: access.MemoryRead, Handler: h.entityFilters},
		{Method: get, Path: "/v1/entities/{type}/{id...}", Permission: access.MemoryRead, Handler: h.entity},
		{Method: get, Path: "/v2/entities/{type}/{id...}", Permission: access.MemoryRead, Handler: h.entity},
		{Method: remove, Path: "/v1/entities/{type}/{id...}", Permission: access.Admin, Handler: h.removeEntity},
		{Method: remove, Path: "/v2/entities/{type}/{id...}", Permission: access.Admin, Handler: h.removeEntity},

		{Method: get, Path: "/v1/event/{id}", Permission: access.OperationsRead, Handler: h.getEvent},
		{Method: get, Path: "/v1/events/{id}", Permission: access.OperationsRead, Handler: h.getEvent},
		{Method: get, Path: "/v1/events", Permission: access.OperationsRead, Handler: h.listEvents},

		{Method: get, Path: projectPath, Permission: access.MemoryRead, Handler: h.project},
		{Method: patch, Path: projectPath, Permission: access.Admin, Body: true, Handler: h.updateProject},
		{Method: post, Path: "/v1/feedback", Permission: access.MemoryWrite, Body: true, Handler: h.giveFeedback},
		{Method: post, Path: "/v1/exports", Permission: access.MemoryRead, Body: true, Handler: h.createExport},
		{Method: post, Path: "/v1/exports/get", Permission: access.MemoryRead, Body: true, Handler: h.readExport},

		{Method: get, Path: webhooksPath, Permission: access.Admin, Handler: h.webhooks},
		{Method: post, Path: webhooksPath, Permission: access.Admin, Body: true, Handler: h.createWebhook},
		{Method: put, Path: webhookPath, Permission: access.Admin, Body: true, Handler: h.updateWebhook},
		{Method: remove, Path: webhookPath, Permission: access.Admin, Handler: h.deleteWebhook},

		{Method: get, Path: "/v1/memories/events", Handler: refused},
		{Method: post, Path: "/v1/summary", Handler: refused},
		{Method: get, Path: "/v2/entities/{type}/{id}/profile", Handler: refused},
		{Method: post, Path: "/v2/profiles/jobs", Handler: refused},
		{Method: get, Path: "/v2/profiles/jobs/{id}", Handler: refused},
		{Method: get, Path: "/v2/profiles/settings", Handler: refused},
		{Method: post, Path: "/v2/profiles/settings", Handler: refused},
		{Method: get, Path: orgsPath, Handler: refused},
		{Method: post, Path: orgsPath, Handler: refused},
		{Method: get, Path: projectsPath, Handler: refused},
		{Method: post, Path: projectsPath, Handler: refused},
		{Method: remove, Path: projectPath, Handler: refused},
		{Method: get, Path: membersPath, Handler: refused},
		{Method: post, Path: membersPath, Handler: refused},
		{Method: put, Path: membersPath, Handler: refused},
		{Method: remove, Path: membersPath, Handler: refused},
	}
}

// refused answers what has no meaning here.
func refused(context.Context, httpapi.GuestCall) (httpapi.GuestAnswer, error) {
	return httpapi.GuestAnswer{}, fault.New(fault.NotImplemented)
}
