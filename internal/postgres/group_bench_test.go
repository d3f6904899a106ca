package postgres_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/worker"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// BenchmarkGroups accepts commands and commits their plans, in groups and one by one by turns, on a server with fsync on,
// and tells the median of groups ÷ singles of each stage for so many callers. -benchtime=5x is five rounds.
func BenchmarkGroups(b *testing.B) {
	const each = 1_000
	pg := testkit.PrivatePostgres(b, true)
	w := newWorldOn(b, pg.URL())
	dbs := make([]*postgres.DB, 2)
	for i, grouped := range []bool{false, true} {
		db, err := postgres.Open(b.Context(), postgres.Config{URL: pg.URL(), GroupCommit: grouped})
		require.NoError(b, err)
		b.Cleanup(db.Close)
		dbs[i] = db
	}
	many := make([]access.Caller, 1_000)
	for i := range many {
		many[i] = w.workspace(1 << 40)
	}
	measure := func(b *testing.B, callers int, workspaces []access.Caller) {
		var ratios [2][]float64
		for round := 0; b.Loop(); round++ {
			var times [2][2]time.Duration
			for turn := range 2 {
				way := (round + turn) % 2
				items := make([]write.Acceptance, each)
				for i := range items {
					id := uuid.NewString()
					items[i] = acceptance(workspaces[i%len(workspaces)].Workspace.ID, id[:30], id, 2)
				}
				times[0][way] = w.timed(callers, each, func(i int) error { return dbs[way].Accept(b.Context(), items[i:i+1])[0].Refused })
				leases := make([]worker.Lease, each)
				w.timed(16, each, func(i int) error {
					c := dbs[1].Claim(b.Context(), claimant("worker"), []worker.ClaimAsk{{TaskID: items[i].TaskID, Token: uuid.New()}}, false)[0]
					leases[i] = *c.Lease
					return c.Err
				})
				times[1][way] = w.timed(callers, each, func(i int) error {
					item := worker.Commit{
						Lease: leases[i], Plan: planOf("A fact about " + leases[i].Scope.UserID + " that is of no length to speak of"),
						Complete: true, VectorModel: "m", Vectors: []model.Vector{make(model.Vector, 256)},
					}
					return dbs[way].Commit(b.Context(), []worker.Commit{item})[0].Err
				})
			}
			for stage := range ratios {
				ratios[stage] = append(ratios[stage], float64(times[stage][0])/float64(times[stage][1]))
			}
		}
		for stage, name := range []string{"accept", "commit"} {
			slices.Sort(ratios[stage])
			b.ReportMetric(ratios[stage][len(ratios[stage])/2], name+"-groups/singles")
		}
	}
	for _, callers := range []int{1, 4, 16, 64, 256} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) { measure(b, callers, many) })
	}
	b.Run("64OfOne", func(b *testing.B) { measure(b, 64, many[:1]) })
	w.books()
}

// timed does n things by so many callers and answers how long it took.
func (w *world) timed(callers, n int, do func(i int) error) time.Duration {
	w.t.Helper()
	var next atomic.Int64
	errs := make([]error, callers)
	began := time.Now()
	together(callers, func(c int) {
		for i := next.Add(1) - 1; i < int64(n) && errs[c] == nil; i = next.Add(1) - 1 {
			errs[c] = do(int(i))
		}
	})
	took := time.Since(began)
	for _, err := range errs {
		require.NoError(w.t, err)
	}
	return took
}
