package admin

import (
	"net/http"
	"time"
)

// health is what an operator looks at first. Counts of open work are of the first events.
type health struct {
	Status           string   `json:"status"`
	Reasons          []string `json:"reasons"`
	OldestDueSeconds float64  `json:"oldest_due_seconds"`
	ExpiredLeases    int      `json:"expired_leases"`
	RecentFailures   int      `json:"recent_failures"`
	SkippedVectors   int      `json:"skipped_vectors"`
	Work             work     `json:"work"`
	Pauses           []pause  `json:"pauses"`
}

type work struct {
	Waiting    int  `json:"waiting"`
	Due        int  `json:"due"`
	Deliveries int  `json:"deliveries"`
	Running    int  `json:"running"`
	Looked     int  `json:"looked_at"`
	More       bool `json:"more"`
}

type pause struct {
	Provider  string     `json:"provider"`
	Class     string     `json:"class"`
	Until     *time.Time `json:"until"`
	StoppedAt *time.Time `json:"stopped_at"`
	Reason    string     `json:"reason"`
}

// readHealth answers 200 for a degraded service too: the question was answered.
func (a *api) readHealth(r *http.Request) (int, any, error) {
	verdict, err := a.deps.Health.Check(r.Context())
	if err != nil {
		return 0, nil, err
	}
	open, err := a.deps.Work.Work(r.Context())
	if err != nil {
		return 0, nil, err
	}
	facts := verdict.Facts
	shown := health{
		Status: "ok", Reasons: make([]string, len(verdict.Reasons)), OldestDueSeconds: facts.OldestDue.Seconds(),
		ExpiredLeases: facts.ExpiredLeases, RecentFailures: facts.RecentFailures, SkippedVectors: facts.SkippedVectors,
		Work:   work{open.Waiting, open.Due, open.Deliveries, open.Running, open.Looked, open.More},
		Pauses: make([]pause, len(open.Pauses)),
	}
	if verdict.Degraded() {
		shown.Status = "degraded"
	}
	for i, reason := range verdict.Reasons {
		shown.Reasons[i] = string(reason)
	}
	for i, p := range open.Pauses {
		shown.Pauses[i] = pause(p)
	}
	return http.StatusOK, shown, nil
}
