package endtoend

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-memory/holdfast/internal/credential"
	"github.com/holdfast-memory/holdfast/internal/testkit"
)

// TestLinksWithTLS runs the real processes over TLS to database and NATS, each with an nkey and rights of its own. No
// worker polls and repair hints nothing again, so that what succeeds was hinted by the API.
func TestLinksWithTLS(t *testing.T) {
	t.Parallel()
	pg := testkit.NewSecurePostgres(t, time.Hour)
	n := testkit.NewSecureNATS(t, func(s *credential.Setup) { s.ClientCertificates = true })
	s := newSystem(t, pg.Over(t, "verify-full", pg.Authority), "HOLDFAST_WORKER_POLL=0")
	as := func(user string) []string {
		certificate, key := n.Certificate(user)
		return append(n.Env(user), "HOLDFAST_NATS_CERT_FILE="+certificate, "HOLDFAST_NATS_KEY_FILE="+key)
	}
	repair := s.start("repair", append(as("repair"), "HOLDFAST_REPAIR_INTERVAL=1s", "HOLDFAST_HINT_AGE=1h")...)
	repair.WaitForOutput(`"message":"ready"`, patience)
	worker := s.startWorker(as("worker")...)
	api := s.startAPI(as("api")...)
	s.succeeded(s.add("one", conversation("u", "FACT: one")))
	s.allSucceeded(s.addMany("many", 10))
	step := func(name string, do func()) {
		t.Log(name)
		do()
	}

	step("DoctorFindsNothingToSayOfTheLinks", func() {
		s := *s
		s.env = append(append([]string{}, s.env...), as("doctor")...)
		said := s.doctor()
		for _, want := range []string{"nats certificate", "nats topology"} {
			if !strings.Contains(said, want) {
				t.Errorf("doctor does not speak of %q", want)
			}
		}
		if strings.Contains(said, "link") || !strings.Contains(said, "connected") {
			t.Errorf("doctor says %s", said)
		}
	})

	step("NewSeedsCountFromTheNextConnectionOn", func() {
		n.Setup.Renew = []string{"api", "worker", "repair"}
		n.Renew(t) // over the files that the processes read; the server goes on until the test's end
		s.until("all are connected again", func() bool {
			for _, p := range []*testkit.Process{api, worker, repair} {
				if strings.Count(p.Stderr(), "nats connected") < 2 {
					return false
				}
			}
			return true
		})
		s.succeeded(s.add("renewed", conversation("u", "FACT: renewed")))
	})

	step("NATSThatTakesNobodyCostsSpeedOnly", func() {
		other := testkit.NewSecureNATS(t, nil)
		lonely := s.startWorker(append(other.Env("worker"), "HOLDFAST_NATS_URL="+n.URL(), "HOLDFAST_WORKER_POLL=250ms")...)
		worker.Kill()
		s.succeeded(s.add("polled", conversation("u", "FACT: polled")))
		if said := lonely.Stderr(); !strings.Contains(said, "of no authority that this process trusts") {
			t.Errorf("the worker says %s", said)
		}
	})
	s.sound(26)

	for _, p := range []*testkit.Process{api, worker, repair} {
		said := p.Stdout() + p.Stderr()
		for _, never := range []string{"nats reported an error", "plain text", "BEGIN"} {
			if strings.Contains(said, never) {
				t.Errorf("a process says %q: %s", never, said)
			}
		}
		for _, user := range []string{"api", "worker", "repair"} {
			seed, err := os.ReadFile(filepath.Join(n.Setup.Dir, "users", user+".seed"))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(said, strings.TrimSpace(string(seed))) {
				t.Errorf("a process shows the seed of %s", user)
			}
		}
	}
}
