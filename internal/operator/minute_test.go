package operator

import (
	"testing"
	"time"
)

func TestTimes(t *testing.T) {
	t.Parallel()
	var none Times
	if none.Quantile(.5) != 0 || none.Count() != 0 {
		t.Error("no times have a quantile")
	}
	var one, two Times
	for ms := 1; ms <= 1000; ms++ {
		at := &one
		if ms%2 == 0 {
			at = &two
		}
		at.Add(time.Duration(ms) * time.Millisecond)
	}
	var all Times
	all.Merge(one)
	all.Merge(two)
	if all.Count() != 1000 {
		t.Fatalf("%d times", all.Count())
	}
	for q, want := range map[float64]time.Duration{.5: 500 * time.Millisecond, .99: 990 * time.Millisecond, 1: time.Second} {
		got := all.Quantile(q)
		if got < want*95/100 || got > want*105/100 { // evenly spread times are interpolated well; the last class is cut at 1,024
			t.Errorf("the quantile %v is %s, want about %s", q, got, want)
		}
	}
	var long Times
	long.Add(24 * time.Hour)
	long.Add(-time.Second)
	if long.Count() != 2 || len(long) != classes || long.Quantile(.99) < 4*time.Minute {
		t.Errorf("times beyond the scale: %v, %s", long, long.Quantile(.99))
	}
}

func TestProcessMinute(t *testing.T) {
	t.Parallel()
	var sum ProcessMinute
	for range 2 {
		m := ProcessMinute{Accepted: 1, Failed: 2, ModelErrors: map[string]int64{"provider_timeout": 3}, Busy: 4}
		m.AcceptTimes.Add(time.Millisecond)
		sum.Merge(m)
	}
	if sum.Accepted != 2 || sum.Failed != 4 || sum.ModelErrors["provider_timeout"] != 6 || sum.Busy != 8 || sum.AcceptTimes.Count() != 2 {
		t.Errorf("two minutes are %+v", sum)
	}
}
