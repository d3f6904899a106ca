package holdfast_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	holdfast "github.com/holdfast-memory/holdfast/clients/go"
)

// TestRetry goes through what a first attempt can meet before the second one is accepted.
func TestRetry(t *testing.T) {
	t.Parallel()
	html := func(status int) http.HandlerFunc { return replies(status, "text/html", "<h1>proxy</h1>") }
	for name, first := range map[string]http.HandlerFunc{
		"Reset":                  reset,
		"HalfAnAnswer":           halves(`{"message":"Accepted.","sta`),
		"AnswerCutWithoutATrace": replies(202, "application/json", `{"message":"Accepted.","sta`),
		"NoAnswerInTime":         hangs,
		"PageOfAProxy":           replies(200, "text/html", "<h1>sign in</h1>"),
		"BadGateway":             html(502),
		"ServiceUnavailable":     html(503),
		"GatewayTimeout":         html(504),
		"TooManyOfAProxy":        html(429),
		"RateLimited":            problem(429, "RATE_LIMITED", true),
		"TooManyPending":         problem(429, "TOO_MANY_PENDING", true),
		"Unavailable":            problem(503, "UNAVAILABLE", true),
		"AcceptanceUnknown":      problem(503, "ACCEPTANCE_UNKNOWN", true),
		"InProgress":             problem(409, "IDEMPOTENCY_IN_PROGRESS", true),
		"Internal":               problem(500, "INTERNAL", true),
	} {
		t.Run(name+"IsRepeatedUnderTheSameKey", func(t *testing.T) {
			t.Parallel()
			s := newScript(t, first, accepted())
			client, clock := s.client(holdfast.WithAttemptTimeout(attemptOf(name)))
			receipt, err := client.Add(context.Background(), tea)
			if err != nil {
				t.Fatal(err)
			}
			got := s.requests()
			if len(got) != 2 || got[0].key == "" || got[0].key != got[1].key || got[0].body != got[1].body {
				t.Fatalf("two attempts of one request, not %+v", got)
			}
			if receipt.Key != got[0].key || receipt.EventID != "evt_1" || receipt.Replayed {
				t.Fatalf("the receipt of the request: %+v", receipt)
			}
			if pauses := clock.slept(); len(pauses) != 1 || pauses[0] < 125*time.Millisecond || pauses[0] > 250*time.Millisecond {
				t.Fatalf("one pause of half a step to a step, not %v", pauses)
			}
			if !strings.Contains(got[0].body, "I like <tea> & milk.") {
				t.Fatalf("the text goes out as it is: %s", got[0].body)
			}
		})
	}
}

// attemptOf is short where the attempt is meant to run out of time.
func attemptOf(name string) time.Duration {
	if name == "NoAnswerInTime" {
		return time.Second
	}
	return 30 * time.Second
}

// TestNoRetry goes through the answers that another attempt would not change.
func TestNoRetry(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		status int
	}{
		"INVALID_REQUEST":         {problem(400, "INVALID_REQUEST", false), 400},
		"INVALID_API_KEY":         {problem(401, "INVALID_API_KEY", false), 401},
		"INSUFFICIENT_CREDITS":    {problem(402, "INSUFFICIENT_CREDITS", true), 402},
		"INSUFFICIENT_PERMISSION": {problem(403, "INSUFFICIENT_PERMISSION", false), 403},
		"IDEMPOTENCY_CONFLICT":    {problem(409, "IDEMPOTENCY_CONFLICT", false), 409},
		"PAYLOAD_TOO_LARGE":       {problem(413, "PAYLOAD_TOO_LARGE", false), 413},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScript(t, c.answer)
			client, clock := s.client()
			_, err := client.Add(context.Background(), tea, holdfast.WithKey("order-17"))
			var refused *holdfast.Error
			var unknown *holdfast.UnknownError
			if !errors.As(err, &refused) || errors.As(err, &unknown) {
				t.Fatalf("a refusal and no doubt, not %v", err)
			}
			if refused.Status != c.status || refused.Code != name || refused.RequestID != "req-7" || refused.Key != "order-17" || refused.Attempts != 1 {
				t.Fatalf("got %+v", refused)
			}
			if len(s.requests()) != 1 || len(clock.slept()) != 0 {
				t.Fatalf("it was sent %d times", len(s.requests()))
			}
		})
	}

	t.Run("OfACorrectionThatMayHaveArrived", func(t *testing.T) {
		t.Parallel()
		for name, first := range map[string]http.HandlerFunc{"reset": reset, "500": problem(500, "INTERNAL", true), "a proxy's 503": replies(503, "text/html", "<html>")} {
			s := newScript(t, first, replies(200, "application/json", `{"id":"mem_1"}`))
			client, _ := s.client()
			_, err := client.Items("ann").Correct(context.Background(), "mem_1", "x")
			if unknown := (*holdfast.UnknownError)(nil); !errors.As(err, &unknown) || len(s.requests()) != 1 {
				t.Fatalf("%s: sent %d times: %v", name, len(s.requests()), err)
			}
		}
	})

	t.Run("ButOfACorrectionThatWasRefused", func(t *testing.T) {
		t.Parallel()
		for name, first := range map[string]http.HandlerFunc{"503": problem(503, "UNAVAILABLE", true), "429": problem(429, "RATE_LIMITED", true)} {
			s := newScript(t, first, replies(200, "application/json", `{"id":"mem_1"}`))
			client, _ := s.client()
			corrected, err := client.Items("ann").Correct(context.Background(), "mem_1", "x")
			if err != nil || corrected.ID != "mem_1" || len(s.requests()) != 2 {
				t.Fatalf("%s: sent %d times: %v", name, len(s.requests()), err)
			}
		}
	})

	t.Run("ButOfWhatDoesNoHarmAgain", func(t *testing.T) {
		t.Parallel()
		s := newScript(t, reset, problem(429, "RATE_LIMITED", true), replies(200, "application/json", `{"events":1,"queue":0}`))
		client, _ := s.client()
		gone, err := client.Items("ann").Forget(context.Background(), "a")
		if err != nil || gone.Items != 1 || len(s.requests()) != 3 {
			t.Fatalf("sent %d times: %v", len(s.requests()), err)
		}
	})

	t.Run("OfAnAnswerOfAnotherForm", func(t *testing.T) {
		t.Parallel()
		s := newScript(t, replies(202, "application/json", `{"event_id":17}`))
		client, _ := s.client()
		_, err := client.Add(context.Background(), tea)
		if unknown := (*holdfast.UnknownError)(nil); !errors.As(err, &unknown) || len(s.requests()) != 1 {
			t.Fatalf("sent %d times: %v", len(s.requests()), err)
		}
	})
}

func TestBounds(t *testing.T) {
	t.Parallel()

	t.Run("RetriesAreCounted", func(t *testing.T) {
		t.Parallel()
		s := newScript(t, problem(503, "UNAVAILABLE", true))
		client, clock := s.client(holdfast.WithMaxRetries(6))
		_, err := client.Add(context.Background(), tea)
		var refused *holdfast.Error
		if !errors.As(err, &refused) || refused.Attempts != 7 || len(s.requests()) != 7 {
			t.Fatalf("six retries, then the last answer: %v", err)
		}
		step := 250 * time.Millisecond
		for i, pause := range clock.slept() {
			if pause < step/2 || pause > step {
				t.Errorf("pause %d is %s, out of %s", i, pause, step)
			}
			step = min(2*step, 8*time.Second)
		}
	})

	t.Run("RetryAfterIsAFloor", func(t *testing.T) {
		t.Parallel()
		date := time.Now().Add(9 * time.Second).UTC().Format(http.TimeFormat)
		s := newScript(t, problem(429, "RATE_LIMITED", true, "Retry-After", "7"), problem(503, "UNAVAILABLE", true, "Retry-After", date), accepted())
		client, clock := s.client(holdfast.WithBackoff(100*time.Millisecond, time.Second))
		if _, err := client.Add(context.Background(), tea); err != nil {
			t.Fatal(err)
		}
		pauses := clock.slept()
		if len(pauses) != 2 || pauses[0] < 7*time.Second || pauses[0] >= 7100*time.Millisecond {
			t.Fatalf("seven seconds and jitter below a step, not %v", pauses)
		}
		if pauses[1] <= 0 || pauses[1] > 2300*time.Millisecond { // seven of the nine have gone by
			t.Fatalf("to the date and jitter, not %v", pauses)
		}
	})

	t.Run("RetryAfterBeyondTheBudgetReturnsAtOnce", func(t *testing.T) {
		t.Parallel()
		s := newScript(t, problem(429, "RATE_LIMITED", true, "Retry-After", "3600"))
		client, clock := s.client()
		_, err := client.Add(context.Background(), tea)
		var refused *holdfast.Error
		if !errors.As(err, &refused) || refused.RetryAfter != time.Hour || len(clock.slept()) != 0 || len(s.requests()) != 1 {
			t.Fatalf("got %v after %v", err, clock.slept())
		}
	})

	t.Run("BudgetIsTime", func(t *testing.T) {
		t.Parallel()
		s := newScript(t, problem(503, "UNAVAILABLE", true, "Retry-After", "10"))
		client, clock := s.client(holdfast.WithMaxRetries(1000), holdfast.WithRetryBudget(35*time.Second))
		if _, err := client.Add(context.Background(), tea); err == nil {
			t.Fatal("no error")
		}
		if n := len(clock.slept()); n != 3 {
			t.Fatalf("three pauses of ten seconds fit into 35, not %d", n)
		}
	})

	t.Run("AnswersAreCutOff", func(t *testing.T) {
		t.Parallel()
		s := newScript(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(200)
			part := make([]byte, 1<<20)
			for range 80 {
				if _, err := w.Write(part); err != nil {
					return
				}
			}
		})
		client, _ := s.client()
		if _, err := client.Credits.Balance(context.Background()); err == nil || !strings.Contains(err.Error(), "larger than") {
			t.Fatalf("got %v", err)
		}
	})
}

func TestContext(t *testing.T) {
	t.Parallel()

	t.Run("DeadlineWithinThePauseReturnsAtOnce", func(t *testing.T) {
		t.Parallel()
		s := newScript(t, problem(503, "ACCEPTANCE_UNKNOWN", true, "Retry-After", "20"))
		client, clock := s.client()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_, err := client.Add(ctx, tea)
		var unknown *holdfast.UnknownError
		var refused *holdfast.Error
		if !errors.As(err, &unknown) || !errors.As(err, &refused) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("the doubt, the last answer and the reason, not %v", err)
		}
		if ctx.Err() != nil || len(clock.slept()) != 0 || unknown.Key != s.requests()[0].key || refused.Code != "ACCEPTANCE_UNKNOWN" {
			t.Fatalf("not at once, or without its key: %+v", unknown)
		}
	})

	t.Run("DeadlineAfterARefusalIsNoDoubt", func(t *testing.T) {
		t.Parallel()
		s := newScript(t, problem(503, "UNAVAILABLE", true, "Retry-After", "20"))
		client, _ := s.client()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_, err := client.Add(ctx, tea, holdfast.WithKey("order-17"))
		var unknown *holdfast.UnknownError
		if errors.As(err, &unknown) || !errors.Is(err, context.DeadlineExceeded) || holdfast.KeyOf(err) != "order-17" {
			t.Fatalf("got %v", err)
		}
	})

	t.Run("CancelEndsAPause", func(t *testing.T) {
		t.Parallel()
		s := newScript(t, reset)
		client, clock := s.client()
		ctx, cancel := context.WithCancel(context.Background())
		clock.during = cancel
		_, err := client.Add(ctx, tea)
		var unknown *holdfast.UnknownError
		if !errors.As(err, &unknown) || !errors.Is(err, context.Canceled) || unknown.Attempts != 1 || holdfast.KeyOf(err) != s.requests()[0].key {
			t.Fatalf("got %v", err)
		}
	})

	t.Run("CancelEndsAnAttempt", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(context.Background())
		s := newScript(t, func(w http.ResponseWriter, r *http.Request) { cancel(); hangs(w, r) })
		client, _ := s.client()
		_, err := client.Add(ctx, tea)
		var unknown *holdfast.UnknownError
		if !errors.As(err, &unknown) || !errors.Is(err, context.Canceled) || len(s.requests()) != 1 {
			t.Fatalf("got %v", err)
		}
	})

	t.Run("EndedBeforeSendsNothing", func(t *testing.T) {
		t.Parallel()
		s := newScript(t, accepted())
		client, _ := s.client()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err := client.Add(ctx, tea)
		var none *holdfast.NoAnswerError
		if !errors.As(err, &none) || !errors.Is(err, context.Canceled) || none.Key == "" || len(s.requests()) != 0 {
			t.Fatalf("got %v", err)
		}
	})

	t.Run("TimeOfAnAttemptIsNotTheContexts", func(t *testing.T) {
		t.Parallel()
		for name, opt := range map[string]holdfast.Option{
			"its own":       holdfast.WithAttemptTimeout(20 * time.Millisecond),
			"http.Client's": holdfast.WithHTTPClient(&http.Client{Timeout: 20 * time.Millisecond}),
		} {
			s := newScript(t, hangs)
			client, _ := s.client(opt, holdfast.WithMaxRetries(1))
			_, err := client.Add(context.Background(), tea)
			var unknown *holdfast.UnknownError
			if !errors.As(err, &unknown) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || unknown.Attempts != 2 {
				t.Fatalf("%s: got %v", name, err)
			}
		}
	})
}
