package endtoend

import (
	"testing"

	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

// TestSilentDatabase lets a worker's connections to the database fall silent, with nothing that says so: no call hangs,
// the worker gives its task up by itself, another one does it, and the first works again when it is answered.
func TestSilentDatabase(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t))
	s.startAPI()
	proxy := testkit.NewTCPProxy(t, s.url)
	hold := s.stub.Hold(stubmodel.At(stubmodel.Chat))
	cut := s.startWorker("HOLDFAST_DATABASE_URL=" + proxy.URL())
	id := s.add("k", conversation("u", "FACT: one"))
	<-hold.Arrived()
	proxy.Blackhole(true)
	cut.WaitForOutput(`"end":"lease_lost"`, patience)
	hold.Release()
	heir := s.startWorker()
	s.succeeded(id)
	heir.Kill()
	proxy.Blackhole(false)
	s.succeeded(s.add("k2", conversation("u2", "FACT: two")))
	if got := s.texts("u"); got != "one" {
		t.Errorf("records %q", got)
	}
	s.sound(4)
}
