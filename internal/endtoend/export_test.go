package endtoend

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/testkit"
)

// holdfast runs the command to its end and returns what it printed.
func (s *system) holdfast(want int, args ...string) string {
	s.t.Helper()
	p := testkit.StartProcess(s.t, testkit.ProcessConfig{
		Path: filepath.Join(s.bin, "holdfast"), Args: args, Env: append(s.env, "HOLDFAST_API="+s.api, "HOLDFAST_API_KEY="+s.key),
	})
	if code := p.Wait(patience); code != want {
		s.t.Fatalf("holdfast %s ended with %d, not %d: %s", args[0], code, want, p.Stderr())
	}
	return p.Stdout()
}

func (s *system) sendSnapshot(key string, snapshot []byte) answer {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.api+"/v1/imports", bytes.NewReader(snapshot))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+s.key)
	request.Header.Set("Content-Type", "application/x-ndjson")
	request.Header.Set("Idempotency-Key", key)
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

// TestSnapshotKilled moves a workspace to another database, with the workers of both killed after a piece, and finds
// what was there under its ids.
func TestSnapshotKilled(t *testing.T) {
	t.Parallel()
	from, to := newSystem(t, testkit.NewDatabase(t)), newSystem(t, testkit.NewDatabase(t))
	from.startAPI()
	to.startAPI()
	first := from.startWorker()
	var ids []string
	for batch := range 5 {
		texts := make([]string, 100)
		for i := range texts {
			texts[i] = fmt.Sprintf("fact %d of %d", i, batch)
		}
		ids = append(ids, from.remember("u", texts...)...)
	}
	from.do("DELETE", "/v1/memories/"+ids[1], "", nil)
	first.Signal(syscall.SIGTERM)
	first.Wait(patience)

	doomed := from.startWorker(point("worker.after_piece", "kill"))
	var receipt struct {
		EventID string `json:"event_id"`
	}
	a := from.do("POST", "/v1/exports", "k", nil)
	if a.into(t, &receipt); a.status != http.StatusAccepted {
		t.Fatalf("export: %d %s", a.status, a.body)
	}
	if a = from.do("GET", "/v1/exports/"+receipt.EventID, "", nil); a.status != http.StatusNotFound {
		t.Errorf("before its end: %d", a.status)
	}
	announced(doomed, "worker.after_piece")
	doomed.Wait(patience)
	from.startWorker()
	from.succeeded(receipt.EventID)
	snapshot := from.do("GET", "/v1/exports/"+receipt.EventID, "", nil).body
	if n := bytes.Count(snapshot, []byte("\n")); n != 1+500+501+1 {
		t.Fatalf("%d lines", n)
	}

	doomed = to.startWorker(point("worker.after_piece", "kill"))
	if a = to.sendSnapshot("k", snapshot); a.status != http.StatusAccepted {
		t.Fatalf("import: %d %s", a.status, a.body)
	}
	a.into(t, &receipt)
	announced(doomed, "worker.after_piece")
	doomed.Wait(patience)
	if a = to.sendSnapshot("k2", snapshot); a.status != http.StatusConflict || !strings.Contains(string(a.body), "WORKSPACE_NOT_EMPTY") {
		t.Errorf("a second import: %d %s", a.status, a.body)
	}
	to.startWorker()
	to.succeeded(receipt.EventID)
	if got := string(to.do("GET", "/v1/memories/"+ids[0], "", nil).body); got != string(from.do("GET", "/v1/memories/"+ids[0], "", nil).body) {
		t.Errorf("memory %s", got)
	}
	if n := one[int64](to, `SELECT count(*) FROM memories m JOIN memory_vectors v ON v.memory_id = m.id JOIN memory_terms t ON t.memory_id = m.id`); n != 499 {
		t.Errorf("%d searchable records, want 499", n)
	}
	if n := one[int64](to, `SELECT count(*) FROM task_runs WHERE outcome IS NULL`) + one[int64](to, `SELECT count(*) FROM task_parts`); n != 0 {
		t.Errorf("%d open runs and parts are left", n)
	}

	file := filepath.Join(t.TempDir(), "snapshot.ndjson")
	to.holdfast(0, "export", "-o", file)
	again, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, want, _ := bytes.Cut(snapshot, []byte("\n"))
	_, got, _ := bytes.Cut(again, []byte("\n"))
	if !bytes.Equal(want, got) {
		t.Error("the copy's snapshot differs")
	}
	to.holdfast(3, "import", file)
}
