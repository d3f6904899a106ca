package group

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/holdfast-memory/holdfast/internal/testkit/property"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func limits() Limits { return Limits{Size: 8, Runners: 1, Places: 100, Wait: time.Minute} }

// bench is a queue whose groups are seen, and wait until they are let go.
type bench struct {
	*Queue[int, int, int]
	groups  chan []int
	proceed chan struct{}
}

func newBench(t *testing.T, l Limits) *bench {
	t.Helper()
	b := &bench{groups: make(chan []int, 100), proceed: make(chan struct{})}
	b.Queue = New(l, func(i int) int { return i % 1000 }, func(_ context.Context, items []int) []int {
		b.groups <- slices.Clone(items)
		<-b.proceed
		answers := make([]int, len(items))
		for i, item := range items {
			if item < 0 {
				panic("negative")
			}
			answers[i] = -item
		}
		return answers
	})
	return b
}

type said struct {
	answer int
	err    error
	thrown any
}

// do hands the item in from a goroutine of its own, and returns when it waits or runs.
func (b *bench) do(ctx context.Context, item int) <-chan said {
	c := make(chan said, 1)
	go func() {
		var s said
		defer func() {
			s.thrown = recover()
			c <- s
		}()
		s.answer, s.err = b.Do(ctx, item)
	}()
	synctest.Wait()
	return c
}

func TestQueue(t *testing.T) {
	t.Parallel()
	t.Run("ALoneCallerWaitsForNobody", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, limits())
			close(b.proceed)
			if got, err := b.Do(t.Context(), 7); got != -7 || err != nil {
				t.Fatalf("%d, %v", got, err)
			}
		})
	})
	t.Run("EachGroupIsToldWithItsSizeAndItsFirstOnesWait", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, limits())
			type told struct {
				items  int
				waited time.Duration
			}
			seen := make(chan told, 100)
			b.Watch(func(items int, waited time.Duration) { seen <- told{items, waited} })
			var answers []<-chan said
			answers = append(answers, b.do(t.Context(), 1), b.do(t.Context(), 2))
			<-time.After(3 * time.Second)
			answers = append(answers, b.do(t.Context(), 3))
			<-time.After(time.Second)
			close(b.proceed)
			for _, c := range answers {
				<-c
			}
			if first, second := <-seen, <-seen; first != (told{1, 0}) || second != (told{2, 4 * time.Second}) {
				t.Errorf("told %v, then %v", first, second)
			}
		})
	})
	t.Run("WhoComesMeanwhileSharesTheNextGroup", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, limits())
			var answers []<-chan said
			for i := 1; i <= 12; i++ {
				answers = append(answers, b.do(t.Context(), i))
			}
			close(b.proceed)
			for i, c := range answers {
				if s := <-c; s.answer != -(i+1) || s.err != nil {
					t.Errorf("item %d: %+v", i+1, s)
				}
			}
			want := [][]int{{1}, {2, 3, 4, 5, 6, 7, 8, 9}, {10, 11, 12}}
			for _, w := range want {
				if got := <-b.groups; !slices.Equal(got, w) {
					t.Errorf("group %v, not %v", got, w)
				}
			}
		})
	})
	t.Run("SoFewDoNotWaitForEachOther", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			l := limits()
			l.Apart = 3
			b := newBench(t, l)
			for i := range 6 {
				b.do(t.Context(), i)
			}
			for i := range 3 {
				if got := <-b.groups; !slices.Equal(got, []int{i}) {
					t.Errorf("group %v", got)
				}
			}
			if len(b.groups) != 0 {
				t.Errorf("%d more groups, though there are many by now", len(b.groups))
			}
			for n := range 3 { // whoever is done first doesn't take the crowd: it would be taken apart
				if len(b.groups) != 0 {
					t.Errorf("a group after %d are done", n)
				}
				b.proceed <- struct{}{}
				synctest.Wait()
			}
			if got := <-b.groups; !slices.Equal(got, []int{3, 4, 5}) {
				t.Errorf("group %v", got)
			}
			close(b.proceed)
			synctest.Wait()
			b.do(t.Context(), 7)
			if got := <-b.groups; !slices.Equal(got, []int{7}) {
				t.Errorf("group %v", got)
			}
		})
	})
	t.Run("TheSameKeyWaitsForTheAnswerBeforeIt", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			l := limits()
			l.Runners = 2
			b := newBench(t, l)
			first := b.do(t.Context(), 1)
			second, other := b.do(t.Context(), 1001), b.do(t.Context(), 2)
			if got := [][]int{<-b.groups, <-b.groups}; !slices.Equal(got[0], []int{1}) || !slices.Equal(got[1], []int{2}) {
				t.Fatalf("under way: %v", got)
			}
			select {
			case got := <-b.groups:
				t.Fatalf("%v runs beside its key", got)
			default:
			}
			close(b.proceed)
			for _, c := range []<-chan said{first, second, other} {
				if s := <-c; s.err != nil {
					t.Error(s.err)
				}
			}
			if got := <-b.groups; !slices.Equal(got, []int{1001}) {
				t.Errorf("then %v", got)
			}
		})
	})
	t.Run("WhoLeavesWhileWaitingIsNeverRun", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, limits())
			first := b.do(t.Context(), 1)
			ctx, cancel := context.WithCancel(t.Context())
			gone, stays := b.do(ctx, 2), b.do(t.Context(), 3)
			cancel()
			if s := <-gone; !errors.Is(s.err, context.Canceled) {
				t.Fatalf("%+v", s)
			}
			close(b.proceed)
			<-first
			if s := <-stays; s.answer != -3 {
				t.Errorf("%+v", s)
			}
			<-b.groups
			if got := <-b.groups; !slices.Equal(got, []int{3}) {
				t.Errorf("ran %v", got)
			}
		})
	})
	t.Run("WhoIsTakenHearsTheAnswerWhateverTheContextSays", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, limits())
			ctx, cancel := context.WithCancel(t.Context())
			c := b.do(ctx, 1)
			cancel()
			synctest.Wait()
			close(b.proceed)
			if s := <-c; s.answer != -1 || s.err != nil {
				t.Fatalf("%+v", s)
			}
		})
	})
	t.Run("BeyondItsPlacesItRefuses", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			l := limits()
			l.Places = 2
			b := newBench(t, l)
			running := b.do(t.Context(), 1)
			waiting := []<-chan said{b.do(t.Context(), 2), b.do(t.Context(), 3)}
			if s := <-b.do(t.Context(), 4); !errors.Is(s.err, ErrFull) {
				t.Fatalf("%+v", s)
			}
			close(b.proceed)
			for _, c := range append(waiting, running) {
				if s := <-c; s.err != nil {
					t.Error(s.err)
				}
			}
		})
	})
	t.Run("NobodyWaitsWithoutEnd", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			l := limits()
			l.Wait = time.Second
			b := newBench(t, l)
			running := b.do(t.Context(), 1)
			began := time.Now()
			if s := <-b.do(t.Context(), 2); !errors.Is(s.err, ErrLate) || time.Since(began) != time.Second {
				t.Fatalf("%+v after %s", s, time.Since(began))
			}
			close(b.proceed)
			if s := <-running; s.answer != -1 { // it was taken: the bound is of waiting, not of the work
				t.Errorf("%+v", s)
			}
		})
	})
	t.Run("APanicReachesItsGroupAndNobodyElse", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, limits())
			before := b.do(t.Context(), 1)
			bad, beside := b.do(t.Context(), -2), b.do(t.Context(), 3)
			close(b.proceed)
			if s := <-before; s.answer != -1 {
				t.Errorf("before: %+v", s)
			}
			for _, c := range []<-chan said{bad, beside} {
				if s := <-c; s.thrown != "negative" {
					t.Errorf("of the group: %+v", s)
				}
			}
			if s := <-b.do(t.Context(), 4); s.answer != -4 {
				t.Errorf("after: %+v", s)
			}
		})
	})
	t.Run("LimitsMustBePositive", func(t *testing.T) {
		t.Parallel()
		run := func(context.Context, []int) []int { return nil }
		for _, l := range []Limits{{}, {1, 1, 0, 1, 0}, {0, 1, 0, 1, 1}, {1, 0, 0, 1, 1}, {1, 1, 0, 0, 1}, {1, 1, -1, 1, 1}} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%+v is taken", l)
					}
				}()
				New(l, func(i int) int { return i }, run)
			}()
		}
	})
}

// Whatever mix of keys, sizes and callers that give up: each item is run once or not at all as Do says, gets its own
// answer, and never meets its key.
func TestEveryItemHasItsOwnAnswer(t *testing.T) {
	t.Parallel()
	property.Check(t, func(r *rapid.T) {
		l := Limits{
			Size: rapid.IntRange(1, 9).Draw(r, "size"), Runners: rapid.IntRange(1, 3).Draw(r, "runners"),
			Places: rapid.IntRange(1, 40).Draw(r, "places"), Apart: rapid.IntRange(0, 5).Draw(r, "apart"), Wait: time.Duration(rapid.IntRange(1, 50).Draw(r, "wait")),
		}
		keys := rapid.IntRange(1, 10).Draw(r, "keys")
		callers := rapid.IntRange(1, 40).Draw(r, "callers")
		ran := make([]atomic.Int32, callers)
		var mu sync.Mutex
		under := map[int]int{}
		var broken []string
		q := New(l, func(i int) int { return i % keys }, func(_ context.Context, items []int) []string {
			mu.Lock()
			if len(items) > l.Size {
				broken = append(broken, fmt.Sprintf("%d items", len(items)))
			}
			for _, i := range items {
				if under[i%keys]++; under[i%keys] > 1 {
					broken = append(broken, fmt.Sprintf("key %d twice", i%keys))
				}
			}
			mu.Unlock()
			answers := make([]string, len(items))
			for n, i := range items {
				ran[i].Add(1)
				answers[n] = fmt.Sprint(i)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, i := range items {
				under[i%keys]--
			}
			return answers
		})
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				answer, err := q.Do(t.Context(), i)
				mu.Lock()
				defer mu.Unlock()
				switch n := ran[i].Load(); {
				case err == nil && (n != 1 || answer != fmt.Sprint(i)):
					broken = append(broken, fmt.Sprintf("item %d ran %d times, answered %q", i, n, answer))
				case err != nil && n != 0:
					broken = append(broken, fmt.Sprintf("item %d ran and was refused: %v", i, err))
				}
			})
		}
		all.Wait()
		for i := range callers {
			if n := ran[i].Load(); n > 1 {
				broken = append(broken, fmt.Sprintf("item %d ran %d times", i, n))
			}
		}
		if len(broken) > 0 {
			r.Fatalf("%v", broken)
		}
	})
}
