package endtoend

import "slices"

// errands are all errands in the order in which they run: what makes something of the caller's own comes last, so that it
// is in no answer before.
func errands() []errand {
	var first, last []errand
	for _, e := range slices.Concat(nativeErrands(), itemErrands(), mem0Errands(), toolErrands()) {
		if e.makes {
			last = append(last, e)
		} else {
			first = append(first, e)
		}
	}
	return append(first, last...)
}

// making marks errands that make something of the caller's own.
func making(errands ...errand) []errand {
	for i := range errands {
		errands[i].makes = true
	}
	return errands
}

func nativeErrands() []errand {
	const scoped = `{"user_id":"<user>","agent_id":"<agent>","run_id":"<run>","app_id":"<app>",`
	errands := []errand{
		{place: "GET /v1/health", status: 200},
		{place: "GET /v1/openapi.json", status: 200},
		{place: "GET /v1/credits", status: 200},
		{place: "GET /v1/credits/entries", status: 200},
		{place: "GET /v1/credits/entries", status: 400, path: "/v1/credits/entries?limit=1&cursor=<to_entries>"},
		{place: "GET /v1/memories", status: 200, path: "/v1/memories?user_id=<user>"},
		{place: "GET /v1/memories", status: 200, path: "/v1/memories?agent_id=<agent>&run_id=<run>&app_id=<app>"},
		{place: "GET /v1/memories", status: 400, path: "/v1/memories?user_id=<user>&limit=1&cursor=<to_memories>"},
		{place: "GET /v1/memories", status: 400, path: "/v1/memories?user_id=$user$&limit=1&cursor=<to_memories>"},
		{place: "POST /v1/memories/search", status: 200, body: scoped + `"query":"<text> tea"}`},
		{place: "POST /v1/memories/search", status: 200, body: `{"user_id":"$user$","query":"<text> tea","mode":"lexical","explain":true}`},
		{place: "POST /v1/memories/search", status: 200, body: `{"user_id":"$user$","query":"tea","filters":{"OR":[{"user_id":"<user>"},{"metadata.v":"<value>"},{"item_id":"<item>"}]}}`},
		{place: "GET /v1/extraction-policy", status: 200},
		{place: "GET /v1/entities", status: 200},
		{place: "GET /v1/entities", status: 400, path: "/v1/entities?limit=1&cursor=<to_entities>"},
		{place: "GET /v1/entities/{type}/{id}", status: 404, path: "/v1/entities/user/<user>"},
		{place: "GET /v1/entities/{type}/{id}", status: 404, path: "/v1/entities/run/<session>"},
		{place: "GET /v1/events", status: 200},
		{place: "GET /v1/events", status: 200, header: "Idempotency-Key: <idem>"},
		{place: "GET /v1/events", status: 200, header: "Idempotency-Key: <idem>-batch"},
		{place: "GET /v1/events", status: 400, path: "/v1/events?limit=1&cursor=<to_events>"},
		{place: "GET /v1/events/stream", status: 400, header: "Last-Event-ID: <place>"},
		{place: "GET /v1/events/stream", status: 400, path: "/v1/events/stream?after=<place>"},
		{place: "GET /v1/operations", status: 200},
		{place: "GET /v1/operations", status: 400, path: "/v1/operations?limit=1&cursor=<to_operations>"},
		{place: "GET /v1/webhooks", status: 200},
		{place: "GET /v1/exports/{id}", status: 404, path: "/v1/exports/<export>"},
		{place: "GET /v1/exports/{id}", status: 404, path: "/v1/exports/<event>"},
	}
	errands = append(errands, eventErrands()...)
	errands = append(errands, memoryErrands()...)
	errands = append(errands, webhookErrands()...)
	return append(errands, making(
		errand{place: "PUT /v1/extraction-policy", status: 200, body: `{"instructions":"mine","categories":[{"name":"work"}]}`},
		errand{place: "POST /v1/exports", status: 202, header: "Idempotency-Key: <idem>-export"},
		errand{place: "POST /v1/memories", status: 202, header: "Idempotency-Key: <idem>", ends: true, body: scoped + `"metadata":{"v":"<value>"},
			"messages":[{"role":"user","content":"FACT: <text> likes tea"},{"role":"user","content":"FACT: <text> likes cake"}]}`},
		errand{place: "POST /v1/memories", status: 202, header: "Idempotency-Key: <idem>-failed", ends: true, body: `{"user_id":"<user>","content":"FACT: another"}`},
		errand{place: "POST /v1/memories", status: 200, header: "Idempotency-Key: <idem>-pending", body: `{"user_id":"<user>","content":"hello","infer":false}`},
		errand{place: "PUT /v1/memories/batch", status: 202, header: "Idempotency-Key: <idem>-batch", ends: true, body: `{"memories":[{"id":"<memory>","content":"stolen"},{"id":"<deleted>","metadata":{}}]}`},
		errand{place: "DELETE /v1/memories/batch", status: 202, header: "Idempotency-Key: <idem>-queued", ends: true, body: `{"ids":["<memory>","<verbatim>"]}`},
		errand{place: "DELETE /v1/memories", status: 200, path: "/v1/memories?user_id=<text>-nobody"},
		errand{place: "DELETE /v1/memories", status: 200, path: "/v1/memories?agent_id=<agent>&user_id=<user>"},
		errand{place: "DELETE /v1/entities/{type}/{id}", status: 200, path: "/v1/entities/app/<app>"},
	)...)
}

// eventErrands ask for each kind of event in each way.
func eventErrands() []errand {
	var errands []errand
	for _, name := range []string{"event", "failed", "pending", "queued", "changed", "batch", "export", "erase", "delivery", "item_event"} {
		id := "<" + name + ">"
		errands = append(errands,
			errand{place: "GET /v1/events/{id}", status: 404, path: "/v1/events/" + id},
			errand{place: "GET /v1/operations/{id}", status: 404, path: "/v1/operations/" + id},
			errand{place: "POST /v1/events/{id}/retry", status: 404, path: "/v1/events/" + id + "/retry", body: `{"generation":1}`},
			errand{place: "POST /v1/events/{id}/retry", status: 404, path: "/v1/events/" + id + "/retry", header: "Idempotency-Key: <idem>"},
			errand{place: "POST /v1/operations/{id}/retry", status: 404, path: "/v1/operations/" + id + "/retry", body: `{"generation":1}`},
			errand{place: "POST /v1/events/{id}/cancel", status: 404, path: "/v1/events/" + id + "/cancel"},
		)
	}
	return append(errands,
		errand{place: "GET /v1/events/{id}", status: 404, path: "/v1/events/<pending>?wait=1"},
		errand{place: "POST /v1/events/{id}/cancel", status: 404, path: "/v1/events/<queued>/cancel", body: "{}"},
		errand{place: "GET /v1/events/{id}", status: 404, path: "/v1/events/<pending>", header: "Prefer: wait=1\nIf-None-Match: *"},
	)
}

func memoryErrands() []errand {
	var errands []errand
	for _, name := range []string{"memory", "verbatim", "deleted", "record"} {
		path := "/v1/memories/<" + name + ">"
		errands = append(errands,
			errand{place: "GET /v1/memories/{id}", status: 404, path: path},
			errand{place: "GET /v1/memories/{id}/history", status: 404, path: path + "/history"},
			errand{place: "PUT /v1/memories/{id}", status: 404, path: path, body: `{"content":"stolen"}`},
			errand{place: "PUT /v1/memories/{id}", status: 404, path: path, body: `{"metadata":{},"version":1}`, header: "Idempotency-Key: <idem>"},
			errand{place: "DELETE /v1/memories/{id}", status: 404, path: path},
			errand{place: "DELETE /v1/memories/{id}", status: 404, path: path, header: "Idempotency-Key: <idem>"},
			errand{place: "PUT /v1/memories/{id}/feedback", status: 404, path: path + "/feedback", body: `{"feedback":"POSITIVE"}`},
			errand{place: "PUT /v1/memories/{id}/feedback", status: 404, path: path + "/feedback", body: `{"feedback":null}`},
		)
	}
	return append(errands, errand{
		place: "GET /v1/memories/{id}/history", status: 400, path: "/v1/memories/<verbatim>/history?limit=1&cursor=<to_history>",
	}, errand{
		place: "GET /v1/memories/{id}/history", status: 400, path: "/v1/memories/$verbatim$/history?limit=1&cursor=<to_history>",
	})
}

func webhookErrands() []errand {
	const hook = "/v1/webhooks/<webhook>"
	return []errand{
		{place: "GET /v1/webhooks/{id}", status: 404, path: hook},
		{place: "PUT /v1/webhooks/{id}", status: 404, path: hook, body: `{"active":true}`},
		{place: "DELETE /v1/webhooks/{id}", status: 404, path: hook},
		{place: "POST /v1/webhooks/{id}/rotate-secret", status: 404, path: hook + "/rotate-secret"},
		{place: "POST /v1/webhooks/{id}/test", status: 404, path: hook + "/test"},
		{place: "GET /v1/webhooks/{id}/deliveries", status: 404, path: hook + "/deliveries"},
		{place: "GET /v1/webhooks/{id}/deliveries", status: 400, path: "/v1/webhooks/$webhook$/deliveries?limit=1&cursor=<to_deliveries>"},
		{place: "POST /v1/webhooks/{id}/replay", status: 400, path: "/v1/webhooks/$webhook$/replay", body: `{"until":"2100-01-01T00:00:00Z","cursor":"<to_deliveries>"}`},
		{place: "POST /v1/webhooks/{id}/replay", status: 404, path: hook + "/replay", body: `{"until":"2100-01-01T00:00:00Z"}`},
		{place: "POST /v1/webhooks", status: 201, makes: true, body: `{"url":"http://<address>/in","event_types":["event.failed"]}`},
	}
}

// itemErrands name the other workspace's account.
func itemErrands() []errand {
	const account = "X-Twin-Account: <account>"
	return []errand{
		{place: "POST /v1/memory/search", status: 200, header: account, body: `{"query":"<text> has a cat","session":"<session>"}`},
		{place: "POST /v1/memory/grep", status: 200, header: account, body: `{"pattern":"<text>"}`},
		{place: "POST /v1/memory/grep", status: 200, header: "X-Twin-Account: $account$", body: `{"pattern":"<text>.*","regex":true}`},
		{place: "POST /v1/memory/read", status: 200, header: account, body: `{"ids":["<item>"]}`},
		{place: "POST /v1/memory/read", status: 200, header: account, body: `{"session":"<session>"}`},
		{place: "POST /v1/memory/read", status: 400, header: account, body: `{"session":"<session>","after":"<item>"}`},
		{place: "POST /v1/memory/correct", status: 404, header: account, body: `{"id":"<record>","text":"stolen"}`},
		{place: "POST /v1/memory/forget", status: 200, makes: true, header: account, body: `{"ids":["<item>"]}`},
		{place: "POST /v1/memory/forget", status: 200, makes: true, header: account, body: `{"session":"<session>"}`},
		{place: "POST /v1/memory/forget", status: 200, makes: true, header: account, body: `{"all":true}`},
		{place: "POST /v1/memory/add", status: 200, makes: true, header: account, body: `{"items":[{"id":"<item>","text":"FACT: mine","session":"<session>"}]}`},
	}
}

// toolErrands are calls with the scope of the other workspace's user.
func toolErrands() []errand {
	return []errand{
		{place: "tool search_memory", status: 200, body: `{"query":"<text> tea"}`},
		{place: "tool list_memories", status: 200, body: `{}`},
		{place: "tool list_memories", status: 200, body: `{"limit":1,"cursor":"<to_more>"}`},
		{place: "tool get_event", status: 200, body: `{"event_id":"<event>"}`},
		{place: "tool get_event", status: 200, body: `{"event_id":"<pending>","wait":1}`},
		{place: "tool delete_memory", status: 200, body: `{"id":"<memory>"}`},
		{place: "tool add_memory", status: 200, makes: true, body: `{"text":"FACT: mine","idempotency_key":"<idem>-tool","wait":25}`},
		{place: "tool add_memory", status: 200, makes: true, body: `{"messages":[{"role":"user","content":"FACT: mine"}],"idempotency_key":"<idem>"}`},
	}
}
