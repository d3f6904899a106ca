package endtoend

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/seal"
	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/testkit/canary"
	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

// masterKeys is the setting with the master keys of these names, the first one active.
func masterKeys(names ...string) string {
	entries := make([]string, len(names))
	for i, name := range names {
		raw := sha256.Sum256([]byte("master key " + name))
		entries[i] = name + ":" + base64.StdEncoding.EncodeToString(raw[:])
	}
	return strings.Join(entries, ",")
}

func encryptedWith(names ...string) string {
	return "HOLDFAST_ENCRYPTION_KEYS=" + masterKeys(names...)
}

// encrypted is a system whose processes seal payloads under the master key a.
func encrypted(t *testing.T) *system {
	t.Helper()
	return newSystem(t, testkit.NewDatabase(t), encryptedWith("a"))
}

// TestEncryptedWorkerKilled kills a worker that has read a sealed payload. One without the keys leaves the task to one
// that has them.
func TestEncryptedWorkerKilled(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"worker.after_inference", "commit.committed"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := encrypted(t)
			s.startAPI()
			doomed := s.startWorker(point(name, "kill"))
			word := canary.New()
			id := s.add("kill-"+name, conversation(name, "FACT: "+name+" one", "not a fact: "+word))
			announced(doomed, name)
			if code := doomed.Wait(patience); code == 0 {
				t.Fatal("the worker ended by itself")
			}
			task := strings.TrimPrefix(id, "evt_")
			if n := one[int](s, `SELECT count(*) FROM tasks WHERE id = $1 AND data_key IS NOT NULL AND position($2::text::bytea IN command) = 0`, task, word); n != 1 {
				t.Error("the payload is not sealed")
			}
			stranger := s.startWorker("HOLDFAST_ENCRYPTION_KEYS=")
			plain := s.start("api", "HOLDFAST_ENCRYPTION_KEYS=", "HOLDFAST_LISTEN=127.0.0.1:0")
			if code := plain.Wait(patience); code == 0 || !strings.Contains(plain.Stderr(), `master key \"a\" is not configured`) && !strings.Contains(plain.Stderr(), `master key "a" is not configured`) {
				t.Errorf("an API without the keys ended with %d: %s", code, plain.Stderr())
			}
			// The stranger moves the expired lease back to waiting, and nothing more.
			s.until("the lease of the killed worker is taken back", func() bool {
				return one[string](s, `SELECT status FROM tasks WHERE id = $1`, task) == "pending"
			})
			claims := one[int](s, `SELECT claims FROM tasks WHERE id = $1`, task)
			s.repairOnce() // hints it to the stranger
			if now := one[int](s, `SELECT claims FROM tasks WHERE id = $1`, task); now != claims {
				t.Error("a worker without the keys claimed the task")
			}
			heir := s.startWorker()
			e := s.succeeded(id)
			for _, p := range []*testkit.Process{stranger, heir} {
				p.Signal(syscall.SIGTERM)
				if code := p.Wait(patience); code != 0 {
					t.Fatalf("a worker ended with %d", code)
				}
			}
			if got := s.texts(name); got != name+" one" || len(e.Results) != 1 || e.Usage.Settled != 2 {
				t.Fatalf("records %q, event %+v", got, e)
			}
			match := stubmodel.With(word)
			match.Endpoint = stubmodel.Chat
			if n := s.stub.Count(match); n == 0 {
				t.Error("the model never saw the input")
			}
			s.sound(2)
		})
	}
}

// TestEncryptionRotated kills a rotation after its first page, goes on, and takes the old master key away.
func TestEncryptionRotated(t *testing.T) {
	t.Parallel()
	s := encrypted(t)
	s.startAPI()
	id := s.add("a", conversation("u", "FACT: tea"))
	const others = 450 // two pages and a half
	ring, err := seal.ParseRing(masterKeys("a"))
	if err != nil {
		t.Fatal(err)
	}
	for range others {
		key, workspace := uuid.Must(uuid.NewV7()), uuid.New()
		_, wrapped, err := ring.NewKey(key, workspace)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.sql.Exec(t.Context(), `INSERT INTO data_keys (id, workspace_id, day, master_key, wrapped, created_at)
VALUES ($1, $2, '2026-01-02', $3, $4, clock_timestamp())`, key, workspace, wrapped.Master, wrapped.Key); err != nil {
			t.Fatal(err)
		}
	}
	rotate := func(env ...string) *testkit.Process {
		return testkit.StartProcess(t, testkit.ProcessConfig{
			Path: filepath.Join(s.bin, "holdfast"), Args: []string{"encryption", "rotate"}, Env: append(append([]string{}, s.env...), env...),
		})
	}
	under := func(name string) int {
		return one[int](s, `SELECT count(*) FROM data_keys WHERE master_key = $1`, name)
	}
	doomed := rotate(encryptedWith("b", "a"), point("rotate.committed", "kill"))
	announced(doomed, "rotate.committed")
	if code := doomed.Wait(patience); code == 0 {
		t.Fatal("the rotation ended by itself")
	}
	if under("b") == 0 || under("a") == 0 {
		t.Fatalf("%d and %d data keys after the kill", under("a"), under("b"))
	}
	s.env = append(s.env, encryptedWith("b")) // the old key is gone too early: nothing starts
	refused := s.start("worker")
	if code := refused.Wait(patience); code == 0 {
		t.Error("a worker started without a key that is needed")
	}
	s.operate(1, "encryption", "status")
	s.env = append(s.env, encryptedWith("b", "a"))
	if p := rotate(); p.Wait(patience) != 0 || !strings.Contains(p.Stdout(), `under "b"`) {
		t.Fatalf("the second rotation says %s %s", p.Stdout(), p.Stderr())
	}
	if under("a") != 0 || under("b") != others+1 {
		t.Fatalf("%d and %d data keys after the rotation", under("a"), under("b"))
	}
	var keys []struct {
		ID       string `json:"id"`
		State    string `json:"state"`
		DataKeys int    `json:"data_keys"`
	}
	if err := json.Unmarshal([]byte(s.operate(0, "--json", "encryption", "status")), &keys); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(keys); got != fmt.Sprintf("[{b active %d} {a can go 0}]", others+1) {
		t.Errorf("status says %s", got)
	}
	s.env = append(s.env, encryptedWith("b")) // now it may go
	s.startWorker()
	s.succeeded(id)
	s.sound(2)
	if acts := s.operate(0, "acts", "list", "--act", "encryption.rotate"); !strings.Contains(acts, "encryption.rotate") {
		t.Errorf("the log of acts has %s", acts)
	}
}
