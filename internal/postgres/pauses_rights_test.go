package postgres

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// TestProviderActs holds that the API, held by the policies, records what an operator does to providers, and can write no
// other act that is about no workspace.
func TestProviderActs(t *testing.T) {
	t.Parallel()
	w := newBeltWorld(t)
	db, err := Open(t.Context(), Config{URL: w.api.Config().ConnString()})
	require.NoError(t, err)
	t.Cleanup(db.Close)
	require.NoError(t, db.PauseProvider(t.Context(), "stub", "why"))
	require.NoError(t, db.ResumeProvider(t.Context(), "stub"))
	require.ElementsMatch(t, []string{"provider.pause", "provider.resume"}, w.names(`SELECT act FROM operator_acts WHERE subject = 'stub'`))
	for _, c := range []act{{uuid.Nil, "operator.create", "stub", nil}, {strangerID, "provider.pause", "stub", nil}} {
		err := db.alone(t.Context(), everyone, "forge", insertActSQL, c.args(t.Context(), nil), noRows)
		require.Equal(t, "42501", stateOf(err), "%s: %v", c.name, err)
	}
}
