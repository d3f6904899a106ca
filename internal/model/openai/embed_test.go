package openai_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/model/openai"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

func newEmbedder(t *testing.T, stub *stubmodel.Server, change ...func(*openai.Config)) *openai.Embedder {
	t.Helper()
	config := openai.Config{BaseURL: stub.OpenAIURL(), Model: "stub", Timeout: 30 * time.Second}
	for _, f := range change {
		f(&config)
	}
	embedder, err := openai.NewEmbedder(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(embedder.Close)
	return embedder
}

func numbered(n int) []string {
	var texts []string
	for i := range n {
		texts = append(texts, fmt.Sprintf("text number %d", i))
	}
	return texts
}

func embedFailure(t *testing.T, err error) *model.Error {
	t.Helper()
	var failure *model.Error
	if !errors.As(err, &failure) {
		t.Fatalf("got %v, want a classified failure", err)
	}
	if strings.Contains(failure.Error(), stubmodel.ProviderWords) {
		t.Fatalf("the error says %q", failure)
	}
	return failure
}

func TestEmbed(t *testing.T) {
	t.Parallel()

	t.Run("OneUnitVectorForEachText", func(t *testing.T) {
		t.Parallel()
		stub := stubmodel.New(t)
		got, err := newEmbedder(t, stub).Embed(t.Context(), numbered(70))
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Vectors) != 70 || got.Usage.Calls != 3 || got.Usage.TokensIn == 0 || got.Usage.Duration == 0 {
			t.Fatalf("%d vectors, usage %+v", len(got.Vectors), got.Usage)
		}
		for i, vector := range got.Vectors {
			sum := 0.0
			for _, x := range vector {
				sum += float64(x) * float64(x)
			}
			if math.Abs(sum-1) > 1e-5 {
				t.Fatalf("vector %d has length %f", i, math.Sqrt(sum))
			}
		}
	})

	t.Run("NothingToDoIsNoCall", func(t *testing.T) {
		t.Parallel()
		stub := stubmodel.New(t)
		got, err := newEmbedder(t, stub).Embed(t.Context(), nil)
		if err != nil || len(got.Vectors) != 0 || stub.Count(stubmodel.At(stubmodel.Embeddings)) != 0 {
			t.Fatalf("got %d vectors, %v", len(got.Vectors), err)
		}
	})

	t.Run("ARefusedTextHasNoVectorAndHarmsNoOther", func(t *testing.T) {
		t.Parallel()
		stub := stubmodel.New(t)
		stub.RefuseTexts("poison")
		texts := numbered(4)
		texts[2] = "poison"
		got, err := newEmbedder(t, stub).Embed(t.Context(), texts)
		if err != nil {
			t.Fatal(err)
		}
		for i, vector := range got.Vectors {
			if (vector == nil) != (i == 2) {
				t.Errorf("vector %d is nil: %v", i, vector == nil)
			}
		}
		if got.Usage.Calls != 5 {
			t.Errorf("%d calls, want the batch and four", got.Usage.Calls)
		}
	})

	t.Run("ASingleRefusedTextIsBelievedAfterAProbe", func(t *testing.T) {
		t.Parallel()
		stub := stubmodel.New(t)
		stub.RefuseTexts("poison")
		got, err := newEmbedder(t, stub).Embed(t.Context(), []string{"poison"})
		if err != nil || len(got.Vectors) != 1 || got.Vectors[0] != nil || got.Usage.Calls != 2 {
			t.Fatalf("got %v, %+v, %v", got.Vectors, got.Usage, err)
		}
	})

	t.Run("ARefusalOfEverythingIsTheOperatorsFault", func(t *testing.T) {
		t.Parallel()
		stub := stubmodel.New(t)
		stub.RefuseTexts("")
		_, err := newEmbedder(t, stub).Embed(t.Context(), numbered(2))
		if failure := embedFailure(t, err); failure.Class != task.ProviderRejected {
			t.Fatalf("got %s", failure)
		}
	})

	t.Run("AnOutageBetweenSingleTextsEndsTheCall", func(t *testing.T) {
		t.Parallel()
		stub := stubmodel.New(t)
		stub.Queue(stubmodel.At(stubmodel.Embeddings), stubmodel.Reply(stubmodel.BadRequest("batch")), nil, stubmodel.Reply(stubmodel.Refuse(503, "")))
		_, err := newEmbedder(t, stub).Embed(t.Context(), numbered(3))
		if failure := embedFailure(t, err); failure.Class != task.ProviderUnavailable || failure.Usage.Calls != 3 {
			t.Fatalf("got %s, usage %+v", failure, failure.Usage)
		}
	})

	t.Run("TheModelsNameHoldsTheAskedLength", func(t *testing.T) {
		t.Parallel()
		embedder := newEmbedder(t, stubmodel.New(t), func(c *openai.Config) { c.Dimensions = 512 })
		if embedder.Model() != "stub@512" {
			t.Fatal(embedder.Model())
		}
		_, err := embedder.Embed(t.Context(), []string{"x"}) // the stub answers 256 numbers, whatever is asked
		if failure := embedFailure(t, err); failure.Class != task.ProjectionFailed {
			t.Fatalf("got %s", failure)
		}
	})
}

func TestEmbedFaults(t *testing.T) {
	t.Parallel()
	raw := func(data string) stubmodel.Answer {
		return stubmodel.Raw(`{"object":"list","model":"stub","data":` + data + `,"usage":{"prompt_tokens":1,"total_tokens":1}}`)
	}
	cases := []struct {
		name   string
		answer stubmodel.Answer
		want   task.Class
	}{
		{"TooFewVectors", raw(`[{"index":0,"embedding":[1]}]`), task.ProjectionFailed},
		{"NoVectors", raw(`[]`), task.ProjectionFailed},
		{"SamePlaceTwice", raw(`[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]`), task.ProjectionFailed},
		{"PlaceOutside", raw(`[{"index":0,"embedding":[1]},{"index":7,"embedding":[1]}]`), task.ProjectionFailed},
		{"DifferentLengths", raw(`[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}]`), task.ProjectionFailed},
		{"EmptyVector", raw(`[{"index":0,"embedding":[1]},{"index":1,"embedding":[]}]`), task.ProjectionFailed},
		{"VectorOfZeros", raw(`[{"index":0,"embedding":[0,0]},{"index":1,"embedding":[1,2]}]`), task.ProjectionFailed},
		{"RateLimit", stubmodel.RateLimited(3 * time.Second), task.ProviderRateLimited},
		{"WrongKey", stubmodel.Refuse(401, ""), task.ProviderRejected},
		{"ServerError", stubmodel.Refuse(500, ""), task.ProviderUnavailable},
		{"Page", stubmodel.HTML(200), task.ProviderUnavailable},
		{"ConnectionClosedMidAnswer", stubmodel.Answer{Cut: true}, task.ProviderUnavailable},
		{"EndlessAnswer", stubmodel.Raw(`{"id":"` + strings.Repeat("x", 17<<20) + `"}`), task.ProjectionFailed},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			stub := stubmodel.New(t)
			stub.Queue(stubmodel.At(stubmodel.Embeddings), stubmodel.Reply(c.answer))
			_, err := newEmbedder(t, stub).Embed(t.Context(), numbered(2))
			failure := embedFailure(t, err)
			if failure.Class != c.want || failure.Usage.Calls != 1 {
				t.Fatalf("got %s, usage %+v; want %s", failure, failure.Usage, c.want)
			}
			if c.want == task.ProviderRateLimited && failure.RetryAfter != 3*time.Second {
				t.Fatalf("RetryAfter is %s", failure.RetryAfter)
			}
		})
	}

	t.Run("Deadline", func(t *testing.T) {
		t.Parallel()
		stub := stubmodel.New(t)
		stub.Hold(stubmodel.At(stubmodel.Embeddings))
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		_, err := newEmbedder(t, stub).Embed(ctx, numbered(1))
		if failure := embedFailure(t, err); failure.Class != task.ProviderTimeout {
			t.Fatalf("got %s", failure)
		}
	})

	t.Run("ALaterLengthIsRefused", func(t *testing.T) {
		t.Parallel()
		stub := stubmodel.New(t)
		embedder := newEmbedder(t, stub)
		if _, err := embedder.Embed(t.Context(), numbered(1)); err != nil {
			t.Fatal(err)
		}
		stub.Queue(stubmodel.At(stubmodel.Embeddings), stubmodel.Reply(raw(`[{"index":0,"embedding":[1,2]}]`)))
		_, err := embedder.Embed(t.Context(), numbered(1))
		if failure := embedFailure(t, err); failure.Class != task.ProjectionFailed {
			t.Fatalf("got %s", failure)
		}
	})

	t.Run("VectorsComeByTheirNumber", func(t *testing.T) {
		t.Parallel()
		stub := stubmodel.New(t)
		stub.Queue(stubmodel.At(stubmodel.Embeddings), stubmodel.Reply(raw(`[{"index":1,"embedding":[0,2]},{"index":0,"embedding":[2,0]}]`)))
		got, err := newEmbedder(t, stub).Embed(t.Context(), numbered(2))
		if err != nil || got.Vectors[0][0] != 1 || got.Vectors[1][1] != 1 {
			t.Fatalf("got %v, %v", got.Vectors, err)
		}
	})
}
