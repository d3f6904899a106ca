package openai

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// batchSize is how many texts one request carries. Small servers take no more, and a refused batch costs at
// most that many calls more.
const batchSize = 32

// probe is a text that no embedder has a reason to refuse.
const probe = "hello"

// Embedder is a model.Embedder over the embeddings endpoint. It is safe for concurrent use.
type Embedder struct {
	account
	embeddings sdk.EmbeddingService
	// dimensions is the length of the first vector, 0 before: one model's vectors have one length.
	dimensions atomic.Int64
}

// NewEmbedder checks config, fills in its defaults and returns an embedder. It opens no connection.
func NewEmbedder(config Config) (*Embedder, error) {
	config, base, err := config.checked(DefaultEmbeddingModel)
	if err != nil {
		return nil, err
	}
	shared, options := newAccount(config, base, maxEmbeddingAnswer)
	embedder := &Embedder{account: shared, embeddings: sdk.NewEmbeddingService(options...)}
	embedder.dimensions.Store(int64(config.Dimensions))
	return embedder, nil
}

// Model names the model, and the length that was asked for.
func (e *Embedder) Model() string {
	if e.config.Dimensions > 0 {
		return e.config.Model + "@" + strconv.Itoa(e.config.Dimensions)
	}
	return e.config.Model
}

// Embed returns a unit vector for each text. When the server refuses a batch, its texts are sent one at a time,
// and those that are refused alone get no vector. A refusal of everything is only believed if the server takes
// another text; otherwise it is the operator's setting that is refused.
func (e *Embedder) Embed(ctx context.Context, texts []string) (model.Embedding, error) {
	ctx, cancel := model.Bounded(ctx, e.config.Timeout)
	defer cancel()
	started := time.Now()
	usage := model.Usage{}
	vectors, failure := e.embedAll(ctx, texts, &usage)
	usage.Duration = time.Since(started)
	if failure != nil {
		failure.Usage = usage
		return model.Embedding{}, failure
	}
	return model.Embedding{Vectors: vectors, Usage: usage}, nil
}

func (e *Embedder) embedAll(ctx context.Context, texts []string, usage *model.Usage) ([]model.Vector, *model.Error) {
	vectors := make([]model.Vector, 0, len(texts))
	taken := false
	for first := 0; first < len(texts); first += batchSize {
		batch := texts[first:min(first+batchSize, len(texts))]
		found, failure := e.send(ctx, batch, usage)
		if failure != nil && failure.refusesInput() {
			found, failure = e.oneByOne(ctx, batch, usage)
		}
		if failure != nil {
			return nil, failure.err
		}
		for _, vector := range found {
			taken = taken || vector != nil
		}
		vectors = append(vectors, found...)
	}
	if taken || len(texts) == 0 {
		return vectors, nil
	}
	if _, failure := e.send(ctx, []string{probe}, usage); failure != nil {
		if failure.refusesInput() {
			failure.err.Class, failure.err.Reason = task.ProviderRejected, "every text refused"
		}
		return nil, failure.err
	}
	return vectors, nil
}

// oneByOne sends the texts of a refused batch alone. A batch of one was alone already.
func (e *Embedder) oneByOne(ctx context.Context, batch []string, usage *model.Usage) ([]model.Vector, *failedCall) {
	vectors := make([]model.Vector, len(batch))
	if len(batch) == 1 {
		return vectors, nil
	}
	for i, text := range batch {
		found, failure := e.send(ctx, []string{text}, usage)
		if failure != nil && !failure.refusesInput() {
			return nil, failure
		}
		if failure == nil {
			vectors[i] = found[0]
		}
	}
	return vectors, nil
}

// refusesInput tells a refusal of the text from every other failure.
func (f *failedCall) refusesInput() bool {
	switch f.refusal.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return f.err.Class == task.ExtractionRejected
	default:
		return false
	}
}

func (e *Embedder) send(ctx context.Context, texts []string, usage *model.Usage) ([]model.Vector, *failedCall) {
	params := sdk.EmbeddingNewParams{Model: e.config.Model, Input: sdk.EmbeddingNewParamsInputUnion{OfArrayOfStrings: texts}}
	if e.config.Dimensions > 0 {
		params.Dimensions = sdk.Int(int64(e.config.Dimensions))
	}
	var response *http.Response
	usage.Calls++
	answer, err := e.embeddings.New(ctx, params, option.WithResponseInto(&response))
	if err != nil {
		failure := classify(ctx, err, response)
		if failure.err.Class == task.OutputInvalid {
			failure.err.Class = task.ProjectionFailed
		}
		return nil, failure
	}
	usage.TokensIn += answer.Usage.PromptTokens
	vectors, reason := e.read(answer, len(texts))
	if reason != "" {
		failure := model.NewError(task.ProjectionFailed, reason, nil)
		failure.Status = http.StatusOK
		return nil, &failedCall{err: failure}
	}
	return vectors, nil
}

// read returns the vectors in the order of the texts, or why the answer cannot be used.
func (e *Embedder) read(answer *sdk.CreateEmbeddingResponse, want int) ([]model.Vector, string) {
	if len(answer.Data) != want {
		return nil, "wrong number of vectors"
	}
	vectors := make([]model.Vector, want)
	for place, item := range answer.Data {
		index := int64(place) // the order of the list, for servers that don't number
		if item.JSON.Index.Valid() {
			index = item.Index
		}
		if index < 0 || index >= int64(want) || vectors[index] != nil {
			return nil, "wrong order of vectors"
		}
		if len(item.Embedding) == 0 {
			return nil, "empty vector"
		}
		e.dimensions.CompareAndSwap(0, int64(len(item.Embedding)))
		if int64(len(item.Embedding)) != e.dimensions.Load() {
			return nil, "wrong dimensions"
		}
		vector, ok := unit(item.Embedding)
		if !ok {
			return nil, "vector without direction"
		}
		vectors[index] = vector
	}
	return vectors, ""
}

// unit returns numbers scaled to length 1, false if they have no direction.
func unit(numbers []float64) (model.Vector, bool) {
	sum := 0.0
	for _, x := range numbers {
		sum += x * x
	}
	length := math.Sqrt(sum)
	if length == 0 || math.IsNaN(length) || math.IsInf(length, 0) {
		return nil, false
	}
	vector := make(model.Vector, len(numbers))
	for i, x := range numbers {
		vector[i] = float32(x / length)
	}
	return vector, true
}
