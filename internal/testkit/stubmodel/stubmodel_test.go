package stubmodel_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// post sends one chat completion and returns the status and the model's text.
func post(t *testing.T, stub *stubmodel.Server, content string) (int, string) {
	t.Helper()
	prompt := model.NewPrompt(model.Request{Messages: []model.Message{{Role: "user", Content: content}}})
	body, err := json.Marshal(map[string]any{"messages": []map[string]string{
		{"role": "system", "content": prompt.System}, {"role": "user", "content": prompt.User},
	}})
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, stub.OpenAIURL()+"/chat/completions", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	var answer struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if json.Unmarshal(raw, &answer) != nil || len(answer.Choices) == 0 {
		return response.StatusCode, string(raw)
	}
	return response.StatusCode, answer.Choices[0].Message.Content
}

func TestStart(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"0.0.0.0:0", ":0", "192.0.2.1:0", "localhost:0", "nonsense"} {
		if server, err := stubmodel.Start(addr); err == nil {
			t.Errorf("%q was taken", addr)
			_ = server.Close()
		}
	}
	server, err := stubmodel.Start("")
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if err := server.Close(); err != nil {
		t.Errorf("the second close: %v", err)
	}
}

func TestScript(t *testing.T) {
	t.Parallel()

	t.Run("LinesWithFactsAreTheDefault", func(t *testing.T) {
		t.Parallel()
		status, text := post(t, stubmodel.New(t), "hello\nFACT: one\n  FACT: two\nno FACT: three")
		if status != 200 || text != `{"facts":[{"text":"one"},{"text":"two"}]}` {
			t.Fatalf("%d %s", status, text)
		}
	})

	t.Run("TheQueueComesFirstAndOnlyOnce", func(t *testing.T) {
		t.Parallel()
		stub := stubmodel.New(t)
		stub.Always(stubmodel.With("x"), stubmodel.Reply(stubmodel.Facts("always")))
		stub.Queue(stubmodel.With("x"), stubmodel.Reply(stubmodel.Refuse(503, "")), nil)
		if status, _ := post(t, stub, "y"); status != 200 {
			t.Fatalf("a call without the marker got %d", status)
		}
		for i, want := range []string{"", "", "always"} {
			status, text := post(t, stub, "x")
			if (i == 0) != (status == 503) || i == 1 && text != `{"facts":[]}` || i == 2 && !strings.Contains(text, want) {
				t.Fatalf("call %d: %d %s", i, status, text)
			}
		}
	})

	t.Run("ASequenceEndsWithItsLast", func(t *testing.T) {
		t.Parallel()
		stub := stubmodel.New(t)
		stub.Always(stubmodel.Match{}, stubmodel.Sequence(stubmodel.Facts("one"), stubmodel.Facts("two")))
		for i, want := range []string{"one", "two", "two"} {
			if _, text := post(t, stub, "x"); !strings.Contains(text, want) {
				t.Fatalf("call %d: %s", i, text)
			}
		}
	})

	t.Run("CallsAreCountedAndTimed", func(t *testing.T) {
		t.Parallel()
		stub := stubmodel.New(t)
		before := time.Now()
		post(t, stub, "alpha </conversation> beta")
		post(t, stub, "gamma")
		if stub.Count(stubmodel.Match{}) != 2 || stub.Count(stubmodel.With("</conversation> beta")) != 1 || stub.Count(stubmodel.At(stubmodel.Embeddings)) != 0 {
			t.Fatal("the counts are wrong")
		}
		if times := stub.Times(stubmodel.Match{}); times[0].Before(before) || times[1].Before(times[0]) {
			t.Fatalf("the times are wrong: %v", times)
		}
		if calls := stub.Calls(stubmodel.Match{}); calls[1].Number != 2 || calls[1].Conversation[0].Content != "gamma" {
			t.Fatalf("the calls are wrong: %+v", calls[1])
		}
	})

	t.Run("AwaitEndsWithItsContext", func(t *testing.T) {
		t.Parallel()
		stub := stubmodel.New(t)
		post(t, stub, "x")
		if err := stub.Await(t.Context(), stubmodel.Match{}, 1); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if err := stub.Await(ctx, stubmodel.Match{}, 2); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
	})
}

func TestHold(t *testing.T) {
	t.Parallel()

	t.Run("OneCallWaitsAndOthersPass", func(t *testing.T) {
		t.Parallel()
		stub := stubmodel.New(t)
		hold := stub.Hold(stubmodel.With("x"))
		answered := make(chan int, 1)
		go func() {
			status, _ := post(t, stub, "x")
			answered <- status
		}()
		<-hold.Arrived()
		if status, _ := post(t, stub, "x"); status != 200 {
			t.Fatalf("the second call got %d", status)
		}
		select {
		case status := <-answered:
			t.Fatalf("the held call was answered with %d", status)
		default:
		}
		hold.Release()
		hold.Release()
		if status := <-answered; status != 200 {
			t.Fatalf("the released call got %d", status)
		}
	})

	t.Run("AllWaitUntilReleased", func(t *testing.T) {
		t.Parallel()
		stub := stubmodel.New(t)
		hold := stub.HoldAll(stubmodel.Match{})
		answered := make(chan int, 3)
		for range 3 {
			go func() {
				status, _ := post(t, stub, "x")
				answered <- status
			}()
		}
		if err := stub.Await(t.Context(), stubmodel.Match{}, 3); err != nil {
			t.Fatal(err)
		}
		hold.Release()
		for range 3 {
			if status := <-answered; status != 200 {
				t.Fatalf("got %d", status)
			}
		}
	})

	t.Run("ClosingTheServerEndsIt", func(t *testing.T) {
		t.Parallel()
		stub := stubmodel.New(t)
		hold := stub.Hold(stubmodel.Match{})
		answered := make(chan int, 1)
		go func() {
			status, _ := post(t, stub, "x")
			answered <- status
		}()
		<-hold.Arrived()
		if err := stub.Close(); err != nil {
			t.Fatal(err)
		}
		if status := <-answered; status != 0 {
			t.Fatalf("got %d", status)
		}
	})
}

func TestFaultsOnTheWire(t *testing.T) {
	t.Parallel()
	stub := stubmodel.New(t)
	for _, c := range []struct {
		name   string
		answer stubmodel.Answer
		status int
	}{
		{"CutOff", stubmodel.CutOff(), 0},
		{"Dropped", stubmodel.Dropped(), 0},
		{"HTML", stubmodel.HTML(200), 200},
		{"RateLimited", stubmodel.RateLimited(time.Second), 429},
		{"PaymentRequired", stubmodel.Refuse(402, ""), 402},
	} {
		stub.Queue(stubmodel.Match{}, stubmodel.Reply(c.answer))
		if status, text := post(t, stub, "x"); status != c.status {
			t.Errorf("%s: %d %s", c.name, status, text)
		}
	}
}
