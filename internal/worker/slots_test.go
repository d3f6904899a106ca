package worker

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestSlots(t *testing.T) {
	t.Parallel()

	t.Run("AreHandedOutInOrder", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := newSlots(1)
			take(t, s, newSeat(0, false), 1)
			var order []string
			var all sync.WaitGroup
			for _, name := range []string{"first", "second", "third"} {
				all.Go(func() {
					if _, err := s.take(t.Context(), newSeat(0, false), 1); err != nil {
						t.Error(err)
					}
					order = append(order, name)
					s.give(1)
				})
				synctest.Wait()
			}
			s.give(1)
			all.Wait()
			if order[0] != "first" || order[1] != "second" || order[2] != "third" {
				t.Errorf("they went to %v", order)
			}
		})
	})

	t.Run("SpareOnesStayForOthers", func(t *testing.T) {
		t.Parallel()
		s := newSlots(8)
		if n := take(t, s, newSeat(3, false), 100); n != 5 {
			t.Errorf("got %d of 8 with 3 spare", n)
		}
		if n := take(t, s, newSeat(3, false), 100); n != 1 {
			t.Errorf("got %d, want at least one", n)
		}
		if s.free() != 2 {
			t.Errorf("%d are free", s.free())
		}
	})

	t.Run("WaitThatEndsLosesNothing", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := newSlots(1)
			take(t, s, newSeat(0, false), 1)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := s.take(ctx, newSeat(0, false), 1); err == nil {
				t.Error("a slot was handed out twice")
			}
			s.give(1)
			if s.free() != 1 || len(s.queue) != 0 {
				t.Errorf("%d free, %d waiting", s.free(), len(s.queue))
			}
		})
	})

	t.Run("ApartWaitsForTheOthersAndKeepsThemOut", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := newSlots(3)
			take(t, s, newSeat(0, false), 2)
			alone, entered := false, false
			var all sync.WaitGroup
			all.Go(func() {
				if err := s.apart(t.Context()); err != nil {
					t.Error(err)
				}
				alone = true
			})
			synctest.Wait()
			all.Go(func() {
				if _, err := s.take(t.Context(), newSeat(0, false), 1); err != nil {
					t.Error(err)
				}
				entered = true
			})
			synctest.Wait()
			if alone || entered {
				t.Errorf("alone %t, entered %t while two slots are used", alone, entered)
			}
			s.give(1)
			synctest.Wait()
			if !alone || entered {
				t.Errorf("alone %t, entered %t with one slot used", alone, entered)
			}
			s.together()
			all.Wait()
			if !entered {
				t.Error("nobody was let in afterwards")
			}
		})
	})
}

func take(t *testing.T, s *slots, who *seat, limit int) int {
	t.Helper()
	n, err := s.take(t.Context(), who, limit)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
