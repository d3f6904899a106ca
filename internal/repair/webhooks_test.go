package repair_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/repair"
)

// backlogged has so many rounds of deliveries to make, or always the same error.
type backlogged struct {
	rounds int
	calls  int
	err    error
}

func (b *backlogged) Dispatch(context.Context) (int, bool, error) {
	b.calls++
	if b.err != nil {
		return 0, true, b.err
	}
	if b.rounds == 0 {
		return 0, false, nil
	}
	b.rounds--
	return 3, b.rounds > 0, nil
}

func TestWebhooks(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		store *backlogged
		calls int
		want  repair.Result
	}{
		"MakesWhatThereIs":    {&backlogged{rounds: 4}, 4, repair.Result{Pass: repair.PassWebhooks, Found: 12, Fixed: 12}},
		"LeavesRestToTheNext": {&backlogged{rounds: 1000}, 20, repair.Result{Pass: repair.PassWebhooks, Found: 60, Fixed: 60}},
		"AsksNoMoreOnAnError": {&backlogged{err: broken}, 1, repair.Result{Pass: repair.PassWebhooks, Failed: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			r, err := repair.New(repair.Deps{
				Leases: w.db, Hints: w.db, Retention: w.db, Books: w.db, Webhooks: c.store, Publisher: w.post, Notifier: w.post,
			}, repair.DefaultConfig())
			require.NoError(t, err)
			report, err := r.Once(t.Context())
			require.Equal(t, c.store.err != nil, errors.Is(err, broken))
			require.Equal(t, c.calls, c.store.calls)
			require.Contains(t, report.Results, c.want)
		})
	}
}
