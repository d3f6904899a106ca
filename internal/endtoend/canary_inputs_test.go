package endtoend

import (
	"encoding/base64"
	"net/http"
	"path/filepath"
	"strings"
	"sync"

	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

func (y *spy) native() string { return "Bearer " + y.s.key }
func (y *spy) mem0() string   { return "Token " + y.s.key }

// sends is asks for what must be taken.
func (y *spy) sends(authorization, method, path, body string, header ...string) answer {
	y.s.t.Helper()
	a := y.asks(authorization, method, path, body, header...)
	if a.status >= http.StatusMultipleChoices || strings.Contains(string(a.body), `"isError":true`) {
		y.s.t.Fatalf("%s %s: %d %s", method, path, a.status, a.body)
	}
	return a
}

// call is the message that calls a tool.
func call(tool, arguments string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + `}}`
}

// acceptHeader is what the tools' clients take.
const acceptHeader = "application/json, text/event-stream"

// accepts sends words in everything that is accepted. Nobody works on it yet.
func (y *spy) accepts(empty *system) {
	s := y.s
	s.t.Helper()
	y.behaves()
	y.hook = newReceiver(s)
	y.hook.check = func(body []byte, header http.Header) error {
		y.hears("bodies of webhooks", body)
		for name, values := range header {
			y.hears("bodies of webhooks", []byte(name+": "+strings.Join(values, ", ")))
		}
		return nil
	}
	y.hook.open(nil)
	y.sends(y.native(), "PUT", "/v1/webhooks/"+y.hook.id, `{"name":"<name of a webhook>","url":"http://`+y.hook.address+`/<path of a webhook>?q=<query of a webhook>"}`)
	y.rotates()
	y.sends(y.native(), "PUT", "/v1/extraction-policy", `{"instructions":"<instructions of the policy>",
		"categories":[{"name":"<category of the policy>","description":"<description of the policy>"}]}`)
	y.sends("Bearer "+y.token, "PUT", "/admin/v1/workspaces/test/grants/<reference of a grant>", `{"amount":5}`)
	y.sends("Bearer "+y.token, "PUT", "/admin/v1/workspaces/<name of a workspace>", "")

	y.sends(y.native(), "POST", "/v1/memories", `{"user_id":"<user>","agent_id":"<agent>","run_id":"<run>","app_id":"<app>",
		"metadata":{"<metadata key>":"<metadata value>"},"instructions":"<instructions>",
		"categories":[{"name":"<category>","description":"<description of a category>"}],
		"messages":[{"role":"user","name":"<speaker>","content":"FACT: <fact>"},{"role":"assistant","content":"small talk <small talk>"}]}`,
		"Idempotency-Key", "<idempotency key>", "User-Agent", "<user agent>", "X-Request-Id", "<request id>", "Referer", "<referer>", "Cookie", "a=<cookie>",
		"Traceparent", "00-<traceparent>", "Baggage", "a=<baggage>", "X-Forwarded-For", "<forwarded>")
	y.sends(y.mem0(), "POST", "/v3/memories/add/?q=<query of an address>", `{"user_id":"<user of mem0>","metadata":{"k":"<metadata of mem0>"},
		"idempotency_key":"<idempotency key of mem0>","custom_instructions":"<instructions of mem0>",
		"messages":[{"role":"user","content":"FACT: <fact of mem0>"},{"role":"user","content":"<small talk of mem0>"}]}`)
	y.sends(y.native(), "POST", "/mcp", call("add_memory", `{"idempotency_key":"<idempotency key of a tool>","messages":[
		{"role":"user","content":"FACT: <fact of a tool>"},{"role":"user","content":"<small talk of a tool>"}]}`),
		"X-Holdfast-User-Id", "<user of a tool>", "Accept", acceptHeader)
	y.sends(y.native(), "POST", "/v1/memory/add", `{"items":[{"id":"<item>","author":"<author>","session":"<session>",
		"text":"FACT: <fact of an item>\n<small talk of an item>"}]}`, "X-Twin-Account", "<account>", "Idempotency-Key", "<idempotency key of items>")
	for _, said := range []string{"nonsense <said to a model that fails>", "refuse <said to a model that refuses>", "break <said to a provider that breaks>", "FACT: none\nlater <said during an outage>"} {
		y.sends(y.native(), "POST", "/v1/memories", `{"user_id":"<user>","run_id":"<run>","content":"`+strings.ReplaceAll(said, "\n", `\n`)+`","ordered":false}`,
			"Idempotency-Key", "a-"+y.word("key of "+said))
	}
	var receipt struct {
		EventID string `json:"event_id"`
	}
	y.sends(y.native(), "POST", "/v1/memories", `{"user_id":"<user>","app_id":"x","content":"<said and cancelled>"}`, "Idempotency-Key", "<key of the cancelled>").into(s.t, &receipt)
	y.sends(y.native(), "POST", "/v1/events/"+receipt.EventID+"/cancel", "")
	y.stores()
	importer := *s
	importer.key = empty.key
	if a := importer.sendSnapshot(y.word("idempotency key of an import"), []byte(y.fill(`{"<line of an import>":1}`+"\n"))); a.status != http.StatusAccepted {
		s.t.Fatalf("import: %d %s", a.status, a.body)
	}
}

// behaves makes the model fail in each way, in words of its own.
func (y *spy) behaves() {
	stub := y.s.stub
	stub.Always(stubmodel.With("nonsense"), stubmodel.Reply(stubmodel.Content("nonsense "+y.word("words of a model that fails"))))
	stub.Always(stubmodel.With("refuse"), stubmodel.Reply(stubmodel.Answer{Content: y.word("words of a model that refuses"), Stop: stubmodel.StopRefusal}))
	stub.Always(stubmodel.With("break"), stubmodel.Reply(stubmodel.Answer{
		Status: 400, Code: "invalid_value", Param: y.word("parameter of a provider"), Words: y.word("words of a provider"), Header: http.Header{"X-Request-Id": {y.word("request of a provider")}},
	}))
	stub.Queue(stubmodel.With("later"), stubmodel.Reply(stubmodel.Answer{Status: 503, ContentType: "text/html", Body: "<html>" + y.word("page of a provider")}))
}

// rotates makes a secret of the webhook known.
func (y *spy) rotates() {
	y.s.t.Helper()
	var made struct{ Secret string }
	y.sends(y.native(), "POST", "/v1/webhooks/"+y.hook.id+"/rotate-secret", "").into(y.s.t, &made)
	encoded := strings.TrimPrefix(made.Secret, "whsec_")
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		y.s.t.Fatal(err)
	}
	y.knows("secret of a webhook, as it is shown", encoded)
	y.knows("secret of a webhook", string(raw))
}

// stores makes memories at once and changes them.
func (y *spy) stores() {
	y.s.t.Helper()
	var ids []string
	for _, text := range []string{"<text that is changed>", "<text that is deleted>", "<text of a batch before>", "<text that is judged>"} {
		var made stored
		y.sends(y.native(), "POST", "/v1/memories", `{"user_id":"<user>","content":"`+text+`","infer":false}`).into(y.s.t, &made)
		ids = append(ids, made.Results[0].ID)
	}
	y.sends(y.native(), "PUT", "/v1/memories/"+ids[0], `{"content":"<text of a change>","metadata":{"k":"<metadata of a change>"}}`, "Idempotency-Key", "<idempotency key of a change>")
	y.sends(y.native(), "DELETE", "/v1/memories/"+ids[1], "")
	y.sends(y.native(), "PUT", "/v1/memories/batch", `{"memories":[{"id":"`+ids[2]+`","content":"<text of a batch>","metadata":{"k":"<metadata of a batch>"}}]}`,
		"Idempotency-Key", "<idempotency key of a batch>")
	y.sends(y.native(), "PUT", "/v1/memories/"+ids[3]+"/feedback", `{"feedback":"NEGATIVE","reason":"<reason of feedback>"}`)
	y.sends(y.mem0(), "POST", "/v1/exports/", `{"filters":{"user_id":"<user of a filter>"},"schema":{"<schema of an export>":1},"export_instructions":"<instructions of an export>"}`)
}

// works lets one worker die in the middle of a command and another one do everything.
func (y *spy) works() []*testkit.Process {
	y.s.t.Helper()
	dying := y.s.start("worker", point("worker.after_inference", "kill"))
	<-dying.Exited()
	y.hears("logs of workers", []byte(dying.Stdout()+dying.Stderr()))
	return []*testkit.Process{y.s.startWorker("HOLDFAST_ADMIN_LISTEN=127.0.0.1:0")}
}

// ends waits until everything has ended and is told, and asks for what has become of it in all ways.
func (y *spy) ends() {
	s := y.s
	s.t.Helper()
	s.until("everything has ended", func() bool {
		return one[int64](s, `SELECT count(*) FROM tasks WHERE completed_at IS NULL`) == 0
	})
	if n := one[int64](s, `SELECT count(*) FROM tasks WHERE status = 'failed'`); n != 5 {
		s.t.Errorf("%d events have failed", n)
	}
	s.until("the webhook has been told", func() bool {
		return one[int64](s, `SELECT count(*) FROM webhook_deliveries WHERE last_status = 200`) > 0
	})
	s.until("the stream has told what it must", func() bool { return y.told("the stream") }) // before anything is erased
	y.sends(y.native(), "POST", "/v1/memories/search", `{"user_id":"<user>","query":"<query>","filters":{"metadata.<path of a filter>":"<value of a filter>"}}`)
	y.sends(y.mem0(), "POST", "/v3/memories/search/", `{"query":"<query of mem0>","filters":{"user_id":"<user of a search>"}}`)
	y.sends(y.native(), "POST", "/mcp", call("search_memory", `{"query":"<query of a tool>"}`), "X-Holdfast-User-Id", "<user of another tool>", "Accept", acceptHeader)
	for _, body := range []string{`{"pattern":"<pattern>"}`, `{"pattern":"<regular expression>.*","regex":true}`} {
		y.sends(y.native(), "POST", "/v1/memory/grep", body, "X-Twin-Account", "<another account>")
	}
	y.sends(y.native(), "GET", "/v1/memories?user_id=<user of a list>", "")
	y.sends(y.native(), "GET", "/v1/events", "", "Idempotency-Key", "<key that is looked up>")
	y.sends(y.native(), "GET", "/v1/events/stream", "", "Last-Event-ID", "")
}

// commands runs repair and what operators run beside the database.
func (y *spy) commands() {
	s := y.s
	s.t.Helper()
	var receipt struct {
		EventID string `json:"event_id"`
	}
	y.sends(y.native(), "POST", "/v1/exports", "", "Idempotency-Key", "<idempotency key of an export>").into(s.t, &receipt)
	s.succeeded(receipt.EventID)
	repair := testkit.StartProcess(s.t, testkit.ProcessConfig{Path: filepath.Join(s.bin, "repair"), Args: []string{"--once"}, Env: append(s.env, "HOLDFAST_HINT_AGE=1ms")})
	repair.Wait(patience)
	y.hears("logs of repair", []byte(repair.Stdout()+repair.Stderr()))
	for _, args := range [][]string{{"audit"}, {"doctor"}, {"acts", "list"}, {"workspace", "list"}, {"key", "list", "--workspace", "test"}, {"operator", "list"}, {"audit", "--json"}} {
		p := testkit.StartProcess(s.t, testkit.ProcessConfig{Path: filepath.Join(s.bin, "holdfast"), Args: args, Env: s.env})
		p.Wait(patience)
		y.hears("output of commands", []byte(strings.Join(args, " ")+"\n"+p.Stdout()+p.Stderr()))
	}
}

// erases erases every scope.
func (y *spy) erases() {
	y.s.t.Helper()
	for _, user := range []string{"<user>", "<user of mem0>", "<user of a tool>", "<account>"} {
		y.sends(y.native(), "DELETE", "/v1/memories?user_id="+user, "")
	}
	y.s.until("everything is erased", func() bool {
		return one[int64](y.s, `SELECT count(*) FROM erasures`) == 0
	})
}

// pages reads what everybody may read, and the log of acts.
func (y *spy) pages() {
	y.s.t.Helper()
	for _, path := range []string{"/docs/", "/v1/openapi.json", "/admin/v1/openapi.json", "/v1/health"} {
		y.hearsAnswer("pages", y.sends("", "GET", path, ""))
	}
	y.hearsAnswer("the log of acts", y.sends("Bearer "+y.token, "GET", "/admin/v1/acts?limit=1000", ""))
}

// deletes deletes both workspaces.
func (y *spy) deletes(empty *system) {
	y.s.t.Helper()
	for _, id := range []string{y.s.ws.String(), empty.ws.String()} {
		path := "/admin/v1/workspaces/ws_" + id
		y.sends("Bearer "+y.token, "DELETE", path, "")
		y.s.until("the workspace is deleted", func() bool {
			return strings.Contains(string(y.sends("Bearer "+y.token, "GET", path, "").body), `"status":"deleted"`)
		})
	}
}

// calls is what the model was asked.
func (y *spy) calls() {
	for _, c := range y.s.stub.Calls(stubmodel.At(stubmodel.Everything)) {
		y.hears("requests to the model", c.Body)
		for name, values := range c.Header {
			y.hears("requests to the model", []byte(name+": "+strings.Join(values, ", ")))
		}
	}
}

// withoutDatabase asks while PostgreSQL is down, all at once: each waits as long as it may.
func (y *spy) withoutDatabase() {
	y.s.t.Helper()
	var all sync.WaitGroup
	header := []string{"Idempotency-Key", y.word("key without a database"), "X-Twin-Account", y.word("account without a database")}
	for _, c := range []struct{ authorization, path, body string }{
		{y.native(), "/v1/memories", `{"user_id":"<user without a database>","content":"<text without a database>"}`},
		{y.mem0(), "/v3/memories/add/", `{"user_id":"<user without a database>","messages":"<text without a database>"}`},
		{y.native(), "/v1/memory/add", `{"items":[{"id":"<item without a database>","text":"<text without a database>"}]}`},
		{y.native(), "/v1/memories/search", `{"user_id":"<user without a database>","query":"<query without a database>"}`},
		{"Bearer " + y.token, "/admin/v1/acts?actor=<actor without a database>", ""},
	} {
		method, path, body := "POST", y.fill(c.path), y.fill(c.body)
		if body == "" {
			method = "GET"
		}
		all.Go(func() {
			a := y.s.knock(c.authorization, method, path, body, header...)
			y.hearsAnswer("refusals", a)
			if a.status < 500 {
				y.s.t.Errorf("%s without a database: %d %s", c.path, a.status, a.body)
			}
		})
	}
	all.Wait()
}
