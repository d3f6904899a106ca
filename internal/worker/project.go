package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// embedBatch is how many texts one call of the embedder carries: each call has the whole model timeout, and a
// stop or a lost lease is noticed between two of them.
const embedBatch = 64

// project makes the vectors of a committed task's live records and ends it.
func (r *run) project(ctx context.Context) (Done, error) {
	embedder := r.w.deps.Embedder
	var live []LiveRecord
	done := r.step(ctx, func(ctx context.Context) Done {
		var err error
		live, err = r.w.deps.Steps.Unprojected(ctx, r.lease, embedder.Model())
		return Done{Err: err}
	})
	if done.Err != nil {
		return done, fmt.Errorf("read unprojected records: %w", done.Err)
	}
	texts := make([]string, len(live))
	for i, record := range live {
		texts[i] = record.Text
	}
	vectors, err := r.embed(ctx, texts)
	if err != nil {
		return Done{}, err
	}
	settle := Settle{Lease: r.lease, Work: r.work, VectorModel: embedder.Model(), Projected: make([]Projection, len(live))}
	for i, record := range live {
		key := memory.KeyOf(record.Text)
		settle.Projected[i] = Projection{RecordID: record.ID, Version: record.Version, Key: &key, Vector: vectors[i]}
	}
	done = r.follow(ctx, SettlePart, func(ctx context.Context) Done { return one(r.w.deps.Steps.Settle(ctx, []Settle{settle})) })
	if done.Err != nil {
		return done, fmt.Errorf("settle: %w", done.Err)
	}
	return done, nil
}

// embed returns a vector for each text, nil for a text that the embedder refuses for good.
func (r *run) embed(ctx context.Context, texts []string) ([]model.Vector, error) {
	vectors := make([]model.Vector, 0, len(texts))
	for first := 0; first < len(texts); first += embedBatch {
		found, err := r.embedSome(ctx, texts[first:min(first+embedBatch, len(texts))])
		if err != nil {
			return nil, err
		}
		vectors = append(vectors, found...)
	}
	return vectors, nil
}

// embedSome embeds one batch. A refusal of the batch as a whole is narrowed down by halves to the texts that are
// meant: at most twice as many calls as texts.
func (r *run) embedSome(ctx context.Context, texts []string) ([]model.Vector, error) {
	embedder := r.w.deps.Embedder
	var answer model.Embedding
	err := r.call(ctx, embedder.Provider(), embedder.Local(), func(ctx context.Context) (model.Usage, error) {
		var err error
		answer, err = embedder.Embed(ctx, texts)
		if err == nil && len(answer.Vectors) != len(texts) {
			err = fmt.Errorf("%d vectors for %d texts", len(answer.Vectors), len(texts))
		}
		return answer.Usage, err
	})
	if f, ok := errors.AsType[*failure](err); ok && f.origin == task.ProjectionRejected {
		if len(texts) == 1 {
			return []model.Vector{nil}, nil
		}
		left, err := r.embedSome(ctx, texts[:len(texts)/2])
		if err != nil {
			return nil, err
		}
		right, err := r.embedSome(ctx, texts[len(texts)/2:])
		return append(left, right...), err
	}
	if err != nil {
		return nil, err
	}
	return answer.Vectors, nil
}
