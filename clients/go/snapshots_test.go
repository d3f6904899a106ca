package holdfast_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	holdfast "github.com/holdfast-memory/holdfast/clients/go"
)

const (
	headerLine = `{"type":"header","version":1}` + "\n"
	footerLine = `{"type":"footer","memories":0}` + "\n"
	lines      = "application/x-ndjson"
)

func TestSnapshots(t *testing.T) {
	t.Parallel()

	t.Run("ImportIsSentAgainFromWhereItBegan", func(t *testing.T) {
		t.Parallel()
		s := newScript(t, reset, problem(503, "UNAVAILABLE", true), accepted())
		client, _ := s.client()
		from := strings.NewReader("skipped " + headerLine + footerLine)
		if _, err := from.Seek(8, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		receipt, err := client.Snapshots.Import(context.Background(), from)
		if err != nil {
			t.Fatal(err)
		}
		got := s.requests()
		for _, one := range got {
			if one.body != headerLine+footerLine || one.key != receipt.Key || one.header.Get("Content-Type") != lines {
				t.Errorf("got %+v", one)
			}
		}
		if len(got) != 3 {
			t.Fatalf("sent %d times", len(got))
		}
	})

	t.Run("ImportOfAStreamIsSentOnce", func(t *testing.T) {
		t.Parallel()
		s := newScript(t, reset)
		client, _ := s.client()
		_, err := client.Snapshots.Import(context.Background(), io.MultiReader(strings.NewReader(headerLine)), holdfast.WithKey("move-1"))
		var unknown *holdfast.UnknownError
		if !errors.As(err, &unknown) || unknown.Key != "move-1" || len(s.requests()) != 1 {
			t.Fatalf("sent %d times: %v", len(s.requests()), err)
		}
	})

	t.Run("ReaderIsTheCallersAgainAfterwards", func(t *testing.T) {
		t.Parallel()
		s := newScript(t)
		// The answer comes before the body has been read.
		early := func(w http.ResponseWriter, _ *http.Request) {
			out := http.NewResponseController(w)
			_ = out.EnableFullDuplex() // otherwise this server reads on before it answers
			w.Header().Set("Content-Length", "0")
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			_ = out.Flush()
		}
		s.server.Config.Handler = http.HandlerFunc(early)
		client, _ := s.client()
		from := &slow{reading: make(chan struct{}), release: make(chan struct{})}
		done := make(chan error, 1)
		go func() {
			_, err := client.Snapshots.Import(context.Background(), from)
			done <- err
		}()
		<-from.reading
		select {
		case err := <-done:
			t.Fatalf("it returned while its reader was being read: %v", err)
		case <-time.After(500 * time.Millisecond): // the answer has long been there
		}
		close(from.release)
		if err := <-done; err == nil {
			t.Fatal("no error")
		}
	})

	for name, c := range map[string]struct {
		answer http.HandlerFunc
		whole  bool
	}{
		"WholeEndsWithEOF":             {replies(200, lines, headerLine+strings.Repeat(" ", 4096)+"\n"+footerLine), true},
		"WithoutFooterIsCutOff":        {replies(200, lines, headerLine), false},
		"WithHalfAFooterIsCutOff":      {replies(200, lines, headerLine+footerLine[:20]), false},
		"WithFooterInATextIsCutOff":    {replies(200, lines, headerLine+`{"memory":"`+strings.TrimSpace(footerLine)+"\"}\n"), false},
		"OfABrokenConnectionIsCutOff":  {brokenLines, false},
		"OfTheSecondAttemptIsTheWhole": {problem(503, "UNAVAILABLE", true), true},
	} {
		t.Run("Export"+name, func(t *testing.T) {
			t.Parallel()
			s := newScript(t, c.answer, replies(200, lines, headerLine+footerLine))
			client, _ := s.client()
			from, err := client.Snapshots.Read(context.Background(), "evt_1")
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(from)
			if errors.Is(err, holdfast.ErrCutOff) == c.whole || err == nil != c.whole || !strings.HasPrefix(string(text), headerLine) {
				t.Fatalf("whole is %t: %v", c.whole, err)
			}
			if err := from.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// slow gives one byte, and nothing more before it is released.
type slow struct {
	begun            bool
	reading, release chan struct{}
}

func (s *slow) Read(p []byte) (int, error) {
	if !s.begun {
		s.begun = true
		return copy(p, "{"), nil
	}
	close(s.reading)
	<-s.release
	return 0, io.EOF
}

func brokenLines(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", lines)
	_, _ = io.WriteString(w, headerLine) // the client sees that there is no more
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}
