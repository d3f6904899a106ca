package endtoend

import (
	"strings"

	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

func brokenBooksCases() map[string]func(*system) {
	return map[string]func(*system){
		"FailureOfOursIsNotRemembered": failureNotRemembered,
		"RefundNeedsItsOutcome":        refundNeedsOutcome,
	}
}

func driftCases() map[string]func(*system) {
	return map[string]func(*system){"DriftIsFound": driftIsFound}
}

// refundNeedsOutcome lets the database refuse the failure of a task: as long as it isn't written, no credit moves.
func refundNeedsOutcome(s *system) {
	s.exec(`ALTER TABLE tasks ADD CONSTRAINT outcome CHECK (status <> 'failed' OR user_id <> 'refund-outcome') NOT VALID`)
	s.stub.Always(withMarker("refund-outcome"), stubmodel.Reply(stubmodel.Content("broken")))
	id := s.add("refund-outcome", conversation("refund-outcome", "refund-outcome"))
	s.until("somebody has tried to fail it", func() bool { return s.event(id).Attempts > 1 })
	s.movedAs(id, "1 hold 2")
	s.exec(`ALTER TABLE tasks DROP CONSTRAINT outcome`)
	if e := s.ended(id); e.Status != "FAILED" {
		s.t.Fatalf("event %+v", e)
	}
	s.movedAs(id, "1 hold 2, 1 release 2")
}

// driftIsFound moves a balance past its journal: repair says so and fails until it is put right.
func driftIsFound(s *system) {
	other := s.purse(5)
	repair := func() (int, string) {
		p := s.startRepair()
		return p.Wait(patience), p.Stdout() + p.Stderr()
	}
	s.exec(`UPDATE credit_accounts SET available = available + 1 WHERE workspace_id = $1`, other.ws)
	if code, said := repair(); code != 1 || !strings.Contains(said, other.ws.String()) {
		s.t.Fatalf("ended with %d: %s", code, said)
	}
	s.exec(`UPDATE credit_accounts SET available = available - 1 WHERE workspace_id = $1`, other.ws)
	if code, said := repair(); code != 0 {
		s.t.Fatalf("ended with %d: %s", code, said)
	}
}

func (s *system) startRepair() *testkit.Process {
	s.t.Helper()
	return testkit.StartProcess(s.t, testkit.ProcessConfig{
		Path: s.bin + "/repair", Args: []string{"--once"}, Env: s.environment("repair", "HOLDFAST_HINT_AGE=1ms"),
	})
}
