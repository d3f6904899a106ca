package endtoend

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

// TestOrder sends ten commands of one user one after the other, with random failures and four workers: their records
// appear in the order in which they were said.
func TestOrder(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t), "HOLDFAST_RETRY_BASE=20ms")
	s.startAPI()
	random := rand.New(rand.NewPCG(4, 7)) // #nosec G404 -- a seed that can be repeated
	var ids []string
	for i := range 10 {
		line := fmt.Sprintf("step %02d", i)
		for range random.IntN(3) {
			s.stub.Queue(stubmodel.With(line), stubmodel.Reply(stubmodel.Refuse(http.StatusServiceUnavailable, "down")))
		}
		ids = append(ids, s.add(keyOf(i), conversation("u", "FACT: "+line)))
	}
	for range 4 {
		s.startWorker()
	}
	s.allSucceeded(ids)
	if got := one[string](s, `SELECT string_agg(text, ',' ORDER BY created_at) FROM memories`); got != "step 00,step 01,step 02,step 03,step 04,step 05,step 06,step 07,step 08,step 09" {
		t.Errorf("records in the order %s", got)
	}
	s.sound(20)
}

// TestUsersDoNotWaitForEachOther holds one user's first command: the user's second waits, another user's doesn't, and
// one that asked for no order doesn't either.
func TestUsersDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t))
	s.startAPI()
	s.startWorker()
	hold := s.stub.Hold(stubmodel.With("first"))
	first := s.add("k1", conversation("a", "FACT: first"))
	<-hold.Arrived()
	second := s.add("k2", conversation("a", "FACT: second"))
	free := conversation("a", "FACT: free")
	free["ordered"] = false
	s.succeeded(s.add("k3", conversation("b", "FACT: other")))
	s.succeeded(s.add("k4", free))
	if e := s.event(second); e.Status != "PENDING" || e.Attempts != 0 {
		t.Errorf("the second command went ahead: %+v", e)
	}
	hold.Release()
	s.allSucceeded([]string{first, second})
	s.sound(8)
}

// TestEmbedderOutageStopsNoLane takes the embedder away: commands of one user still commit one after the other.
func TestEmbedderOutageStopsNoLane(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t))
	s.startAPI()
	s.startWorker()
	down := stubmodel.At(stubmodel.Embeddings)
	s.stub.Always(down, stubmodel.Reply(stubmodel.Refuse(http.StatusServiceUnavailable, "down")))
	var ids []string
	for i := range 4 {
		ids = append(ids, s.add(keyOf(i), conversation("u", "FACT: "+keyOf(i))))
	}
	s.until("every command has committed", func() bool {
		return one[int64](s, `SELECT count(*) FROM memories`) == 4
	})
	s.stub.Always(down, nil)
	s.allSucceeded(ids)
	s.sound(8)
}

func keyOf(i int) string { return fmt.Sprintf("key-%d", i) }
