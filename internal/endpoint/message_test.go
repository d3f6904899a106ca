package endpoint

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/task"
)

func TestMessage(t *testing.T) {
	t.Parallel()
	hook, about := uuid.New(), uuid.New()
	made := func(hook uuid.UUID, generation int) Message {
		entry := task.FeedEntry{Place: task.FeedPlace{TaskID: about, Generation: generation}, Kind: task.Infer, At: time.Unix(1, 0)}
		m, err := NewMessage(hook, Succeeded, entry, Facts{Outcome: task.Stored})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	first := made(hook, 1)

	t.Run("MadeAgainIsTheSame", func(t *testing.T) {
		t.Parallel()
		if again := made(hook, 1); again.ID != first.ID || !bytes.Equal(again.Body, first.Body) {
			t.Errorf("%+v, again %+v", first, again)
		}
	})
	t.Run("OfAnotherRunOrReceiverIsAnother", func(t *testing.T) {
		t.Parallel()
		if made(hook, 2).ID == first.ID || made(uuid.New(), 1).ID == first.ID {
			t.Error("two messages have one id")
		}
	})
}
