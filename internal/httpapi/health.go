package httpapi

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi/contract"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

const (
	// healthAge is how long a verdict is repeated: the route needs no key, so it must not be a way to load the
	// database.
	healthAge = time.Second
	// healthBound is how long a verdict may take; a database that is slower than that is overloaded.
	healthBound = 3 * time.Second
)

// healthCache keeps the last verdict; asking for a new one is done by one request at a time.
type healthCache struct {
	mu      sync.Mutex
	verdict recall.Verdict
	made    time.Time
}

// GetHealth answers whether the service keeps up.
func (s *Server) GetHealth(ctx context.Context, _ contract.GetHealthRequestObject) (contract.GetHealthResponseObject, error) {
	v := s.verdict(ctx)
	shown := contract.Health{
		Status: "ok", Reasons: make([]string, len(v.Reasons)),
	}
	if !slices.Contains(v.Reasons, recall.DatabaseOverload) { // otherwise nothing was measured
		shown.Checks = &contract.HealthChecks{
			OldestDueSeconds: int64(v.Facts.OldestDue.Seconds()), ExpiredLeases: v.Facts.ExpiredLeases,
			RecentFailures: v.Facts.RecentFailures, SkippedVectors: v.Facts.SkippedVectors,
			ProviderPaused: v.Facts.PausedProvider,
		}
	}
	if v.Degraded() {
		shown.Status = "degraded"
	}
	for i, reason := range v.Reasons {
		shown.Reasons[i] = string(reason)
	}
	return ok(shown), nil
}

func (s *Server) verdict(ctx context.Context) recall.Verdict {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	if !s.health.made.IsZero() && time.Since(s.health.made) < healthAge {
		return s.health.verdict
	}
	// The verdict is for everyone who asks, so it doesn't end with the request that happened to come first.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), healthBound)
	defer cancel()
	verdict, err := s.deps.Health.Check(ctx)
	if err != nil {
		logFailure(zerolog.Ctx(ctx), fault.Wrap(fault.UnavailableNow, err), err)
		if !verdict.Degraded() {
			verdict.Reasons = []recall.Reason{recall.DatabaseOverload}
		}
	}
	s.health.verdict, s.health.made = verdict, time.Now()
	return verdict
}

// GetOpenAPI answers the contract.
func (s *Server) GetOpenAPI(context.Context, contract.GetOpenAPIRequestObject) (contract.GetOpenAPIResponseObject, error) {
	return answer{status: 200, raw: s.document}, nil
}
