package wakeup_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/wakeup"
)

// TestRestarts takes the server, and with it the consumer's leader, away twenty times while somebody pulls: no pull
// stays behind that waits for ever. The poll of Postgres bounds the gap where NATS itself is away for longer.
func TestRestarts(t *testing.T) {
	t.Parallel()
	n, c := setup(t)
	watch(t, c, 50*time.Millisecond)
	con := consumer(t, c)
	const (
		times = 20
		gap   = 5 * time.Second
	)
	var slowest time.Duration
	for i := range times {
		n = testkit.RestartNATS(t, n, i%5 == 4) // every fifth time with its store gone
		back := time.Now()
		h := hint(int64(i + 1))
		publishUntilStored(t, c, h)
		require.Equal(t, []wakeup.Hint{h}, fetchUntil(t, con, wakeup.Interactive, 1))
		slowest = max(slowest, time.Since(back))
	}
	require.Less(t, slowest, gap, "after a restart no hint came for so long")
}
