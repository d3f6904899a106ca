package testkit_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/testkit"
)

func TestBinaries(t *testing.T) {
	t.Parallel()
	dir := testkit.Binaries(t)
	for _, name := range []string{"api", "worker", "repair", "holdfast"} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.NotZero(t, info.Mode().Perm()&0o100, "%s can't be executed", name)
	}
	require.Equal(t, dir, testkit.Binaries(t))
}
