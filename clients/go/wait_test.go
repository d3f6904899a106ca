package holdfast_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	holdfast "github.com/holdfast-memory/holdfast/clients/go"
)

func TestWait(t *testing.T) {
	t.Parallel()

	t.Run("PollsUntilTheEnd", func(t *testing.T) {
		t.Parallel()
		s := newScript(t, eventIs("PENDING", "Retry-After", "3"), reset, eventIs("RUNNING"), problem(503, "UNAVAILABLE", true), eventIs("SUCCEEDED"))
		client, clock := s.client()
		event, err := client.Events.Wait(context.Background(), "evt_1")
		if err != nil || event.Status != holdfast.Succeeded || !event.Ended() {
			t.Fatalf("%+v: %v", event, err)
		}
		got := s.requests()
		if len(got) != 5 || got[0].target != "/v1/events/evt_1?wait=25" {
			t.Fatalf("got %+v", got)
		}
		if first := clock.slept()[0]; first < 2*time.Second || first > 3*time.Second {
			t.Fatalf("a service that doesn't keep it waiting says when to ask again: 3 s, not %s", first)
		}
	})

	t.Run("AnswersAtOnceAreNoBusyLoop", func(t *testing.T) {
		t.Parallel()
		s := newScript(t, eventIs("RETRYING"))
		client, clock := s.client()
		ctx, cancel := context.WithCancel(context.Background())
		clock.during = func() {
			if len(clock.slept()) == 20 {
				cancel()
			}
		}
		event, err := client.Events.Wait(ctx, "evt_1")
		var wait *holdfast.WaitError
		if !errors.As(err, &wait) || !errors.Is(err, context.Canceled) || wait.Event != event || event.Status != holdfast.Retrying {
			t.Fatalf("got %v", err)
		}
		if n := len(s.requests()); n != 20 {
			t.Fatalf("%d polls in twenty pauses", n)
		}
	})

	t.Run("FailureIsNoTimeOut", func(t *testing.T) {
		t.Parallel()
		s := newScript(t, accepted(), eventIs("FAILED"))
		client, _ := s.client()
		event, err := client.AddAndWait(context.Background(), tea)
		var failed *holdfast.EventFailedError
		var wait *holdfast.WaitError
		if !errors.As(err, &failed) || errors.As(err, &wait) || failed.Event != event {
			t.Fatalf("got %v", err)
		}
		key := s.requests()[0].key
		if failed.Code != "PROVIDER_TIMEOUT" || !failed.Retryable || failed.Action != "a" || failed.Key != key || event.Key != key || holdfast.KeyOf(err) != key {
			t.Fatalf("got %+v", failed)
		}
	})

	t.Run("TimeOutHasTheLastEventAndTheKey", func(t *testing.T) {
		t.Parallel()
		s := newScript(t, accepted(), eventIs("RUNNING"), hangs)
		client, _ := s.client()
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		event, err := client.AddAndWait(ctx, tea)
		var wait *holdfast.WaitError
		if !errors.As(err, &wait) || !errors.Is(err, context.DeadlineExceeded) || wait.EventID != "evt_1" {
			t.Fatalf("got %v", err)
		}
		if event == nil || event.Status != holdfast.Running || wait.Event != event || wait.Key != s.requests()[0].key {
			t.Fatalf("got %+v", wait)
		}
		if target := s.requests()[1].target; target != "/v1/events/evt_1?wait=3" {
			t.Fatalf("no longer than the context has: %s", target)
		}
	})

	t.Run("RefusalIsNoTimeOut", func(t *testing.T) {
		t.Parallel()
		s := newScript(t, problem(404, "EVENT_NOT_FOUND", false))
		client, _ := s.client()
		event, err := client.Events.Wait(context.Background(), "evt_1")
		var refused *holdfast.Error
		if event != nil || !errors.As(err, &refused) || refused.Code != "EVENT_NOT_FOUND" || errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
	})

	t.Run("StaysWithinTheTimeOutOfTheHTTPClient", func(t *testing.T) {
		t.Parallel()
		s := newScript(t, eventIs("SUCCEEDED"))
		client, _ := s.client(holdfast.WithHTTPClient(&http.Client{Timeout: 10 * time.Second}))
		if _, err := client.Events.Wait(context.Background(), "evt_1"); err != nil {
			t.Fatal(err)
		}
		if target := s.requests()[0].target; target != "/v1/events/evt_1?wait=5" {
			t.Fatalf("got %s", target)
		}
	})
}

func TestPages(t *testing.T) {
	t.Parallel()
	page := func(ids, next string) http.HandlerFunc {
		return replies(200, "application/json", `{"results":[`+ids+`],"next_cursor":`+next+`}`)
	}

	t.Run("AllGoesThroughThem", func(t *testing.T) {
		t.Parallel()
		s := newScript(t, page(`{"id":"a"},{"id":"b"}`, `"c1"`), page(``, `"c2"`), page(`{"id":"c"}`, `null`))
		client, _ := s.client()
		var ids string
		for memory, err := range client.Memories.All(context.Background(), holdfast.User("ann o'b")) {
			if err != nil {
				t.Fatal(err)
			}
			ids += memory.ID
		}
		got := s.requests()
		if ids != "abc" || len(got) != 3 || got[0].target != "/v1/memories?limit=100&user_id=ann+o%27b" || got[2].target != "/v1/memories?cursor=c2&limit=100&user_id=ann+o%27b" {
			t.Fatalf("%s by %+v", ids, got)
		}
	})

	t.Run("BreakAsksForNoMore", func(t *testing.T) {
		t.Parallel()
		s := newScript(t, page(`{"id":"a"},{"id":"b"}`, `"c1"`))
		client, _ := s.client()
		for _, err := range client.Events.All(context.Background(), holdfast.EventFilter{Status: holdfast.Failed, Type: "memory_update"}) {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		if got := s.requests(); len(got) != 1 || got[0].target != "/v1/events?limit=100&status=FAILED&type=memory_update" {
			t.Fatalf("got %+v", got)
		}
	})

	t.Run("ErrorAndEndlessListEndIt", func(t *testing.T) {
		t.Parallel()
		for name, last := range map[string]http.HandlerFunc{"error": problem(403, "INSUFFICIENT_PERMISSION", false), "endless": page(`{}`, `"c1"`)} {
			s := newScript(t, page(`{}`, `"c1"`), last)
			client, _ := s.client()
			errs, rounds := 0, 0
			for _, err := range client.Credits.All(context.Background()) {
				rounds++
				if err != nil {
					errs++
				}
			}
			if errs != 1 || rounds > 3 {
				t.Errorf("%s: %d errors in %d rounds", name, errs, rounds)
			}
		}
	})
}
