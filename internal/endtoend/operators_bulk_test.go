package endtoend

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/testkit"
)

// TestOperatorsAfterAnOutage drives bulks and pauses over HTTP, as the API's own role, which the policies hold.
func TestOperatorsAfterAnOutage(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t))
	s.startAPI()
	token := s.operate(0, "operator", "create", "ann")
	ask := func(method, path, body string, words ...string) answer {
		t.Helper()
		a := s.admin(token, method, path, body)
		s.want(a, 200, words...)
		return a
	}
	const workspace = "/admin/v1/workspaces/test"
	var ids []string
	for i := range 3 {
		ids = append(ids, s.add(fmt.Sprint("k", i), conversation(fmt.Sprint("u", i), "I like tea.")))
	}
	since := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	var preview struct {
		Count, Credits int
		Until          string
	}
	choice := func(act, more string) string { return fmt.Sprintf(`{"act":%q,"since":%q%s}`, act, since, more) }
	ask("POST", workspace+"/bulks/preview", choice("cancel", ""), `"more":false`).into(t, &preview)
	if preview.Count != 3 || preview.Credits != 6 {
		t.Fatalf("%+v", preview)
	}
	bulk := workspace + "/bulks/" + uuid.NewString()
	whole := choice("cancel", fmt.Sprintf(`,"until":%q`, preview.Until))
	ask("PUT", bulk, whole, `"done":3`, `"refused":{}`, `"next_cursor":null`)
	ask("PUT", bulk, whole, `"done":0`, `"next_cursor":null`)
	for _, id := range ids {
		if e := s.event(id); e.Status != "FAILED" {
			t.Fatalf("%+v", e)
		}
	}
	retry := choice("retry", `,"code":"CANCELLED"`)
	ask("POST", workspace+"/bulks/preview", retry).into(t, &preview)
	again := choice("retry", fmt.Sprintf(`,"code":"CANCELLED","user_id":"u1","until":%q`, preview.Until))
	ask("PUT", bulk, again, `"done":1`)
	ask("PUT", bulk, again, `"done":0`)
	for name, wrong := range map[string]string{
		bulk: choice("retry", ""), bulk + "x": whole, workspace + "/bulks/" + uuid.NewString(): choice("erase", `,"until":"2026-01-01T00:00:00Z"`),
	} {
		if a := s.admin(token, "PUT", name, wrong); a.status != 422 && a.status != 400 {
			t.Errorf("%s %s: %d %s", name, wrong, a.status, a.body)
		}
	}
	if n := one[int64](s, `SELECT count(*) FROM operator_acts WHERE act IN ('event.cancel', 'event.retry') AND actor = 'operator:ann' AND details ? 'bulk'`); n != 4 {
		t.Fatalf("%d acts name their bulk", n)
	}

	ask("PUT", workspace+"/pause", "", `"status":"paused"`)
	ask("PUT", "/admin/v1/providers/one%2Ftwo/pause", `{"reason":"maintenance"}`, `"provider":"one/two"`, `"paused":true`)
	ask("GET", "/admin/v1/health", "", `"reason":"maintenance"`, `"until":null`)
	s.add("accepted", conversation("v", "I like rain."))
	ask("DELETE", workspace+"/pause", "", `"status":"active"`)
	ask("DELETE", "/admin/v1/providers/one%2Ftwo/pause", "", `"paused":false`)
	ask("GET", "/admin/v1/health", "", `"pauses":[]`)
}
