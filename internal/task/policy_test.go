package task

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-memory/holdfast/internal/testkit/property"
)

func classes() []Class {
	return []Class{
		ProviderTimeout, ProviderUnavailable, ProviderRateLimited, ProviderRejected, OutputInvalid, ExtractionRejected, InputRejected,
		PayloadUnreadable, InternalFailure, ProjectionFailed, ProjectionRejected, LeaseLost, Shutdown, Crash, Cancelled, DeliveryFailed, EndpointDisabled,
	}
}

const always = 1 << 30 // more failures than any budget

// almostOne is the largest draw of a number in [0,1), near enough.
const almostOne = 1 - 1e-9

func TestDecide(t *testing.T) {
	t.Parallel()
	p := DefaultPolicy()
	t.Run("EachClassHasItsBudget", func(t *testing.T) {
		t.Parallel()
		for class, retries := range map[Class]int{
			ProviderTimeout: 10, ProviderUnavailable: 10, ProviderRateLimited: 20, ProviderRejected: 20, OutputInvalid: 1,
			ExtractionRejected: 0, InputRejected: 0, PayloadUnreadable: 20, InternalFailure: 3, Crash: 0, Cancelled: 0, DeliveryFailed: 8, EndpointDisabled: 0,
			ProjectionFailed: always, ProjectionRejected: always, LeaseLost: always, Shutdown: always,
		} {
			if retries > 0 && p.Decide(Failure{Class: class}, retries-1, false, 0.5).Fail {
				t.Errorf("%s failed before its budget of %d", class, retries)
			}
			if retries < always && !p.Decide(Failure{Class: class}, retries, false, 0.5).Fail {
				t.Errorf("%s went on after its budget of %d", class, retries)
			}
		}
	})
	t.Run("OutputRetriesAreASetting", func(t *testing.T) {
		t.Parallel()
		p := DefaultPolicy()
		p.OutputRetries = 3
		if p.Decide(Failure{Class: OutputInvalid}, 2, false, 0).Fail || !p.Decide(Failure{Class: OutputInvalid}, 3, false, 0).Fail {
			t.Fatal("not three retries")
		}
		p.OutputRetries = 0
		if !p.Decide(Failure{Class: OutputInvalid}, 0, false, 0).Fail {
			t.Fatal("not none")
		}
	})
	t.Run("CommittedWorkNeverFails", func(t *testing.T) {
		t.Parallel()
		for _, class := range append(classes(), "unheard_of") {
			if p.Decide(Failure{Class: class}, always, true, 0.5).Fail {
				t.Errorf("%s failed a committed task", class)
			}
		}
	})
	t.Run("DelaysStayInTheirBounds", func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct {
			class     Class
			spent     int
			low, high time.Duration
		}{
			{ProviderTimeout, 0, 0, 2 * time.Second},
			{ProviderTimeout, 3, 0, 16 * time.Second},
			{ProviderUnavailable, 9, 0, 5 * time.Minute},
			{ProviderRateLimited, 0, 0, 2 * time.Second},
			{ProviderRejected, 0, 30 * time.Second, 30 * time.Second},
			{ProviderRejected, 19, 30 * time.Second, 10 * time.Minute},
			{OutputInvalid, 0, 0, 0},
			{InternalFailure, 0, 10 * time.Second, 10 * time.Second},
			{InternalFailure, 2, 10 * time.Second, 40 * time.Second},
			{ProjectionFailed, 100, 10 * time.Second, 10 * time.Minute},
			{LeaseLost, 0, 0, 0},
			{Shutdown, 0, 0, 0},
		} {
			least := p.Decide(Failure{Class: c.class}, c.spent, false, 0).Delay
			most := p.Decide(Failure{Class: c.class}, c.spent, false, almostOne).Delay
			if least != c.low || most > c.high || most < c.high-time.Millisecond {
				t.Errorf("%s after %d: %s to %s, want %s to %s", c.class, c.spent, least, most, c.low, c.high)
			}
		}
	})
	t.Run("DeliveriesAreRetriedForTwoDays", func(t *testing.T) {
		t.Parallel()
		total := time.Duration(0)
		for spent := range 8 {
			least := p.Decide(Failure{Class: DeliveryFailed}, spent, false, 0).Delay
			most := p.Decide(Failure{Class: DeliveryFailed}, spent, false, almostOne).Delay
			if least >= most || most-least > most/4 {
				t.Errorf("after %d failures %s to %s", spent, least, most)
			}
			total += (least + most) / 2
		}
		if total < 48*time.Hour || total > 56*time.Hour {
			t.Errorf("retries end after %s", total)
		}
		asked := Failure{Class: DeliveryFailed, RetryAfter: time.Hour}
		if d := p.Decide(asked, 0, false, 0); d.Delay != time.Hour || d.Pause != 0 {
			t.Errorf("the receiver's floor: %+v", d)
		}
		if d := p.Decide(asked, 7, false, 0); d.Delay != 18*time.Hour {
			t.Errorf("the receiver shortens nothing: %+v", d)
		}
		quick := p
		quick.RetryBase = 2 * time.Millisecond
		if d := quick.Decide(Failure{Class: DeliveryFailed}, 0, false, 0.5); d.Delay != 5*time.Millisecond {
			t.Errorf("a short base: %+v", d)
		}
	})
	t.Run("TheProvidersFloorHolds", func(t *testing.T) {
		t.Parallel()
		floor := 90 * time.Second
		for _, class := range []Class{ProviderRateLimited, ProviderUnavailable, ProviderRejected, ProviderTimeout} {
			for _, random := range []float64{0, 0.5, almostOne} {
				d := p.Decide(Failure{Class: class, RetryAfter: floor}, 0, false, random)
				if d.Fail || d.Delay < floor || d.Pause < floor {
					t.Errorf("%s: %+v", class, d)
				}
			}
		}
	})
	t.Run("OnlyOutagesCountInARow", func(t *testing.T) {
		t.Parallel()
		for _, class := range classes() {
			want := class == ProviderTimeout || class == ProviderUnavailable
			if got := p.Decide(Failure{Class: class}, 0, false, 0).CountOutage; got != want {
				t.Errorf("%s counts: %v", class, got)
			}
		}
	})
	t.Run("LimitsAndRejectionsPauseTheProvider", func(t *testing.T) {
		t.Parallel()
		for _, class := range classes() {
			want := class == ProviderRateLimited || class == ProviderRejected
			if got := p.Decide(Failure{Class: class}, 0, false, 0.5).Pause > 0; got != want {
				t.Errorf("%s pauses: %v", class, got)
			}
		}
		last := p.Decide(Failure{Class: ProviderRateLimited, RetryAfter: time.Minute}, 20, false, 0)
		if !last.Fail || last.Pause != time.Minute {
			t.Errorf("the failure that ends a task must pause too: %+v", last)
		}
	})
	t.Run("AnyFailureIsDecidedSoundly", func(t *testing.T) {
		t.Parallel()
		property.Check(t, soundDecision)
	})
}

func soundDecision(t *rapid.T) {
	p := DefaultPolicy()
	p.RetryBase = time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(p.RetryCap)).Draw(t, "base"))
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	f := Failure{
		Class:      rapid.SampledFrom(classes()).Draw(t, "class"),
		RetryAfter: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "floor")),
	}
	spent := rapid.OneOf(rapid.IntRange(0, 12), rapid.IntRange(0, 1<<40)).Draw(t, "spent")
	d := p.Decide(f, spent, rapid.Bool().Draw(t, "committed"), rapid.Float64Range(0, almostOne).Draw(t, "random"))
	longest := max(p.RetryCap, 10*time.Minute)
	if f.Class == DeliveryFailed {
		longest = 22 * time.Hour // the last of its schedule and a tenth
	}
	switch {
	case d.Fail && d.Delay != 0:
		t.Fatalf("a failed task waits %s", d.Delay)
	case d.Delay < 0 || d.Pause < 0:
		t.Fatalf("negative times: %+v", d)
	case !d.Fail && d.Delay < f.RetryAfter:
		t.Fatalf("%s is below the floor of %s", d.Delay, f.RetryAfter)
	case d.Delay > f.RetryAfter+longest:
		t.Fatalf("%s is beyond every cap", d.Delay)
	}
}

func TestOutagePause(t *testing.T) {
	t.Parallel()
	p := DefaultPolicy()
	t.Run("BeginsAtTheThreshold", func(t *testing.T) {
		t.Parallel()
		if got := p.OutagePause(p.PauseAfter - 1); got != 0 {
			t.Fatalf("one below the threshold pauses %s", got)
		}
		if got := p.OutagePause(p.PauseAfter); got != p.RetryBase {
			t.Fatalf("the threshold pauses %s", got)
		}
	})
	t.Run("GrowsToItsCapAndStays", func(t *testing.T) {
		t.Parallel()
		last := time.Duration(0)
		for n := range 200 {
			got := p.OutagePause(n)
			if got < last || got > p.RetryCap/5 {
				t.Fatalf("after %d: %s, before it %s", n, got, last)
			}
			last = got
		}
		if last != p.RetryCap/5 {
			t.Fatalf("ends at %s", last)
		}
	})
}

func TestPolicyValidate(t *testing.T) {
	t.Parallel()
	if err := DefaultPolicy().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Policy){
		"NoAttempt":         func(p *Policy) { p.MaxAttempts = 0 },
		"TooManyAttempts":   func(p *Policy) { p.MaxAttempts = 101 },
		"NoBase":            func(p *Policy) { p.RetryBase = 0 },
		"BaseAboveTheCap":   func(p *Policy) { p.RetryBase = p.RetryCap + 1 },
		"NegativeRetries":   func(p *Policy) { p.OutputRetries = -1 },
		"TooManyRetries":    func(p *Policy) { p.OutputRetries = 11 },
		"NoPauseThreshold":  func(p *Policy) { p.PauseAfter = 0 },
		"TheZeroValueIsBad": func(p *Policy) { *p = Policy{} },
	} {
		p := DefaultPolicy()
		spoil(&p)
		if p.Validate() == nil {
			t.Errorf("%s: %+v was let through", name, p)
		}
	}
}

func TestCodeOf(t *testing.T) {
	t.Parallel()
	t.Run("EveryClassIsExplained", func(t *testing.T) {
		t.Parallel()
		for _, class := range classes() {
			explained := Explain(CodeOf(class))
			if explained.Message == "" || explained.Action == "" {
				t.Errorf("%s: %+v", class, explained)
			}
			if internal := class == InternalFailure || class == LeaseLost || class == Shutdown; internal != (CodeOf(class) == CodeInternal) {
				t.Errorf("%s is shown as %s", class, CodeOf(class))
			}
		}
	})
	t.Run("CodesAreUpperCaseWords", func(t *testing.T) {
		t.Parallel()
		for _, class := range classes() {
			code := string(CodeOf(class))
			if code == "" || strings.ToUpper(code) != code || strings.ContainsAny(code, " -") {
				t.Errorf("%s has the code %q", class, code)
			}
		}
	})
	t.Run("AnUnknownCodeIsExplainedAsInternal", func(t *testing.T) {
		t.Parallel()
		if Explain("NO_SUCH_CODE") != Explain(CodeInternal) {
			t.Fatal("another explanation")
		}
	})
}
