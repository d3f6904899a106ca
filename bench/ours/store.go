package ours

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/model/offline"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// Store is Holdfast's store called directly, without HTTP, NATS and model.
type Store struct {
	db       *postgres.DB
	tenants  []Tenant
	embedder *offline.Embedder
	name     string
	next     atomic.Int64
}

// OpenStore opens it with a pool of its own, as processes do by default or with a commit for each step.
func OpenStore(ctx context.Context, databaseURL string, tenants []Tenant, conns int32, grouped bool) (*Store, error) {
	db, err := postgres.Open(ctx, postgres.Config{URL: databaseURL, MaxConns: conns, GroupCommit: grouped})
	if err != nil {
		return nil, err
	}
	return &Store{db: db, tenants: tenants, embedder: offline.NewEmbedder(), name: "bench-" + uuid.NewString()}, nil
}

// Close closes its pool.
func (s *Store) Close() { s.db.Close() }

// Accept commits one command: key, task, hold and balance, as POST /v1/memories does.
func (s *Store) Accept(ctx context.Context) (uuid.UUID, error) {
	payload, err := add().Encode()
	if err != nil {
		return uuid.Nil, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return uuid.Nil, fmt.Errorf("make event id: %w", err)
	}
	prices := credit.DefaultPrices()
	item := write.Acceptance{
		TaskID: id, WorkspaceID: s.tenants[s.next.Add(1)%int64(len(s.tenants))].ID, Kind: task.Infer,
		Claim: write.Claim{FingerprintVersion: command.FingerprintVersion}, Scope: memory.Scope{UserID: User()}, Ordered: true,
		Payload: payload, Format: command.Format, Policy: []byte("{}"), Price: prices.Of(task.Infer, true),
		Priority: task.Interactive,
	}
	_, _ = rand.Read(item.Claim.KeyHash[:]) // never fails
	_, _ = rand.Read(item.Claim.Fingerprint[:])
	return id, s.db.Accept(ctx, []write.Acceptance{item})[0].Refused
}

// errNotHad says that a task that must be claimable was not to be had.
var errNotHad = errors.New("claim: the task is not to be had")

// Claim takes the lease of a task by its id.
func (s *Store) Claim(ctx context.Context, id uuid.UUID) (worker.Lease, error) {
	who := worker.Claimant{
		Worker: s.name, TTL: time.Minute, Kinds: []task.Kind{task.Infer}, Format: command.Format,
		MaxAttempts: task.DefaultPolicy().MaxAttempts, Extractor: "offline", Embedder: "offline",
	}
	token, err := uuid.NewRandom()
	if err != nil {
		return worker.Lease{}, fmt.Errorf("make lease token: %w", err)
	}
	claimed := s.db.Claim(ctx, who, []worker.ClaimAsk{{TaskID: id, Token: token}}, false)[0]
	switch {
	case claimed.Err != nil:
		return worker.Lease{}, claimed.Err
	case claimed.Lease == nil:
		return worker.Lease{}, errNotHad
	}
	return *claimed.Lease, nil
}

// Finish commits one record with its vector and ends the task, in one transaction, as with a local embedder.
func (s *Store) Finish(ctx context.Context, lease worker.Lease) error {
	said, _ := Words()
	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("make record id: %w", err)
	}
	embedding, err := s.embedder.Embed(ctx, []string{said})
	if err != nil {
		return fmt.Errorf("embed: %w", err)
	}
	return s.db.Commit(ctx, []worker.Commit{{
		Lease: lease, Plan: memory.Plan{Records: []memory.Planned{{ID: id, Text: said}}}, Complete: true,
		VectorModel: s.embedder.Model(), Vectors: []model.Vector{embedding.Vectors[0]},
	}})[0].Err
}

// Cycle is one command from its acceptance to its end: three commits. It answers how long each took.
func (s *Store) Cycle(ctx context.Context) (steps [3]time.Duration, err error) {
	began := time.Now()
	id, err := s.Accept(ctx)
	if err != nil {
		return steps, err
	}
	steps[0] = time.Since(began)
	began = time.Now()
	lease, err := s.Claim(ctx, id)
	if err != nil {
		return steps, err
	}
	steps[1] = time.Since(began)
	began = time.Now()
	err = s.Finish(ctx, lease)
	steps[2] = time.Since(began)
	return steps, err
}
