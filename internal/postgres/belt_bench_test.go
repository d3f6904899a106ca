package postgres

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/localdev"
	"github.com/holdfast-memory/holdfast/internal/testkit"
)

// BenchmarkReach reads one record by its id in three ways, by turns: without a setting, with one, and with one that holds.
func BenchmarkReach(b *testing.B) {
	url := testkit.NewDatabase(b)
	open := func(url string) *DB {
		db, err := Open(b.Context(), Config{URL: url, MaxConns: 1})
		require.NoError(b, err)
		b.Cleanup(db.Close)
		return db
	}
	owner, api := open(url), open(testkit.As(b, localdev.APILogin, url))
	ways := []struct {
		name string
		db   *DB
		r    reach
	}{{"without", owner, unbound}, {"setting", owner, of(filledID)}, {"held", api, of(filledID)}}
	took := make([]time.Duration, len(ways))
	args := pgx.NamedArgs{"id": uuid.New(), "workspace": filledID, "now": nil}
	for b.Loop() {
		for i, way := range ways {
			began := time.Now()
			require.NoError(b, way.db.read(b.Context(), way.r, "read memory", memorySQL, args, noRows))
			took[i] += time.Since(began)
		}
	}
	for i, way := range ways {
		b.ReportMetric(float64(took[i].Microseconds())/float64(b.N), way.name+"-µs/op")
		b.ReportMetric(float64(took[i])/float64(took[0]), way.name+"/without")
	}
}
