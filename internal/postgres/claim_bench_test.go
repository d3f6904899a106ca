package postgres_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// BenchmarkClaimGroup claims 2,000 tasks in groups and as many one by one, by turns of 200, on a server with fsync on, and
// tells the median of groups ÷ singles for so many callers. -benchtime=5x is five rounds.
func BenchmarkClaimGroup(b *testing.B) {
	const each, turns = 2_000, 20
	pg := testkit.PrivatePostgres(b, true)
	w := newWorldOn(b, pg.URL())
	w.caller = w.workspace(0)
	dbs := make([]*postgres.DB, 2)
	for i, grouped := range []bool{false, true} {
		db, err := postgres.Open(b.Context(), postgres.Config{URL: pg.URL(), GroupCommit: grouped})
		require.NoError(b, err)
		b.Cleanup(db.Close)
		dbs[i] = db
	}
	claimAll := func(db *postgres.DB, ids []uuid.UUID, callers int) time.Duration {
		var next, missed atomic.Int64
		began := time.Now()
		together(callers, func(int) {
			for n := next.Add(1) - 1; n < int64(len(ids)); n = next.Add(1) - 1 {
				ask := []worker.ClaimAsk{{TaskID: ids[n], Token: uuid.New()}}
				if c := db.Claim(b.Context(), among(worker.Steady), ask, false)[0]; c.Lease == nil {
					missed.Add(1)
				}
			}
		})
		took := time.Since(began)
		require.Zero(b, missed.Load())
		return took
	}
	for _, callers := range []int{1, 2, 4, 16, 64} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			var ratios []float64
			var took [2]time.Duration
			for round := 0; b.Loop(); round++ {
				w.exec(`TRUNCATE tasks`)
				w.backlog(w.caller.Workspace.ID, 2*each, 2*each)
				ids, err := collect[uuid.UUID](w, `SELECT id FROM tasks`)
				require.NoError(b, err)
				w.exec(`VACUUM ANALYZE tasks`)
				var times [2]time.Duration
				for turn := range turns {
					way := (round + turn) % 2
					times[way] += claimAll(dbs[way], ids[turn*2*each/turns:(turn+1)*2*each/turns], callers)
				}
				took[0], took[1] = took[0]+times[0], took[1]+times[1]
				ratios = append(ratios, float64(times[0])/float64(times[1]))
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "groups/singles")
			b.ReportMetric(float64(took[0].Microseconds())/float64(b.N*each), "single-µs/claim")
			b.ReportMetric(float64(took[1].Microseconds())/float64(b.N*each), "group-µs/claim")
		})
	}
}
