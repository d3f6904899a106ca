package endtoend

import "strings"

// refusal is a request that must be refused, with words in what is wrong with it.
type refusal struct {
	authorization, method, path, body string
	header                            []string
}

// isRefused sends words in requests that are refused for every reason there is.
func (y *spy) isRefused() {
	y.s.t.Helper()
	long := strings.Repeat("x", 300_000)
	for _, r := range append(y.refusals(), y.foreignRefusals()...) {
		r.body = strings.ReplaceAll(r.body, "LONG", long)
		a := y.asks(r.authorization, r.method, r.path, r.body, r.header...)
		if !refused(r.path, a) {
			y.s.t.Errorf("%s %s %.200s: %d %s", r.method, r.path, r.body, a.status, a.body)
		}
	}
}

// refusals are those of the native dialect and of operators.
func (y *spy) refusals() []refusal {
	var all []refusal
	key := y.native()
	for _, body := range []string{
		`{"user_id":"u","content":"<bad json>"`, `{"user_id":"u","content":"<bad duplicate>","content":"<bad duplicate>"}`, `{"user_id":"u","<bad member>":"<bad value>"}`,
		"{\"user_id\":\"u\",\"content\":\"<bad utf eight>\xff\"}", `{"user_id":"u","content":"<bad surrogate>\ud800"}`, `{"user_id":"u\u0000","content":"<bad nul>"}`,
		`{"user_id":"u","content":"x","metadata":{"<bad number>":123456789012345678901}}`, `{"user_id":"u","content":"x","metadata":` + strings.Repeat(`{"<bad depth>":`, 40) + `1` + strings.Repeat("}", 40) + `}`,
		`{"user_id":"u","content":"<bad length>LONG"}`, `{"user_id":["<bad type>"],"content":"x"}`, `{"content":"<bad scope>"}`, `{"user_id":"u","messages":[{"role":"<bad role> ","content":"x"}]}`,
		`{"user_id":"u","messages":[{"role":"user","content":"x","<bad message>":1}]}`, `{"user_id":"u","content":"x","event_date":"<bad date>"}`, `{"user_id":"u","content":"x","categories":[{"name":"<bad category>"},{"name":"<bad category>"}]}`,
		`{"user_id":"u","content":"x"} <bad trail>`, `["<bad list>"]`, `"<bad string>"`, `<bad bytes>`,
	} {
		all = append(all, refusal{key, "POST", "/v1/memories", body, []string{"Idempotency-Key", "<key of a refusal>"}})
	}
	for _, path := range []string{
		"/<bad route>", "/v1/<bad route>", "/v1/memories?user_id=u&<bad parameter>=1", "/v1/memories?user_id=u&limit=<bad limit>", "/v1/memories?user_id=u&cursor=<bad cursor>",
		"/v1/memories?agent=<bad agent>", "/v1/memories/<bad id>", "/v1/memories/mem_<bad id>/history", "/v1/events/<bad event>", "/v1/events/ev_<bad event>", "/v1/events?status=<bad status>",
		"/v1/events?type=<bad type of event>", "/v1/events/<bad event>?wait=<bad wait>", "/v1/events/stream?after=<bad place>", "/v1/entities/<bad entity type>/x", "/v1/entities/user/<bad entity>",
		"/v1/exports/<bad export>", "/v1/webhooks/<bad webhook>", "/v1/operations/<bad event>", "/v1/memories?user_id=%zz<bad escape>",
	} {
		all = append(all, refusal{key, "GET", path, "", []string{"X-Twin-Account", "u"}})
	}
	const add = `{"user_id":"u","content":"<text of a refusal>"}`
	all = append(all,
		refusal{"<bad scheme> x", "GET", "/v1/credits", "", nil},
		refusal{"Bearer <bad key>", "GET", "/v1/credits", "", nil},
		refusal{"Bearer " + y.s.key[:len(y.s.key)-1] + "~", "GET", "/v1/credits", "", nil},
		refusal{"", "GET", "/v1/credits", "", []string{"X-Api-Key", "<bad key>"}},
		refusal{key, "<bad method>", "/v1/memories", "", nil},
		refusal{key, "POST", "/v1/memories", add, nil},
		refusal{key, "POST", "/v1/memories", add, []string{"Idempotency-Key", "<bad idempotency key>\xe9"}},
		refusal{key, "POST", "/v1/memories", add, []string{"Idempotency-Key", `"<bad idempotency key>`}},
		refusal{key, "POST", "/v1/memories", add, []string{"Idempotency-Key", strings.Repeat("<bad idempotency key>", 20)}},
		refusal{key, "POST", "/v1/memories", add, []string{"Idempotency-Key", "<idempotency key>"}},
		refusal{key, "POST", "/v1/memories", add, []string{"Idempotency-Key", "k", "Content-Type", "text/<bad media>"}},
		refusal{key, "POST", "/v1/memories", add, []string{"Idempotency-Key", "k", "Content-Encoding", "<bad encoding>"}},
		refusal{key, "GET", "/v1/events/stream", "", []string{"Last-Event-ID", "<bad place>"}},
		refusal{key, "GET", "/v1/events/<bad event>", "", []string{"Prefer", "wait=<bad wait>", "If-None-Match", "<bad tag>"}},
		refusal{key, "POST", "/v1/memories/search", `{"user_id":"u","query":"x","filters":{"<bad field>":"<bad filter value>"}}`, nil},
		refusal{key, "POST", "/v1/memories/search", `{"user_id":"u","query":"x","filters":{"version":{"<bad operator>":1}}}`, nil},
		refusal{key, "POST", "/v1/memories/search", `{"user_id":"u","query":"x","mode":"<bad mode>"}`, nil},
		refusal{key, "PUT", "/v1/memories/batch", `{"memories":[{"id":"<bad id>","content":"x"},{"id":"<bad id>","content":"x"}]}`, []string{"Idempotency-Key", "k"}},
		refusal{key, "PUT", "/v1/memories/01920000-0000-7000-8000-000000000000", `{"content":"<text for nobody>"}`, nil},
		refusal{key, "PUT", "/v1/memories/01920000-0000-7000-8000-000000000000/feedback", `{"feedback":"<bad verdict>","reason":"<bad reason>"}`, nil},
		refusal{key, "PUT", "/v1/extraction-policy", `{"instructions":"<bad policy>","categories":[{"name":""}]}`, nil},
		refusal{key, "POST", "/v1/webhooks", `{"url":"http://user:<bad webhook>@127.0.0.1/","event_types":["event.failed"]}`, nil},
		refusal{key, "POST", "/v1/webhooks", `{"url":"ftp://<bad webhook>.example.com/<bad webhook>","event_types":["event.failed"]}`, nil},
		refusal{key, "POST", "/v1/webhooks", `{"url":"https://169.254.169.254/<bad webhook>","event_types":["event.failed"]}`, nil},
		refusal{key, "POST", "/v1/webhooks", `{"url":"https://hooks.example.com/","event_types":["<bad type of a webhook>"]}`, nil},
		refusal{key, "POST", "/v1/imports", `{"<bad import>":1}`, []string{"Idempotency-Key", "k"}},
		refusal{key, "DELETE", "/v1/memories?user=<bad erase>", "", nil},
		refusal{"Bearer " + y.s.purse(0).key, "POST", "/v1/memories", `{"user_id":"<poor user>","content":"<text of the poor>"}`, []string{"Idempotency-Key", "<key of the poor>"}},
		refusal{"Bearer " + y.s.keyWith("memory:read"), "POST", "/v1/memories", `{"user_id":"<user of a reader>","content":"<text of a reader>"}`, []string{"Idempotency-Key", "<key of a reader>"}},
		refusal{"Bearer <bad token>", "GET", "/admin/v1/acts", "", nil},
		refusal{"Bearer " + y.token, "GET", "/admin/v1/workspaces/<bad workspace>", "", nil},
		refusal{"Bearer " + y.token, "GET", "/admin/v1/acts?cursor=<bad act>", "", nil},
		refusal{"Bearer " + y.token, "GET", "/admin/v1/<bad route>", "", nil},
		refusal{"Bearer " + y.token, "PUT", "/admin/v1/workspaces/test/grants/<bad grant>", `{"amount":"<bad amount>"}`, nil},
		refusal{"Bearer " + y.token, "PATCH", "/admin/v1/workspaces/test/limits", `{"<bad limit>":1}`, nil},
		refusal{"Bearer " + y.token, "DELETE", "/admin/v1/workspaces/test/keys/<bad key id>", "", nil},
	)
	return all
}

// foreignRefusals are those of the other dialects.
func (y *spy) foreignRefusals() []refusal {
	token, tools := y.mem0(), []string{"X-Holdfast-User-Id", "<user of a refused tool>", "Accept", acceptHeader}
	all := []refusal{
		{token, "POST", "/v3/memories/add/", `{"user_id":"u","messages":[{"role":"user","content":{"<bad content>":1}}]}`, nil},
		{token, "POST", "/v3/memories/add/", `{"messages":"<bad scope>"}`, nil},
		{token, "POST", "/v3/memories/add/", `{"user_id":"u","messages":"<bad length>LONG"}`, nil},
		{token, "POST", "/v3/memories/add/", `{"user_id":"u","messages":"x","timestamp":"<bad date>"}`, nil},
		{token, "POST", "/v3/memories/add/", `{"user_id":"u","messages":"<bad immutable>","immutable":true}`, nil},
		{token, "POST", "/v3/memories/", `{"filters":{"<bad field>":"x"}}`, nil},
		{token, "POST", "/v2/memories/search/", `{"query":"<bad query>"}`, nil},
		{token, "GET", "/v1/memories/<bad id>/", "", nil},
		{token, "GET", "/v1/memories/?user_id=u&page=<bad page>", "", nil},
		{token, "DELETE", "/v1/entities/<bad entity type>/<bad entity>/", "", nil},
		{token, "POST", "/v1/feedback/", `{"memory_id":"<bad id>","feedback":"<bad verdict>"}`, nil},
		{token, "POST", "/v1/exports/get/", `{"memory_export_id":"<bad export>"}`, nil},
		{token, "POST", "/v1/summary/", `{"q":"<bad summary>"}`, nil},
		{token, "GET", "/<bad route>/", "", nil},
		{token, "PATCH", "/api/v1/orgs/organizations/<bad org>/projects/<bad project>/", `{"custom_instructions":"<bad policy>"}`, nil},
		{y.native(), "POST", "/v1/memory/add", `{"items":[{"id":"x","text":"<bad item>","at":"<bad date>"}]}`, []string{"X-Twin-Account", "<account of a refusal>"}},
		{y.native(), "POST", "/v1/memory/add", `{"items":[{"id":"x","text":"<bad item>"}]}`, nil},
		{y.native(), "POST", "/v1/memory/add", `{"items":[{"id":"x","text":"<bad item>","<bad member>":1}]}`, []string{"X-Twin-Account", "u"}},
		{y.native(), "POST", "/v1/memory/grep", `{"pattern":"(<bad expression>","regex":true}`, []string{"X-Twin-Account", "u"}},
		{y.native(), "POST", "/v1/memory/correct", `{"id":"<bad id>","text":"<bad correction>"}`, []string{"X-Twin-Account", "u"}},
		{y.native(), "POST", "/v1/memory/read", `{"session":"s","after":"<bad item>"}`, []string{"X-Twin-Account", "u"}},
	}
	for _, message := range []string{
		call("<bad tool>", `{}`), call("add_memory", `{"text":"<bad text>","<bad argument>":1}`), call("add_memory", `{"text":["<bad text>"]}`),
		call("search_memory", `{"limit":"<bad limit>"}`), call("get_event", `{"event_id":"<bad event of a tool, which is no id>"}`), call("get_event", `{"event_id":"<bad event>"}`),
		call("list_memories", `{"cursor":"<bad cursor>"}`), call("delete_memory", `{"id":"<bad id>"}`), `{"jsonrpc":"2.0","id":1,"method":"<bad method of a message>"}`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"<bad resource>"}}`, `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"<bad prompt>"}}`,
		`{"jsonrpc":"<bad version>","id":1,"method":"ping"}`, `{"<bad message>":`, `["<bad batch>"]`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"<bad params>"}`,
	} {
		all = append(all, refusal{y.native(), "POST", "/mcp", message, tools})
	}
	return append(all,
		refusal{y.native(), "POST", "/mcp", call("list_memories", `{}`), append([]string{"Origin", "http://<bad origin>.example"}, tools...)},
		refusal{y.native(), "POST", "/mcp", call("list_memories", `{}`), append([]string{"Mcp-Protocol-Version", "<bad protocol>"}, tools...)},
		refusal{y.native(), "POST", "/mcp", call("list_memories", `{}`), append([]string{"Mcp-Session-Id", "<bad session>", "Content-Type", "text/<bad media>"}, tools...)},
		refusal{y.native(), "GET", "/docs/<bad page>", "", nil},
	)
}
