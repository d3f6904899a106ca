package holdfast_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	holdfast "github.com/holdfast-memory/holdfast/clients/go"
)

// TestDoubt is about what an error says of a write: it has not happened, or nobody knows.
func TestDoubt(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		answers []http.HandlerFunc
		doubt   bool
	}{
		"StaysAfterResets":              {[]http.HandlerFunc{reset}, true},
		"StaysWhenTheLastIsRateLimited": {[]http.HandlerFunc{reset, problem(429, "RATE_LIMITED", true)}, true},
		"StaysWhenTheLastIsUnavailable": {[]http.HandlerFunc{reset, problem(503, "UNAVAILABLE", true)}, true},
		"StaysWhenTheLastIsAProxys":     {[]http.HandlerFunc{reset, replies(403, "text/html", "no")}, true},
		"StaysWhenTheKeyWasRevoked":     {[]http.HandlerFunc{reset, problem(401, "INVALID_API_KEY", false)}, true},
		"StaysWhenThereIsNoRoute":       {[]http.HandlerFunc{reset, problem(404, "ROUTE_NOT_FOUND", false)}, true},
		"GoesWithARefusal":              {[]http.HandlerFunc{reset, problem(402, "INSUFFICIENT_CREDITS", true)}, false},
		"GoesWithAConflict":             {[]http.HandlerFunc{reset, problem(409, "IDEMPOTENCY_CONFLICT", false)}, false},
		"IsNotOfUnavailable":            {[]http.HandlerFunc{problem(503, "UNAVAILABLE", true)}, false},
		"IsNotOfRateLimited":            {[]http.HandlerFunc{replies(429, "text/plain", "slow down")}, false},
		"IsOfAcceptanceUnknown":         {[]http.HandlerFunc{problem(503, "ACCEPTANCE_UNKNOWN", true)}, true},
		"IsOfAGateway":                  {[]http.HandlerFunc{replies(502, "text/html", "bad gateway")}, true},
		"IsOfAServiceWithoutAReason":    {[]http.HandlerFunc{replies(500, "text/plain", "oops")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScript(t, c.answers...)
			client, _ := s.client(holdfast.WithMaxRetries(2))
			_, err := client.Add(context.Background(), tea, holdfast.WithKey("order-17"))
			var unknown *holdfast.UnknownError
			if errors.As(err, &unknown) != c.doubt || holdfast.KeyOf(err) != "order-17" {
				t.Fatalf("doubt is %t: %v", c.doubt, err)
			}
		})
	}

	t.Run("StaysWithoutAKeyWhateverComesLater", func(t *testing.T) {
		t.Parallel()
		s := newScript(t, reset, problem(409, "NOT_RETRYABLE", false))
		client, _ := s.client()
		_, err := client.Events.Retry(context.Background(), "evt_1", 1)
		var unknown *holdfast.UnknownError
		if !errors.As(err, &unknown) || unknown.Key != "" || unknown.Attempts != 2 {
			t.Fatalf("the first attempt may have opened the run that has ended since: %v", err)
		}
	})

	t.Run("IsNotOfARead", func(t *testing.T) {
		t.Parallel()
		s := newScript(t, reset)
		client, _ := s.client()
		_, err := client.Memories.Get(context.Background(), "mem_1")
		var none *holdfast.NoAnswerError
		if !errors.As(err, &none) || none.Attempts != 5 || len(s.requests()) != 5 {
			t.Fatalf("got %v", err)
		}
	})

	t.Run("IsNotOfAClosedPort", func(t *testing.T) {
		t.Parallel()
		s := newScript(t, accepted())
		client, clock := s.client()
		s.server.Close()
		_, err := client.Add(context.Background(), tea)
		var none *holdfast.NoAnswerError
		if !errors.As(err, &none) || none.Key == "" || none.Attempts != 5 || len(clock.slept()) != 4 {
			t.Fatalf("got %v", err)
		}
	})

	// The transport itself repeats a keyed request on a new connection when a kept one was closed. Its error is then that
	// of the second dial, though the first connection took the request.
	t.Run("IsOfAWriteThatTheTransportRepeated", func(t *testing.T) {
		t.Parallel()
		listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		taken := make(chan struct{})
		go serveOnceThenVanish(listener, taken)
		client, err := holdfast.New("http://"+listener.Addr().String(), apiKey, holdfast.WithMaxRetries(0),
			holdfast.WithHTTPClient(&http.Client{Transport: &http.Transport{}}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Credits.Balance(context.Background()); err != nil {
			t.Fatal(err)
		}
		_, err = client.Add(context.Background(), tea)
		<-taken
		var unknown *holdfast.UnknownError
		if !errors.As(err, &unknown) {
			t.Fatalf("the write was taken: %v", err)
		}
	})
}

// serveOnceThenVanish answers one request, takes a second on the same connection, and is gone.
func serveOnceThenVanish(listener net.Listener, taken chan<- struct{}) {
	defer close(taken)
	conn, err := listener.Accept()
	if err != nil {
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second)) // a client that sends nothing fails its own test
	buffer := make([]byte, 64<<10)
	if _, err := conn.Read(buffer); err != nil {
		return
	}
	if _, err := conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")); err != nil {
		return
	}
	_, _ = conn.Read(buffer)
	_ = listener.Close()
}
