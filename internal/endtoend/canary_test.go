package endtoend

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

// everywhereSQL looks for a text in every column of every table.
const everywhereSQL = `
SELECT coalesce(string_agg(t.table_name, ', '), '')
  FROM information_schema.tables t
 WHERE t.table_schema = 'public' AND t.table_type = 'BASE TABLE'
   AND (xpath('/row/c/text()', query_to_xml(format(
         'SELECT count(*) AS c FROM %I x WHERE x::text LIKE %L OR x::text LIKE %L', t.table_name,
         '%' || $1 || '%', '%' || encode(convert_to($1, 'UTF8'), 'hex') || '%'), false, true, '')))[1]::text <> '0'`

// TestNothingOfTheInputStays plants a canary where nothing extracts it.
func TestNothingOfTheInputStays(t *testing.T) {
	t.Parallel()
	const canary = "xylophone-canary-4711"
	pg := testkit.PrivatePostgres(t, false)
	if err := testkit.Migrate(t.Context(), pg.URL()); err != nil {
		t.Fatal(err)
	}
	s := newSystem(t, pg.URL(), "HOLDFAST_LOG_LEVEL=debug", "HOLDFAST_OUTPUT_RETRIES=0")
	api := s.startAPI()
	hold := s.stub.Hold(stubmodel.With(canary))
	worker := s.startWorker()
	body := conversation("u", "FACT: kept", "small talk with a "+canary)
	body["instructions"] = "be brief, " + canary
	body["metadata"] = map[string]any{"source": "test"}
	id := s.add("k", body)
	<-hold.Arrived()
	if found := one[string](s, everywhereSQL, canary); found != "tasks" {
		t.Errorf("while it runs the canary is in %q, want tasks alone", found)
	}
	hold.Release()
	e := s.succeeded(id)
	if len(e.Results) != 1 || *e.Results[0].Memory != "kept" || e.Usage.Settled != 2 {
		t.Errorf("the event does not explain itself: %+v", e)
	}
	if found := one[string](s, everywhereSQL, canary); found != "" {
		t.Errorf("after success the canary is in %s", found)
	}

	s.stub.Always(stubmodel.With("nonsense"), stubmodel.Reply(stubmodel.Content("nonsense "+canary)))
	failing := s.add("f", conversation("u", "nonsense "+canary))
	if e := s.ended(failing); e.Status != "FAILED" {
		t.Fatalf("event %+v", e)
	}
	if found := one[string](s, everywhereSQL, canary); found != "tasks" {
		t.Errorf("after failure the canary is in %q, want tasks alone", found)
	}
	s.exec(`UPDATE tasks SET completed_at = completed_at - interval '8 days' WHERE status = 'failed'`)
	s.repairOnce()
	if found := one[string](s, everywhereSQL, canary); found != "" {
		t.Errorf("after the retry window the canary is in %s", found)
	}
	if a := s.do("POST", "/v1/events/"+failing+"/retry", "", map[string]any{"generation": 1}); a.status != 410 {
		t.Errorf("retry after the window: %d %s", a.status, a.body)
	}
	if a := s.do("POST", "/v1/memories", "bad", map[string]any{"user_id": "u", "messages": "x", canary: canary}); a.status != 400 || strings.Contains(string(a.body), canary) {
		t.Errorf("a refusal quotes the caller: %d %s", a.status, a.body)
	}
	// An error whose statement, parameters and detail hold the canary.
	for range 2 {
		_, _ = s.sql.Exec(t.Context(), `INSERT INTO provider_pauses (provider, paused_until, class, updated_at) VALUES ($1, now(), 'x', now())`, canary)
	}

	worker.Signal(syscall.SIGTERM)
	worker.Wait(patience)
	api.Signal(syscall.SIGTERM)
	api.Wait(patience)
	log, err := os.ReadFile(pg.LogPath())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"the API's log": api.Stderr() + api.Stdout(), "the worker's log": worker.Stderr() + worker.Stdout(),
		"PostgreSQL's log": string(log),
	} {
		if strings.Contains(text, canary) {
			t.Errorf("the canary is in %s", name)
		}
	}
}

func (s *system) exec(sql string, args ...any) {
	s.t.Helper()
	if _, err := s.sql.Exec(s.t.Context(), sql, args...); err != nil {
		s.t.Fatal(err)
	}
}
