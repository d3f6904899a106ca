package endtoend

// mem0Errands are those of the mem0 dialect.
func mem0Errands() []errand {
	const project = "/api/v1/orgs/organizations/<org>/projects/<project>"
	const pattern = "/api/v1/orgs/organizations/{org}/projects/{project}"
	var errands []errand
	for _, version := range []string{"v1", "v2", "v3"} {
		errands = append(errands, errand{
			place: "mem0 POST /" + version + "/memories/search", status: 200, body: `{"query":"<text> tea","filters":{"user_id":"<user>"}}`,
		})
	}
	errands = append(errands,
		errand{place: "mem0 GET /v1/ping", status: 200},
		errand{place: "mem0 POST /v3/memories", status: 200, body: `{"filters":{"user_id":"<user>"}}`},
		errand{place: "mem0 POST /v2/memories", status: 200, body: `{"filters":{"OR":[{"user_id":"<user>"},{"agent_id":"<agent>"}]}}`},
		errand{place: "mem0 GET /v1/memories", status: 200, path: "/v1/memories?user_id=<user>"},
		errand{place: "mem0 GET /v1/entities", status: 200},
		errand{place: "mem0 GET /v1/entities/filters", status: 200},
		errand{place: "mem0 GET /v1/entities/{type}/{id...}", status: 404, path: "/v1/entities/user/<user>"},
		errand{place: "mem0 GET /v2/entities/{type}/{id...}", status: 404, path: "/v2/entities/agent/<agent>"},
		errand{place: "mem0 GET /v1/events", status: 200},
		errand{place: "mem0 GET /v1/event/{id}", status: 404, path: "/v1/event/<event>"},
		errand{place: "mem0 GET /v1/event/{id}", status: 404, path: "/v1/event/<pending>"},
		errand{place: "mem0 GET /v1/events/{id}", status: 404, path: "/v1/events/<failed>"},
		errand{place: "mem0 GET " + pattern, status: 404, path: project},
		errand{place: "mem0 PATCH " + pattern, status: 404, path: project, body: `{"custom_instructions":"stolen"}`},
		errand{place: "mem0 GET /api/v1/webhooks/projects/{project}", status: 404, path: "/api/v1/webhooks/projects/<project>"},
		errand{place: "mem0 POST /api/v1/webhooks/projects/{project}", status: 404, path: "/api/v1/webhooks/projects/<project>", body: `{"name":"x","url":"http://<address>/in","event_types":["memory_add"]}`},
		errand{place: "mem0 PUT /api/v1/webhooks/{id}", status: 404, path: "/api/v1/webhooks/<webhook>", body: `{"name":"stolen"}`},
		errand{place: "mem0 DELETE /api/v1/webhooks/{id}", status: 404, path: "/api/v1/webhooks/<webhook>"},
		errand{place: "mem0 POST /v1/exports/get", status: 404, body: `{"memory_export_id":"<question>"}`},
		errand{place: "mem0 POST /v1/exports/get", status: 404, body: `{"filters":{"user_id":"<user>"}}`},
		errand{place: "mem0 POST /v1/feedback", status: 404, body: `{"memory_id":"<memory>","feedback":"POSITIVE"}`},
	)
	for _, name := range []string{"memory", "verbatim", "deleted", "record"} {
		path := "/v1/memories/<" + name + ">"
		errands = append(errands,
			errand{place: "mem0 GET /v1/memories/{id}", status: 404, path: path},
			errand{place: "mem0 GET /v1/memories/{id}/history", status: 404, path: path + "/history"},
			errand{place: "mem0 PUT /v1/memories/{id}", status: 404, path: path, body: `{"text":"stolen"}`},
			errand{place: "mem0 PUT /v1/memories/{id}", status: 404, path: path, body: `{"text":"stolen"}`, header: "Idempotency-Key: <idem>"},
			errand{place: "mem0 DELETE /v1/memories/{id}", status: 404, path: path},
		)
	}
	for _, refused := range []string{
		"GET /v1/memories/events", "POST /v1/summary", "GET /v2/entities/{type}/{id}/profile", "POST /v2/profiles/jobs", "GET /v2/profiles/jobs/{id}",
		"GET /v2/profiles/settings", "POST /v2/profiles/settings", "GET /api/v1/orgs/organizations", "POST /api/v1/orgs/organizations",
		"GET /api/v1/orgs/organizations/{org}/projects", "POST /api/v1/orgs/organizations/{org}/projects", "DELETE " + pattern,
		"GET " + pattern + "/members", "POST " + pattern + "/members", "PUT " + pattern + "/members", "DELETE " + pattern + "/members",
	} {
		errands = append(errands, errand{place: "mem0 " + refused, status: 501})
	}
	return append(errands, making(
		errand{place: "mem0 PUT /v1/batch", status: 200, body: `{"memories":[{"memory_id":"<memory>","text":"stolen"}]}`, header: "Idempotency-Key: <idem>-mem0"},
		errand{place: "mem0 DELETE /v1/batch", status: 200, body: `{"memories":[{"memory_id":"<memory>"}]}`},
		errand{place: "mem0 POST /v3/memories/add", status: 202, ends: true, body: `{"messages":[{"role":"user","content":"FACT: mine"}],"user_id":"<user>","idempotency_key":"<idem>-v3"}`},
		errand{place: "mem0 POST /v1/memories", status: 202, body: `{"messages":[{"role":"user","content":"FACT: mine too"}],"user_id":"<user>"}`, header: "Idempotency-Key: <idem>-v1"},
		errand{place: "mem0 POST /v1/exports", status: 201, body: `{"filters":{"user_id":"<user>"}}`},
		errand{place: "mem0 DELETE /v1/memories", status: 200, path: "/v1/memories?user_id=<user>"},
		errand{place: "mem0 DELETE /v1/entities/{type}/{id...}", status: 200, path: "/v1/entities/agent/<agent>"},
		errand{place: "mem0 DELETE /v2/entities/{type}/{id...}", status: 200, path: "/v2/entities/app/<app>"},
	)...)
}
