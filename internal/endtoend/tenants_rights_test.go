package endtoend

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/testkit/canary"
)

// refusedWith tells whether an answer is a refusal with the status and the code; a tool's is an answer of its own.
func refusedWith(a answer, place string, status int, code string) bool {
	if strings.HasPrefix(place, "tool ") && status == http.StatusForbidden {
		status = http.StatusOK
	}
	return a.status == status && strings.Contains(strings.ReplaceAll(string(a.body), `\"`, `"`), `"code":"`+code+`"`)
}

// visits are one errand for each place, with what the caller itself has: allowed, they all do something.
func (n *neighbours) visits() map[string]errand {
	n.t.Helper()
	visits := map[string]errand{}
	for _, e := range errands() {
		visits[e.place] = e
	}
	return visits
}

// issued makes a key of the caller's workspace.
func (n *neighbours) issued(expires *time.Time, permissions ...access.Permission) string {
	n.t.Helper()
	db, err := postgres.Open(n.t.Context(), postgres.Config{URL: n.url})
	if err != nil {
		n.t.Fatal(err)
	}
	defer db.Close()
	key, err := db.CreateKey(n.t.Context(), n.mine.ws, uuid.NewString(), permissions, expires)
	if err != nil {
		n.t.Fatal(err)
	}
	return key.Reveal()
}

// with runs an errand under another key.
func (n *neighbours) with(key string, e errand, whose belongings) answer {
	n.t.Helper()
	mine := *n.mine
	system := *mine.system
	system.key, mine.system = key, &system
	other := &neighbours{system: n.system, theirs: n.theirs, mine: &mine}
	_, a := other.run(e, whose)
	return a
}

// TestRights walks every route with keys that may not: one without the route's permission but with all others, one that is
// revoked, one that has expired, and none. Each is refused with its code and nothing is changed. The key that has the
// permission alone is let in.
func TestRights(t *testing.T) {
	t.Parallel()
	n := newNeighbours(t)
	later := time.Now().Add(time.Hour)
	lacking, only := map[access.Permission]string{}, map[access.Permission]string{}
	for _, p := range access.Permissions() {
		others := slices.DeleteFunc(access.Permissions(), func(q access.Permission) bool { return p == q })
		lacking[p], only[p] = n.issued(nil, others...), n.issued(nil, p)
	}
	revoked, expired := n.issued(nil, access.Permissions()...), n.issued(&later, access.Permissions()...)
	n.exec(`UPDATE api_keys SET revoked_at = clock_timestamp() WHERE workspace_id = $1 AND id = $2`, n.mine.ws, revoked[4:16])
	n.exec(`UPDATE api_keys SET expires_at = clock_timestamp() WHERE workspace_id = $1 AND id = $2`, n.mine.ws, expired[4:16])
	token := n.operate(0, "operator", "create", "ann")
	visits := n.visits()
	visits["POST /v1/imports"] = errand{place: "POST /v1/imports", body: "{}"}
	before := n.rows(n.mine.ws)
	for _, p := range n.places() {
		e, known := visits[p.name]
		if !known {
			t.Errorf("%s is not visited", p.name)
			continue
		}
		refused := func(what, key string, status int, code string) {
			t.Helper()
			a := n.with(key, e, n.mine.has)
			if !refusedWith(a, p.name, status, code) {
				t.Errorf("%s with %s: %d %s, want %d %s", p.name, what, a.status, a.body, status, code)
			}
		}
		if p.public {
			if a := n.with(revoked, e, n.mine.has); a.status != http.StatusOK {
				t.Errorf("%s is public: %d", p.name, a.status)
			}
			continue
		}
		refused("a revoked key", revoked, 401, "INVALID_API_KEY")
		refused("an expired key", expired, 401, "API_KEY_EXPIRED")
		refused("no key", "", 401, "INVALID_API_KEY")
		refused("an operator's token", token, 401, "INVALID_API_KEY")
		if p.permission != "" {
			refused("a key without "+string(p.permission), lacking[p.permission], 403, "INSUFFICIENT_PERMISSION")
		}
	}
	n.operatorsOnly(token)
	if tables := changed(before, n.rows(n.mine.ws)); len(tables) > 0 {
		t.Errorf("what was refused changed %v", tables)
	}
	nothing := n.mine.has.ghost()
	maps.Copy(nothing, belongings{"org": n.mine.has["org"], "project": n.mine.has["project"]})
	for _, p := range n.places() {
		if p.permission == "" {
			continue
		}
		a := n.with(only[p.permission], visits[p.name], nothing)
		if a.status == 401 || a.status == 403 || a.status >= 500 || refusedWith(a, p.name, 403, "INSUFFICIENT_PERMISSION") {
			t.Errorf("%s with %s alone: %d %s", p.name, p.permission, a.status, a.body)
		}
	}
}

// operatorsOnly walks the routes of operators with a key that may do everything else, and with none.
func (n *neighbours) operatorsOnly(token string) {
	n.t.Helper()
	fill := strings.NewReplacer("{workspace}", "ws_"+n.mine.ws.String(), "{key}", n.mine.has["key"], "{reference}", "start", "{id}", n.mine.has["event"])
	acts := one[int64](n.system, `SELECT count(*) FROM operator_acts`)
	seen := 0
	for path, item := range n.document("/admin/v1/openapi.json").Paths {
		for method, op := range item {
			if op.Security != nil && len(*op.Security) == 0 {
				continue
			}
			seen++
			method, path := strings.ToUpper(method), fill.Replace(path)
			body := ""
			if op.Body != nil {
				body = "{}"
			}
			for _, authorization := range []string{"Bearer " + n.mine.key, ""} {
				if a := n.knock(authorization, method, path, body); !refusedWith(a, "", 401, "INVALID_API_KEY") {
					n.t.Errorf("%s %s: %d %s", method, path, a.status, a.body)
				}
			}
			for _, secret := range []string{n.mine.key, token} { // the scheme of a dialect that has no such route
				if a := n.knock("Token "+secret, method, path, body); !refusedWith(a, "", 404, "ROUTE_NOT_FOUND") {
					n.t.Errorf("%s %s in another dialect: %d %s", method, path, a.status, a.body)
				}
			}
		}
	}
	if seen < 10 {
		n.t.Errorf("only %d routes of operators are described", seen)
	}
	if more := one[int64](n.system, `SELECT count(*) FROM operator_acts`) - acts; more != 0 {
		n.t.Errorf("%d acts are recorded of what was refused", more)
	}
}

// TestSuspended walks every route of a suspended workspace with its own things: it is read as ever, and nothing begins
// or changes but what ends something.
func TestSuspended(t *testing.T) {
	t.Parallel()
	n := newNeighbours(t)
	visits := n.visits()
	n.operate(0, "workspace", "suspend", "ws_"+n.mine.ws.String())
	reading := []string{
		"POST /v1/memories/search", "POST /v1/memory/search", "POST /v1/memory/grep", "POST /v1/memory/read", "tool search_memory", "tool list_memories",
		"tool get_event", "mem0 POST /v1/memories/search", "mem0 POST /v2/memories/search", "mem0 POST /v3/memories/search", "mem0 POST /v2/memories",
		"mem0 POST /v3/memories", "mem0 POST /v1/exports/get",
	}
	ending := []string{"POST /v1/events/{id}/cancel", "DELETE /v1/webhooks/{id}"}
	fresh := maps.Clone(n.mine.has)
	fresh["idem"] = canary.New() // what is sent again under a key that is known is answered as ever
	before := n.rows(n.mine.ws)
	for _, p := range n.places() {
		e := visits[p.name]
		switch {
		case p.permission == "" || slices.Contains(ending, strings.Replace(p.name, "mem0 DELETE /api/", "DELETE /", 1)) || p.name == "POST /v1/imports":
		case slices.Contains(reading, p.name) || strings.Contains(p.name, "GET "):
			if a := n.with(n.mine.key, e, fresh); a.status == 403 || a.status >= 500 || refusedWith(a, p.name, 403, "INSUFFICIENT_PERMISSION") {
				t.Errorf("%s of a suspended workspace: %d %s", p.name, a.status, a.body)
			}
		default:
			if a := n.with(n.mine.key, e, fresh); !refusedWith(a, p.name, 403, "INSUFFICIENT_PERMISSION") {
				t.Errorf("%s of a suspended workspace: %d %s", p.name, a.status, a.body)
			}
		}
	}
	if tables := changed(before, n.rows(n.mine.ws)); len(tables) > 0 {
		t.Errorf("what was refused changed %v", tables)
	}
	for _, place := range ending {
		if a := n.with(n.mine.key, visits[place], fresh); a.status >= 300 {
			t.Errorf("%s of a suspended workspace: %d %s", place, a.status, a.body)
		}
	}
}
