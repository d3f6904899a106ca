package endtoend

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/testkit"
)

// operate runs one of the operator's commands to its end.
func (s *system) operate(code int, args ...string) string {
	s.t.Helper()
	p := testkit.StartProcess(s.t, testkit.ProcessConfig{Path: filepath.Join(s.bin, "holdfast"), Args: args, Env: s.env})
	if got := p.Wait(patience); got != code {
		s.t.Fatalf("holdfast %v ended with %d, want %d", args, got, code)
	}
	return strings.TrimSpace(p.Stdout())
}

// admin sends one request under a token.
func (s *system) admin(token, method, path, body string) answer {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.api+path, bytes.NewReader([]byte(body)))
	if err != nil {
		s.t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	request.Header.Set("X-Request-Id", "request-of-ann")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, read}
}

// TestOperators drives the operators' API and then deletes the workspace, while its events are in every state.
func TestOperators(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t), "HOLDFAST_OUTPUT_RETRIES=0")
	s.startAPI()
	s.startWorker()
	token := s.operate(0, "operator", "create", "ann")
	want := func(status int, code, token, method, path, body string) answer {
		t.Helper()
		a := s.admin(token, method, path, body)
		if a.status != status || code != "" && !strings.Contains(string(a.body), `"code":"`+code+`"`) {
			t.Fatalf("%s %s: %d %s, want %d %s", method, path, a.status, a.body, status, code)
		}
		return a
	}

	// Neither opens the other's doors.
	want(401, "INVALID_API_KEY", s.key, "GET", "/admin/v1/workspaces", "")
	want(401, "INVALID_API_KEY", "", "GET", "/admin/v1/acts", "")
	want(401, "INVALID_API_KEY", token, "GET", "/v1/credits", "")
	want(401, "INVALID_API_KEY", token[:len(token)-1]+"~", "GET", "/admin/v1/acts", "")
	want(404, "ROUTE_NOT_FOUND", token, "GET", "/admin/v1/nothing", "")
	if a := want(405, "METHOD_NOT_ALLOWED", token, "POST", "/admin/v1/acts", ""); !strings.Contains(a.header.Get("Allow"), "GET") {
		t.Errorf("Allow: %s", a.header.Get("Allow"))
	}
	want(200, "", "", "GET", "/admin/v1/openapi.json", "")

	// Grants happen once.
	grants := "/admin/v1/workspaces/test/grants/invoice%2F7"
	want(201, "", token, "PUT", grants, `{"amount":500}`)
	want(200, "", token, "PUT", grants, `{"amount":500}`)
	want(409, "IDEMPOTENCY_CONFLICT", token, "PUT", grants, `{"amount":501}`)
	want(400, "INVALID_REQUEST", token, "PUT", grants+"x", `{"amount":0}`)
	want(400, "INVALID_REQUEST", token, "PUT", grants+"x", `{"amount":5,"more":1}`)
	want(404, "WORKSPACE_NOT_FOUND", token, "PUT", "/admin/v1/workspaces/nobody/grants/x", `{"amount":5}`)
	if n := one[int64](s, `SELECT available FROM credit_accounts WHERE workspace_id = $1`, s.ws); n != 10_500 {
		t.Fatalf("%d credits", n)
	}

	// Workspaces.
	want(201, "", token, "PUT", "/admin/v1/workspaces/acme", `{"metered":false}`)
	want(200, "", token, "PUT", "/admin/v1/workspaces/acme", `{"metered":false}`)
	want(409, "IDEMPOTENCY_CONFLICT", token, "PUT", "/admin/v1/workspaces/acme", `{}`)
	limited := want(200, "", token, "PATCH", "/admin/v1/workspaces/acme/limits", `{"rate_limit":7}`)
	if !strings.Contains(string(limited.body), `"rate_limit":7`) {
		t.Errorf("limited: %s", limited.body)
	}
	for range 2 {
		want(200, "", token, "PUT", "/admin/v1/workspaces/test/suspension", "")
	}
	if a := s.do("POST", "/v1/memories", "suspended", conversation("u", "x")); a.status != http.StatusForbidden {
		t.Errorf("a write of the suspended workspace: %d %s", a.status, a.body)
	}
	want(200, "", token, "DELETE", "/admin/v1/workspaces/test/suspension", "")

	// The log says who erased and who suspended.
	if a := s.do("DELETE", "/v1/memories?user_id=somebody", "e", nil); a.status != http.StatusOK {
		t.Fatalf("erase: %d %s", a.status, a.body)
	}
	var log struct {
		Acts []struct {
			Actor, Origin, Act, Subject string
			RequestID                   string `json:"request_id"`
			Details                     json.RawMessage
		}
		NextCursor *string `json:"next_cursor"`
	}
	want(200, "", token, "GET", "/admin/v1/acts?workspace=test&limit=3", "").into(t, &log)
	if len(log.Acts) != 3 || log.NextCursor == nil || log.Acts[0].Act != "scope.erase" || !strings.HasPrefix(log.Acts[0].Actor, "key:") ||
		log.Acts[1].Act != "workspace.resume" || log.Acts[1].Actor != "operator:ann" || log.Acts[1].Origin != "127.0.0.1" ||
		log.Acts[1].RequestID != "request-of-ann" {
		t.Fatalf("the log says %+v", log)
	}
	want(200, "", token, "GET", "/admin/v1/acts?workspace=test&limit=3&cursor="+*log.NextCursor, "").into(t, &log)
	if len(log.Acts) != 3 || log.Acts[0].Act != "workspace.suspend" {
		t.Fatalf("the next page is %+v", log)
	}
	want(400, "INVALID_CURSOR", token, "GET", "/admin/v1/acts?cursor=x", "")
	if shown := s.operate(0, "acts", "list", "--act", "operator.create"); !strings.Contains(shown, "user:") || !strings.Contains(shown, "cli") {
		t.Errorf("the command shows %s", shown)
	}

	s.operateKeys(t, want, token)

	// Deleting ends everything.
	_, hold := s.past(t)
	s.operate(2, "workspace", "delete", "test") // not without --yes
	deleting := want(202, "", token, "DELETE", "/admin/v1/workspaces/test", "")
	want(202, "", token, "DELETE", "/admin/v1/workspaces/ws_"+s.ws.String(), "")
	if a := s.do("GET", "/v1/credits", "", nil); a.status != http.StatusUnauthorized {
		t.Errorf("its key after the deletion began: %d", a.status)
	}
	if !strings.Contains(string(deleting.body), `"event_id":"evt_`) {
		t.Errorf("deleting: %s", deleting.body)
	}
	s.until("the workspace is deleted", func() bool {
		return strings.Contains(string(s.admin(token, "GET", "/admin/v1/workspaces/ws_"+s.ws.String(), "").body), `"status":"deleted"`)
	})
	hold.Release()
	s.wantGone(t)
	want(404, "WORKSPACE_NOT_FOUND", token, "GET", "/admin/v1/workspaces/test", "")
	want(201, "", token, "PUT", "/admin/v1/workspaces/test", "")
	s.operate(0, "audit")

	id := one[string](s, `SELECT id FROM operators`)
	s.operate(0, "operator", "revoke", id)
	want(401, "INVALID_API_KEY", token, "GET", "/admin/v1/acts", "")
}

// operateKeys makes, lists and ends API keys over HTTP, and asks for health.
func (s *system) operateKeys(t *testing.T, want func(status int, code, token, method, path, body string) answer, token string) {
	t.Helper()
	type shown struct {
		ID, Reference string
		Permissions   []string
		ExpiresAt     *string `json:"expires_at"`
		RevokedAt     *string `json:"revoked_at"`
		Secret        *string
	}
	const keys = "/admin/v1/workspaces/test/keys"
	const ask = `{"reference":"ticket 7","name":"crm","permissions":["credits:read"],"expires_at":"2099-01-02T03:04:05Z"}`
	var made, again shown
	a := want(201, "", token, "POST", keys, ask)
	a.into(t, &made)
	if made.Secret == nil || made.ExpiresAt == nil || len(made.Permissions) != 1 || a.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("made: %s", a.body)
	}
	want(200, "", token, "POST", keys, ask).into(t, &again)
	if again.Secret != nil || again.ID != made.ID || again.Reference != "ticket 7" {
		t.Fatalf("a repeat shows %+v", again)
	}
	want(409, "IDEMPOTENCY_CONFLICT", token, "POST", keys, `{"reference":"ticket 7"}`)
	want(400, "INVALID_REQUEST", token, "POST", keys, `{"name":"crm"}`)
	want(400, "INVALID_REQUEST", token, "POST", keys, `{"reference":"r","permissions":["everything"]}`)
	want(400, "INVALID_REQUEST", token, "POST", keys, `{"reference":"r","permissions":[]}`)
	want(404, "WORKSPACE_NOT_FOUND", token, "POST", "/admin/v1/workspaces/nobody/keys", ask)
	want(401, "INVALID_API_KEY", s.key, "POST", keys, ask)
	var usual shown
	want(201, "", token, "POST", keys, `{"reference":"usual"}`).into(t, &usual)
	if len(usual.Permissions) != 5 || usual.ExpiresAt != nil {
		t.Errorf("a key for an application is %+v", usual)
	}

	// It opens what it may, until it is revoked.
	want(200, "", *made.Secret, "GET", "/v1/credits", "")
	want(403, "INSUFFICIENT_PERMISSION", *made.Secret, "GET", "/v1/memories?user_id=u", "")
	for range 2 {
		want(200, "", token, "DELETE", keys+"/"+made.ID, "")
	}
	want(401, "INVALID_API_KEY", *made.Secret, "GET", "/v1/credits", "")
	var list struct{ Keys []shown }
	want(200, "", token, "GET", keys, "").into(t, &list)
	if n := len(list.Keys); n < 3 || list.Keys[n-2].ID != made.ID || list.Keys[n-2].RevokedAt == nil || list.Keys[n-2].Secret != nil {
		t.Errorf("listed %+v", list)
	}
	want(200, "", token, "POST", keys, ask).into(t, &again)
	if again.Secret != nil || again.RevokedAt == nil {
		t.Errorf("asked for again after its end: %+v", again)
	}
	if n := one[int64](s, `SELECT count(*) FROM operator_acts WHERE act = 'key.create' AND subject = $1`, made.ID); n != 1 {
		t.Errorf("%d acts of one creation", n)
	}

	var health struct {
		Status string
		Work   struct {
			Waiting, Running int
			Looked           int `json:"looked_at"`
		}
		Pauses []json.RawMessage
	}
	want(200, "", token, "GET", "/admin/v1/health", "").into(t, &health)
	if health.Status == "" || health.Pauses == nil || health.Work.Looked != health.Work.Waiting+health.Work.Running {
		t.Errorf("health is %+v", health)
	}
	want(401, "INVALID_API_KEY", s.key, "GET", "/admin/v1/health", "")
}

// TestWorkspaceDeletionSurvivesCrashes kills whoever deletes, at each crash point.
func TestWorkspaceDeletionSurvivesCrashes(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t), "HOLDFAST_OUTPUT_RETRIES=0")
	s.startAPI()
	worker := s.startWorker()
	_, hold := s.past(t)
	worker.Kill()
	hold.Release()

	run := func(name string) {
		t.Helper()
		p := testkit.StartProcess(s.t, testkit.ProcessConfig{
			Path: filepath.Join(s.bin, "holdfast"), Args: []string{"workspace", "delete", "test", "--yes"},
			Env: append(append([]string{}, s.env...), point(name, "kill")),
		})
		if p.Wait(patience) == 0 {
			t.Fatalf("the command outlived %s", name)
		}
	}
	run("deletion.in_tx")
	if a := s.do("GET", "/v1/credits", "", nil); a.status != http.StatusOK {
		t.Fatalf("a deletion that was rolled back: %d", a.status)
	}
	run("deletion.committed")
	if a := s.do("GET", "/v1/credits", "", nil); a.status != http.StatusUnauthorized {
		t.Fatalf("a deletion that has begun: %d", a.status)
	}
	for _, name := range []string{"erase.in_tx", "erase.piece_committed"} {
		p := s.startWorker(point(name, "kill"))
		<-p.Exited()
	}
	s.startWorker()
	s.operate(0, "workspace", "delete", "ws_"+s.ws.String(), "--yes", "--wait", "90s")
	s.wantGone(t)
	if n := one[int64](s, `SELECT count(*) FROM operator_acts WHERE act = 'workspace.delete'`); n != 1 {
		t.Errorf("%d deletions are recorded", n)
	}
	s.operate(0, "audit")
}
