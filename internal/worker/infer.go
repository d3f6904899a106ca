package worker

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// infer turns an accepted command into canonical records, and goes on to their projection.
func (r *run) infer(ctx context.Context) (Done, error) {
	plan, err := r.extract(ctx)
	if err != nil {
		return Done{}, err
	}
	commit := Commit{Lease: r.lease, Plan: plan}
	r.complete(ctx, &commit)
	commit.Work = r.work
	done := r.follow(ctx, CommitPart, func(ctx context.Context) Done { return one(r.w.deps.Steps.Commit(ctx, []Commit{commit})) })
	if done.Err != nil {
		return done, fmt.Errorf("commit: %w", done.Err)
	}
	failpoint.Hit("worker.after_commit")
	if done.Ended {
		return done, nil
	}
	r.announce(ctx, done)
	r.lease.Stage = task.Committed
	return r.project(ctx)
}

// extract reads the command, asks the model about it and freezes its answer as a plan.
func (r *run) extract(ctx context.Context) (memory.Plan, error) {
	add, err := commandOf(r.lease)
	if err != nil {
		return memory.Plan{}, unreadable()
	}
	request := requestOf(add, r.lease)
	known, err := r.known(ctx, request.Messages)
	if err != nil {
		return memory.Plan{}, err
	}
	request.Known = numbered(known)
	failpoint.Hit("worker.before_inference")
	facts, err := r.read(ctx, request)
	if err != nil {
		return memory.Plan{}, err
	}
	failpoint.Hit("worker.after_inference")
	plan, err := planOf(facts, add, known)
	return stored(plan, r.lease), err
}

func requestOf(add command.Add, lease Lease) model.Request {
	policy := model.ReadPolicy(lease.Policy)
	request := model.Request{
		Prompt:   policy.Prompt,
		Messages: make([]model.Message, len(add.Messages)), Instructions: wishesOf(policy, add), Categories: policy.Categories,
		Said: lease.AcceptedAt, EventDate: add.EventDate,
	}
	if len(add.Categories) > 0 {
		request.Categories = add.Categories
	}
	for i, m := range add.Messages {
		request.Messages[i] = model.Message{Role: m.Role, Name: m.Name, Content: m.Content}
	}
	return request
}

// wishesOf returns the workspace's wishes and then the command's own.
func wishesOf(policy model.Policy, add command.Add) string {
	if policy.Instructions == "" || add.Instructions == "" {
		return policy.Instructions + add.Instructions
	}
	return policy.Instructions + "\n\n" + add.Instructions
}

// planOf gives each fact its record. The ids are final. A fact without a date of its own has the command's.
func planOf(facts []model.Fact, add command.Add, known []KnownRecord) (memory.Plan, error) {
	plan := memory.Plan{Records: make([]memory.Planned, 0, len(facts))}
	for _, f := range facts {
		id, err := uuid.NewV7()
		if err != nil {
			return memory.Plan{}, fmt.Errorf("make record id: %w", err)
		}
		date := f.EventDate
		if date == nil {
			date = add.EventDate
		}
		plan.Records = append(plan.Records, memory.Planned{
			ID: id, Text: f.Text, Type: f.Type, EventDate: date, ExpiresAt: add.ExpiresAt, Metadata: add.Metadata,
			Categories: f.Categories, Supersedes: target(known, f),
		})
	}
	return plan, nil
}

// complete adds the vectors to a commit when they cost no network call, or when there are none to make; the task
// then ends with its commit. If a local embedder fails, the records are committed without: what was extracted
// and paid for is never lost to a projection.
func (r *run) complete(ctx context.Context, commit *Commit) {
	embedder := r.w.deps.Embedder
	if len(commit.Plan.Records) > 0 {
		if !embedder.Local() {
			return
		}
		texts := make([]string, len(commit.Plan.Records))
		for i, record := range commit.Plan.Records {
			texts[i] = record.Text
		}
		vectors, err := r.embed(ctx, texts)
		if err != nil {
			return
		}
		commit.Vectors = vectors
	}
	commit.Complete, commit.VectorModel = true, embedder.Model()
}

// one returns the answer to a step of one item.
func one(answers []Done) Done {
	if len(answers) != 1 {
		return Done{Err: fmt.Errorf("%d answers to one step", len(answers))}
	}
	return answers[0]
}
