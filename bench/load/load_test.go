package load_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-memory/holdfast/bench/load"
)

func TestClosed(t *testing.T) {
	t.Parallel()

	t.Run("AnErrorIsToldAndEndsIt", func(t *testing.T) {
		t.Parallel()
		refused := errors.New("refused")
		_, err := load.Closed(t.Context(), 4, 0, time.Hour, func(context.Context, int) error { return refused })
		if !errors.Is(err, refused) {
			t.Fatalf("got %v", err)
		}
	})

	t.Run("CountsWhatEndedWithin", func(t *testing.T) {
		t.Parallel()
		result, err := load.Closed(t.Context(), 3, 0, time.Second, func(ctx context.Context, _ int) error {
			select {
			case <-time.After(time.Millisecond):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if result.Count() == 0 || result.Quantile(0) < time.Millisecond || result.Quantile(1) < result.Quantile(0.5) {
			t.Fatalf("%d, %s to %s", result.Count(), result.Quantile(0), result.Quantile(1))
		}
	})
}

func TestOpen(t *testing.T) {
	t.Parallel()

	t.Run("AWaitForAPlaceCounts", func(t *testing.T) {
		t.Parallel()
		// One place and ten arrivals at once, each of 5 ms: the last one has waited for nine others.
		result, err := load.Open(t.Context(), 10_000, 1, 0, time.Millisecond, func(context.Context, int) error {
			<-time.After(5 * time.Millisecond)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if result.Count() != 10 || result.Quantile(1) < 45*time.Millisecond {
			t.Fatalf("%d, the last after %s", result.Count(), result.Quantile(1))
		}
	})
}

func TestFixed(t *testing.T) {
	t.Parallel()

	t.Run("DoesAsManyAsTold", func(t *testing.T) {
		t.Parallel()
		var done atomic.Int64
		err := load.Fixed(t.Context(), 7, 100, func(context.Context, int) error {
			done.Add(1)
			return nil
		})
		if err != nil || done.Load() != 100 {
			t.Fatalf("%d, %v", done.Load(), err)
		}
	})

	t.Run("AnErrorEndsIt", func(t *testing.T) {
		t.Parallel()
		refused := errors.New("refused")
		var done atomic.Int64
		err := load.Fixed(t.Context(), 1, 100, func(context.Context, int) error {
			done.Add(1)
			return refused
		})
		if !errors.Is(err, refused) || done.Load() != 1 {
			t.Fatalf("%d, %v", done.Load(), err)
		}
	})
}

func TestConn(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if r.URL.Path == "/chunks" {
			for part := range strings.SplitSeq(string(body), ",") {
				_, _ = io.WriteString(w, part)
				w.(http.Flusher).Flush()
			}
			return
		}
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, r.Header.Get("X-Mark")+string(body))
	}))
	t.Cleanup(server.Close)
	conn, err := load.Dial(t.Context(), server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, c := range []struct {
		path, header, body, want string
		status                   int
	}{
		{"/", "X-Mark: m\r\n", "abc", "mabc", 202},
		{"/chunks", "", "one,two,three", "onetwothree", 200},
		{"/", "", "", "", 202},
	} {
		status, answer, err := conn.Do("POST", c.path, c.header, []byte(c.body))
		if err != nil || status != c.status || string(answer) != c.want {
			t.Fatalf("%s: %d %q %v", c.path, status, answer, err)
		}
	}
}
