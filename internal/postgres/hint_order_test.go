package postgres_test

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// seenHints looks, as a quick worker would, whether the task of a hint is there to be claimed.
type seenHints struct {
	w       *world
	missing []uuid.UUID
}

func (h *seenHints) Publish(ctx context.Context, hint task.Hint) {
	var there bool
	err := h.w.sql.QueryRow(ctx, `SELECT EXISTS (SELECT FROM tasks WHERE id = $1 AND hint_seq >= $2)`, hint.TaskID, hint.Seq).
		Scan(&there)
	if err != nil || !there {
		h.missing = append(h.missing, hint.TaskID)
	}
}

// TestHintOrder reads the database at the moment of each hint.
func TestHintOrder(t *testing.T) {
	t.Parallel()
	t.Run("NothingIsHintedThatIsNotCommitted", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 3)
		hints := &seenHints{w: w}
		accepter, err := write.NewAccepter(w.db, hints, credit.DefaultPrices(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := accepter.Accept(t.Context(), w.caller, key(t, "k"), say("u", "a")); err != nil {
			t.Fatal(err)
		}
		if _, err := accepter.Accept(t.Context(), w.caller, key(t, "poor"), say("u", "b")); !fault.Is(err, fault.InsufficientCredits) {
			t.Fatalf("the second: %v", err)
		}
		if len(hints.missing) != 0 {
			t.Errorf("hinted without a task: %v", hints.missing)
		}
	})
}
