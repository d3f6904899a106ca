package endtoend

import (
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

// errand is one request. <name> stands for what the other workspace has, $name for what the caller has.
type errand struct {
	// place is the route as it is described: a method and a path, with "mem0" before it for a route of that dialect, or
	// "tool" and a name.
	place string
	// status is what the caller is answered, whether the other's things exist or not.
	status int
	// path is the request's path and query. Without one it is the place's, whose parameters say nothing.
	path, body string
	// header is one line, "Name: value", or several.
	header string
	// makes says that it makes something of the caller's own.
	makes bool
	// ends waits for the event that the request makes and compares what became of it too.
	ends bool
}

// neighbours are two workspaces behind one API, and what a third would have that there never was.
type neighbours struct {
	*system

	theirs, mine *tenant
}

// newNeighbours sets everything up. A worker runs, and nothing of theirs moves any more.
func newNeighbours(t *testing.T) *neighbours {
	t.Helper()
	s := newSystem(t, testkit.NewDatabase(t), "HOLDFAST_OUTPUT_RETRIES=0", "HOLDFAST_WEBHOOK_ALLOW_HTTP=true",
		"HOLDFAST_WEBHOOK_ALLOW_NETWORKS=127.0.0.0/8")
	s.startAPI()
	s.stub.Always(stubmodel.With("nonsense"), stubmodel.Reply(stubmodel.Content("nonsense")))
	n := &neighbours{system: s, theirs: s.tenant(), mine: s.tenant()}
	s.startWorker()
	n.theirs.settle()
	n.mine.settle()
	return n
}

// run runs an errand of the caller's with the things of others.
func (n *neighbours) run(e errand, others belongings) (asked string, a answer) {
	n.t.Helper()
	fill := func(text string) string {
		for name, value := range n.mine.has {
			text = strings.ReplaceAll(text, "$"+name+"$", value)
		}
		return others.fill(text)
	}
	if name, ok := strings.CutPrefix(e.place, "tool "); ok {
		return fill(e.body) + others["user"], n.tool(n.mine.key, others, name, fill(e.body))
	}
	place, guest := strings.CutPrefix(e.place, "mem0 ")
	method, path, _ := strings.Cut(place, " ")
	if e.path != "" {
		path = e.path
	}
	path, body := fill(path), fill(e.body)
	var header []string
	for line := range strings.Lines(fill(e.header)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		header = append(header, name, value)
	}
	scheme := "Bearer "
	if guest {
		scheme = "Token "
	}
	return path + body + strings.Join(header, " "), n.knock(scheme+n.mine.key, method, path, body, header...)
}

// TestTenants asks every route for things of another workspace: in the path, the query, the body, as a cursor and in
// headers. Each answer is, but for what differs between any two requests, the answer for things that there never were;
// it says nothing of the other workspace, and the other workspace has the rows it had, to the byte.
func TestTenants(t *testing.T) {
	t.Parallel()
	n := newNeighbours(t)
	before := n.rows(n.theirs.ws)
	for _, table := range []string{"tasks", "memories", "items", "webhooks", "webhook_deliveries", "memory_exports", "api_keys", "credit_grants"} {
		if before[table] == "" {
			t.Errorf("the other workspace has nothing in %s", table)
		}
	}
	never := n.theirs.has.ghost() // one for all: what the caller makes under these names counts alike
	for _, e := range errands() {
		asked, a := n.run(e, n.theirs.has)
		name := e.place + " " + e.path + " " + e.body + " " + e.header
		if found := n.theirs.has.unasked(a, asked); len(found) > 0 {
			t.Errorf("%s answers with their %v: %d %s", name, found, a.status, a.body)
		}
		_, b := n.run(e, never)
		if a.status != e.status || n.theirs.has.plainly(a) != never.plainly(b) {
			t.Errorf("%s, want %d: %s\nof what never was: %s", name, e.status, n.theirs.has.plainly(a), never.plainly(b))
		}
		if e.ends && a.status < 300 && b.status < 300 {
			n.sameEnd(name, a, b, never)
		}
		after := n.rows(n.theirs.ws)
		if tables := changed(before, after); len(tables) > 0 {
			t.Errorf("%s changed their %v", name, tables)
			before = after
		}
	}
	n.snapshots(before, never)
	n.admits(before, never)
}

// sameEnd waits for the events of two answers and compares what became of them.
func (n *neighbours) sameEnd(name string, a, b answer, never belongings) {
	n.t.Helper()
	mine := n.mine.system
	x, y := mine.receipt(a), mine.receipt(b)
	mine.ended(x)
	mine.ended(y)
	if x, y := n.theirs.has.plainly(mine.do("GET", "/v1/events/"+x, "", nil)), never.plainly(mine.do("GET", "/v1/events/"+y, "", nil)); x != y {
		n.t.Errorf("%s ends as %s\nof what never was: %s", name, x, y)
	}
}

// snapshots imports another workspace's snapshot, and one with the ids of nobody.
func (n *neighbours) snapshots(before map[string]string, never belongings) {
	n.t.Helper()
	nobodys := n.theirs.snapshot
	for name, value := range n.theirs.has {
		nobodys = strings.ReplaceAll(nobodys, value, never[name])
	}
	a, b := n.mine.sendSnapshot("import", []byte(n.theirs.snapshot)), n.mine.sendSnapshot("import-of-nobody", []byte(nobodys))
	if a.status != http.StatusConflict || n.theirs.has.plainly(a) != never.plainly(b) {
		n.t.Errorf("an import answers %s, one of what never was %s", n.theirs.has.plainly(a), never.plainly(b))
	}
	if tables := changed(before, n.rows(n.theirs.ws)); len(tables) > 0 {
		n.t.Errorf("an import changed their %v", tables)
	}
}

// admits lets an operator end a key of one workspace under another's name: there is no such key.
func (n *neighbours) admits(before map[string]string, never belongings) {
	n.t.Helper()
	token := n.operate(0, "operator", "create", "ann")
	root := "/admin/v1/workspaces/ws_" + n.mine.ws.String() + "/keys/"
	a, b := n.admin(token, "DELETE", root+n.theirs.has["key"], ""), n.admin(token, "DELETE", root+never["key"], "")
	if a.status != http.StatusNotFound || n.theirs.has.plainly(a) != never.plainly(b) {
		n.t.Errorf("a key under another workspace's name: %d %s, %s", a.status, a.body, b.body)
	}
	if a := n.admin(token, "GET", strings.TrimSuffix(root, "/"), ""); strings.Contains(string(a.body), n.theirs.has["key"]) {
		n.t.Errorf("the keys of one workspace are those of another: %s", a.body)
	}
	if tables := changed(before, n.rows(n.theirs.ws)); len(tables) > 0 {
		n.t.Errorf("an operator's call changed their %v", tables)
	}
}

// TestTenantsVisitsEveryRoute holds that each route that there is has an errand, and each errand a route.
func TestTenantsVisitsEveryRoute(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t))
	s.startAPI()
	visited := map[string]bool{"POST /v1/imports": true} // by hand: its body is no JSON
	for _, e := range errands() {
		visited[e.place] = true
	}
	for _, place := range s.places() {
		if !visited[place.name] {
			t.Errorf("%s is not asked for another workspace's things", place.name)
		}
		delete(visited, place.name)
	}
	for place := range visited {
		t.Errorf("%s is not there", place)
	}
}
