package endtoend

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/testkit"
)

// TestMasterKeyLost loses the only master key while commands wait, gives it up in a process that is killed in the middle,
// and goes on with another key.
func TestMasterKeyLost(t *testing.T) {
	t.Parallel()
	s := encrypted(t)
	first := s.startAPI()
	ids := []string{
		s.add("a", conversation("u", "FACT: one")), s.add("b", conversation("u", "FACT: two")), s.add("c", conversation("v", "FACT: three")),
	}
	s.operate(2, "encryption", "abandon", "a") // it is configured
	first.Signal(syscall.SIGTERM)
	if code := first.Wait(patience); code != 0 {
		t.Fatalf("the API ended with %d", code)
	}
	s.env = append(s.env, encryptedWith("b"))
	for _, name := range []string{"api", "worker"} {
		if code := s.start(name, "HOLDFAST_LISTEN=127.0.0.1:0").Wait(patience); code == 0 {
			t.Errorf("%s started without a key that is needed", name)
		}
	}
	failed := func() int { return one[int](s, `SELECT count(*) FROM tasks WHERE status = 'failed'`) }
	if preview := s.operate(2, "encryption", "abandon", "a"); !strings.Contains(preview, "3 waiting events") || failed() != 0 {
		t.Errorf("the preview says %s and failed %d", preview, failed())
	}
	s.operate(1, "encryption", "abandon", "nobody's", "--yes")
	doomed := testkit.StartProcess(t, testkit.ProcessConfig{
		Path: filepath.Join(s.bin, "holdfast"), Args: []string{"encryption", "abandon", "a", "--yes"},
		Env: append(append([]string{}, s.env...), point("abandon.committed", "kill")),
	})
	announced(doomed, "abandon.committed")
	if code := doomed.Wait(patience); code == 0 || failed() != 1 {
		t.Fatalf("the first run ended with %d and failed %d", code, failed())
	}
	var done struct {
		Failed   int `json:"failed"`
		DataKeys int `json:"data_keys"`
		Left     struct {
			DataKeys int `json:"data_keys"`
		} `json:"left"`
	}
	if err := json.Unmarshal([]byte(s.operate(0, "--json", "encryption", "abandon", "a", "--yes")), &done); err != nil {
		t.Fatal(err)
	}
	if done.Failed != 2 || done.DataKeys == 0 || done.Left.DataKeys != 0 {
		t.Errorf("the second run says %+v", done)
	}
	s.operate(0, "encryption", "status")
	s.startAPI()
	s.startWorker()
	for _, id := range ids {
		if e := s.ended(id); e.Status != "FAILED" || e.Error == nil || e.Error.Code != "PAYLOAD_UNREADABLE" || e.Usage.Released != 2 {
			t.Errorf("event %s: %+v", id, e)
		}
	}
	s.succeeded(s.add("d", conversation("u", "FACT: four"))) // of the same lane
	if got := s.texts("u"); got != "four" {
		t.Errorf("records %q", got)
	}
	if acts := s.operate(0, "acts", "list", "--act", "encryption.abandon"); strings.Count(acts, "encryption.abandon") < 2 {
		t.Errorf("the log of acts has %s", acts)
	}
	s.operate(0, "audit")
	s.sound(2)
}
