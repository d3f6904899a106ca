package worker

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/model"
)

func TestHeartbeat(t *testing.T) {
	t.Parallel()

	t.Run("ComesAtEveryThirdOfTheLease", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.extract = lasting(70 * time.Second)
			r.begin()
			m := r.hint(nil)
			r.elapse(2 * time.Minute)
			// The first one proves the lease right before the call.
			want := []time.Duration{0, 20 * time.Second, 40 * time.Second, time.Minute}
			if got := r.since(r.beats); !slices.Equal(got, want) {
				t.Errorf("heartbeats at %v, want %v", got, want)
			}
			if m.progress != len(want) || m.acks != 1 {
				t.Errorf("the message was kept alive %d times and acked %d times", m.progress, m.acks)
			}
			if len(r.commits) != 1 {
				t.Errorf("a call longer than the lease was committed %d times", len(r.commits))
			}
			r.end()
		})
	})

	for name, silent := range map[string]func(context.Context) (Beat, error){
		"RefusedHeartbeatsEndTheTaskAtFiveSixths": func(context.Context) (Beat, error) { return Beat{}, errDatabase },
		"HangingHeartbeatsEndTheTaskAtFiveSixths": func(ctx context.Context) (Beat, error) {
			<-ctx.Done()
			return Beat{}, ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, r *rig) {
				var ended time.Duration
				var cause error
				r.extract = func(ctx context.Context) (model.Extraction, error) {
					<-ctx.Done()
					ended, cause = time.Since(r.start), context.Cause(ctx)
					return model.Extraction{}, ctx.Err()
				}
				r.heartbeat = func(ctx context.Context) (Beat, error) {
					if time.Since(r.start) > 25*time.Second { // the one at 20 s is the last that is confirmed
						return silent(ctx)
					}
					return Beat{}, nil
				}
				r.begin()
				m := r.hint(nil)
				r.elapse(2 * time.Minute)
				if want := 70 * time.Second; ended != want {
					t.Errorf("the task's context ended after %s, want %s", ended, want)
				}
				if !errors.Is(cause, fault.ErrLeaseLost) {
					t.Errorf("its cause is %v", cause)
				}
				if len(r.commits)+len(r.fails)+len(r.laters) != 0 {
					t.Errorf("a lost lease wrote something: %v", r.order)
				}
				if m.acks != 0 || len(m.naks) != 1 {
					t.Errorf("the message was acked %d times and returned %v", m.acks, m.naks)
				}
				r.end()
			})
		})
	}

	t.Run("LostLeaseEndsTheTaskAtOnce", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			var ended time.Duration
			r.extract = func(ctx context.Context) (model.Extraction, error) {
				<-ctx.Done()
				ended = time.Since(r.start)
				return oneFact(), nil // an adapter that answers all the same
			}
			r.heartbeat = func(context.Context) (Beat, error) {
				if time.Since(r.start) >= 20*time.Second {
					return Beat{}, fault.ErrLeaseLost
				}
				return Beat{}, nil
			}
			r.begin()
			m := r.hint(nil)
			r.elapse(time.Minute)
			if ended != 20*time.Second {
				t.Errorf("the task's context ended after %s", ended)
			}
			if len(r.commits)+len(r.fails)+len(r.laters) != 0 || m.acks != 1 || len(r.notified) != 0 {
				t.Errorf("after the loss: %v", r.order)
			}
			r.end()
		})
	})

	// Work comes back spread over the half minute after the pause.
	t.Run("PausedProviderGivesTheLeaseBackUnspent", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.heartbeat = func(context.Context) (Beat, error) { return Beat{PausedFor: 90 * time.Second}, nil }
			r.begin()
			m := r.hint(nil)
			r.elapse(0)
			if r.extractions != 0 {
				t.Error("a paused provider was called")
			}
			if len(r.laters) != 1 || r.laters[0].Class != "" || r.laters[0].Delay != 105*time.Second || m.acks != 1 {
				t.Errorf("given back as %+v", r.laters)
			}
			r.end()
		})
	})

	t.Run("NoCallWithoutAConfirmedHeartbeat", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.heartbeat = func(context.Context) (Beat, error) {
				if time.Since(r.start) < 8*time.Second {
					return Beat{}, errDatabase
				}
				return Beat{}, nil
			}
			r.begin()
			r.hint(nil)
			r.elapse(7 * time.Second)
			if r.extractions != 0 {
				t.Error("the call was made before a heartbeat was confirmed")
			}
			r.elapse(10 * time.Second)
			if r.extractions != 1 || len(r.commits) != 1 {
				t.Errorf("afterwards: %v", r.order)
			}
			r.end()
		})
	})

	t.Run("OneThatHangsCostsNoLease", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.heartbeat = func(ctx context.Context) (Beat, error) {
				if since := time.Since(r.start); since == 20*time.Second {
					<-ctx.Done()
					return Beat{}, ctx.Err()
				}
				return Beat{}, nil
			}
			r.extract = lasting(100 * time.Second)
			r.begin()
			r.hint(nil)
			r.elapse(2 * time.Minute)
			// A sixth of the lease's time until it is given up, a twelfth until the next try.
			want := []time.Duration{0, 20, 35, 55, 75, 95}
			for i := range want {
				want[i] *= time.Second
			}
			if got := r.since(r.beats); !slices.Equal(got, want) {
				t.Errorf("heartbeats at %v, want %v", got, want)
			}
			if len(r.commits) != 1 {
				t.Errorf("it went %v", r.order)
			}
			r.end()
		})
	})

	t.Run("StopEndsTheWaitForAConfirmedOne", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.heartbeat = func(context.Context) (Beat, error) { return Beat{}, errDatabase }
			r.begin()
			r.hint(nil)
			r.elapse(time.Second)
			r.end()
			if r.extractions != 0 || len(r.laters) != 1 || r.laters[0].Class != "" {
				t.Errorf("it went %v, %+v", r.order, r.laters)
			}
		})
	})

	t.Run("HasItsOwnConnections", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			own := &ownBeats{}
			r.deps.Beats = own
			r.begin()
			r.hint(nil)
			r.elapse(0)
			if own.n != 1 || len(r.beats) != 0 {
				t.Errorf("%d heartbeats took their own way, %d the claims'", own.n, len(r.beats))
			}
			r.end()
		})
	})
}

type ownBeats struct{ n int }

func (b *ownBeats) Heartbeat(context.Context, Lease, time.Duration, string) (Beat, error) {
	b.n++
	return Beat{}, nil
}

// TestFrozenProcess holds that a process that slept past its lease notices before it writes: the clock is read,
// no timer is waited for.
func TestFrozenProcess(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		r.cfg.Log = r.cfg.Log.Output(r.logs)
		w, err := New(r.deps, r.cfg)
		if err != nil {
			t.Fatal(err)
		}
		held, k := w.keep(t.Context(), Lease{}, time.Now(), nil)
		defer k.release()
		if err := k.held(held); err != nil {
			t.Errorf("a fresh lease is not held: %v", err)
		}
		k.mu.Lock()
		k.sent = time.Now().Add(-51 * time.Second)
		k.mu.Unlock()
		if err := k.held(held); !errors.Is(err, fault.ErrLeaseLost) {
			t.Errorf("51 of 60 seconds later: %v", err)
		}
		if !errors.Is(context.Cause(held), fault.ErrLeaseLost) {
			t.Error("the context goes on")
		}
	})
}
