package worker

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/task"
)

func TestRun(t *testing.T) {
	t.Parallel()

	t.Run("LocalEmbedderEndsTheTaskWithItsCommit", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.begin()
			m := r.hint(nil)
			r.elapse(0)
			want := []string{"claim", "extract", "commit", "notify", "ack"}
			if !slices.Equal(r.order, want) {
				t.Errorf("it went %v, want %v", r.order, want)
			}
			c := r.commits[0]
			if !c.Complete || c.VectorModel != "vectors-1" || len(c.Vectors) != 1 || c.Work.Usage.TokensIn != 7 {
				t.Errorf("committed %+v", c)
			}
			planned := c.Plan.Records[0]
			if planned.ID.Version() != 7 || planned.Text != "The user likes tea" || string(planned.Metadata) != `{"k":1}` || planned.Verbatim {
				t.Errorf("planned %+v", planned)
			}
			if len(r.notified) != 1 || r.notified[0] != m.id {
				t.Errorf("notified %v", r.notified)
			}
			r.end()
		})
	})

	t.Run("RemoteEmbedderProjectsAfterTheCommit", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.deps.Embedder = &embedder{rig: r}
			head := task.Hint{TaskID: uuid.New(), Seq: 3}
			r.commit = func(context.Context, int) Done { return Done{Head: &head} }
			r.begin()
			m := r.hint(nil)
			r.elapse(0)
			want := []string{"claim", "extract", "commit", "settle", "notify", "ack"}
			if !slices.Equal(r.order, want) {
				t.Errorf("it went %v, want %v", r.order, want)
			}
			if r.commits[0].Complete || len(r.published) != 1 || r.published[0] != head {
				t.Errorf("committed %+v, published %v", r.commits[0], r.published)
			}
			s := r.settles[0]
			if s.Lease.Stage != task.Committed || len(s.Projected) != 1 || s.Projected[0].RecordID != r.commits[0].Plan.Records[0].ID || s.Projected[0].Key == nil {
				t.Errorf("settled %+v", s)
			}
			if m.progress != 2 {
				t.Errorf("%d heartbeats before two remote calls", m.progress)
			}
			r.end()
		})
	})

	t.Run("NothingExtractedEndsWithTheCommit", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.deps.Embedder = &embedder{rig: r}
			r.extract = func(context.Context) (model.Extraction, error) { return model.Extraction{}, nil }
			r.begin()
			r.hint(nil)
			r.elapse(0)
			if len(r.commits) != 1 || !r.commits[0].Complete || len(r.commits[0].Plan.Records) != 0 || len(r.embedded) != 0 {
				t.Errorf("committed %+v", r.commits)
			}
			r.end()
		})
	})

	t.Run("CommittedTaskNeverCallsTheExtractor", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.live = []LiveRecord{{ID: uuid.New(), Version: 4, Text: "old"}}
			r.begin()
			r.hint(func(l *Lease) { l.Stage, l.Payload = task.Committed, nil })
			r.hint(func(l *Lease) { l.Stage, l.Payload, l.Kind = task.Committed, nil, task.Add })
			r.elapse(0)
			if r.extractions != 0 || len(r.commits) != 0 || len(r.settles) != 2 {
				t.Errorf("it went %v", r.order)
			}
			if r.settles[0].Projected[0].Version != 4 {
				t.Errorf("settled %+v", r.settles[0])
			}
			r.end()
		})
	})

	t.Run("UnknownCommitIsRepeatedWithTheSamePlan", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.deps.Embedder = &embedder{rig: r}
			r.commit = func(_ context.Context, try int) Done {
				if try < 4 {
					return Done{Err: fmt.Errorf("commit: %w", fault.ErrCommitUnknown)}
				}
				return Done{} // it had moved on
			}
			r.begin()
			r.hint(nil)
			r.elapse(time.Minute)
			if r.extractions != 1 || len(r.commits) != 4 || len(r.settles) != 1 {
				t.Errorf("it went %v", r.order)
			}
			for _, c := range r.commits {
				if c.Plan.Records[0].ID != r.commits[0].Plan.Records[0].ID {
					t.Error("a repeated commit had another plan")
				}
			}
			r.end()
		})
	})

	t.Run("OpenOutcomeIsResolvedWithoutTheLease", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.heartbeat = func(context.Context) (Beat, error) {
				if len(r.commits) > 0 {
					return Beat{}, fault.ErrLeaseLost // the row says succeeded: it was committed
				}
				return Beat{}, nil
			}
			r.commit = func(ctx context.Context, try int) Done {
				if try == 1 {
					pause(ctx, 14*time.Second)
					return Done{Err: fault.ErrCommitUnknown}
				}
				return Done{Ended: true, Err: fault.ErrLeaseLost}
			}
			r.extract = lasting(10 * time.Second)
			r.begin()
			m := r.hint(nil)
			r.elapse(time.Minute)
			if len(r.commits) != 2 || len(r.notified) != 1 || m.acks != 1 {
				t.Errorf("it went %v", r.order)
			}
			r.end()
		})
	})

	t.Run("DatabaseFailureIsInternalAfterFiveTries", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.commit = func(context.Context, int) Done { return Done{Err: errDatabase} }
			r.begin()
			m := r.hint(nil)
			r.elapse(time.Minute)
			if len(r.commits) != stepTries || len(r.laters) != 1 || r.laters[0].Class != task.InternalFailure || m.acks != 1 {
				t.Errorf("it went %v, %+v", r.order, r.laters)
			}
			r.end()
		})
	})

	t.Run("UnsavedEndReturnsTheMessage", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.commit = func(context.Context, int) Done { return Done{Err: errDatabase} }
			r.later = func(context.Context) Done { return Done{Err: errDatabase} }
			r.begin()
			m := r.hint(nil)
			r.elapse(time.Minute)
			if m.acks != 0 || !slices.Equal(m.naks, []time.Duration{nakDelay}) {
				t.Errorf("acked %d times, returned %v", m.acks, m.naks)
			}
			r.end()
		})
	})

	t.Run("OneLineForEachClaim", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.begin()
			m := r.hint(nil)
			r.elapse(0)
			r.end()
			lines := 0
			for line := range bytes.Lines(r.logs.bytes()) {
				if !strings.Contains(string(line), m.id.String()) {
					continue
				}
				lines++
				for _, part := range []string{`"attempt":1`, `"from":"running/accepted"`, `"to":"succeeded/projected"`, `"workspace_id"`} {
					if !strings.Contains(string(line), part) {
						t.Errorf("%s is not in %s", part, line)
					}
				}
			}
			if lines != 1 {
				t.Errorf("%d lines: %s", lines, r.logs.bytes())
			}
		})
	})
}

func TestProjection(t *testing.T) {
	t.Parallel()
	records := func(n int) []LiveRecord {
		var live []LiveRecord
		for i := range n {
			live = append(live, LiveRecord{ID: uuid.New(), Version: 1, Text: fmt.Sprint("text ", i)})
		}
		return live
	}
	committed := func(l *Lease) { l.Stage = task.Committed }
	unit := func(_ context.Context, texts []string) (model.Embedding, error) {
		found := model.Embedding{Usage: model.Usage{Calls: 1}}
		for _, text := range texts {
			if strings.HasSuffix(text, " 5") {
				return found, model.NewError(task.ProjectionRejected, "refused", nil)
			}
			found.Vectors = append(found.Vectors, model.Vector{1})
		}
		return found, nil
	}

	t.Run("BatchesAreBoundedAndARefusedTextIsMarked", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.deps.Embedder, r.live, r.embed = &embedder{rig: r}, records(embedBatch+10), unit
			r.begin()
			r.hint(committed)
			r.elapse(0)
			for _, texts := range r.embedded {
				if len(texts) > embedBatch {
					t.Errorf("a call had %d texts", len(texts))
				}
			}
			if len(r.settles) != 1 || len(r.settles[0].Projected) != embedBatch+10 {
				t.Fatalf("settled %+v", r.settles)
			}
			for i, p := range r.settles[0].Projected {
				if (p.Vector == nil) != (i == 5) || p.RecordID != r.live[i].ID {
					t.Errorf("record %d has vector %v", i, p.Vector)
				}
			}
			r.end()
		})
	})

	t.Run("FailureAfterTheCommitNeverFailsTheTask", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.deps.Embedder = &embedder{rig: r}
			r.embed = func(context.Context, []string) (model.Embedding, error) {
				limited := model.NewError(task.ProviderRateLimited, "status", nil)
				limited.RetryAfter, limited.Status = 90*time.Second, 429
				return model.Embedding{}, limited
			}
			r.begin()
			r.hint(func(l *Lease) { l.Spent = task.Spent{task.ProjectionFailed: 1000, task.ProviderRateLimited: 1000} })
			r.elapse(0)
			if len(r.fails) != 0 || len(r.laters) != 1 || r.laters[0].Class != task.ProjectionFailed || r.laters[0].Delay < 90*time.Second {
				t.Fatalf("it went %v, %+v", r.order, r.laters)
			}
			if r.laters[0].Lease.Stage != task.Committed || r.laters[0].Code != task.CodeProjectionFailed {
				t.Errorf("given up as %+v", r.laters[0])
			}
			want := []string{"claim", "extract", "commit", "pause em 1m30s", "later", "ack"}
			if !slices.Equal(r.order, want) {
				t.Errorf("it went %v, want %v", r.order, want)
			}
			r.end()
		})
	})

	t.Run("LocalEmbedderThatFailsLosesNoMemory", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.embed = func(context.Context, []string) (model.Embedding, error) { panic(canary) }
			r.begin()
			r.hint(nil)
			r.elapse(0)
			if len(r.commits) != 1 || r.commits[0].Complete || len(r.fails) != 0 || len(r.laters) != 1 ||
				r.laters[0].Class != task.InternalFailure || r.laters[0].Lease.Stage != task.Committed {
				t.Errorf("it went %v, %+v", r.order, r.laters)
			}
			r.end()
		})
	})
}
