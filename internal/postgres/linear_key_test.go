package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// keyCall sends a command, told by its text, under a key.
type keyCall struct{ key, text string }

// What a key answers.
type keyAnswer struct {
	kind string // accepted, replayed, conflict, nothing, unknown
	id   uuid.UUID
}

// keyState is a key: free, or taken once and for all by a command.
type keyState struct {
	text string
	id   uuid.UUID
}

// keyModel is one key as a register that is written once.
func keyModel() porcupine.NondeterministicModel {
	return porcupine.NondeterministicModel{
		Partition: func(calls []porcupine.Operation) [][]porcupine.Operation {
			byKey := map[string][]porcupine.Operation{}
			for _, op := range calls {
				k := op.Input.(keyCall).key
				byKey[k] = append(byKey[k], op)
			}
			var parts [][]porcupine.Operation
			for _, part := range byKey {
				parts = append(parts, part)
			}
			return parts
		},
		Init: func() []any { return []any{keyState{}} },
		Step: func(state, input, output any) []any {
			now, call, answer := state.(keyState), input.(keyCall), output.(keyAnswer)
			free, taken := now == keyState{}, keyState{call.text, answer.id}
			possible := map[string]bool{
				"accepted": free,
				"replayed": now == taken,
				"conflict": !free && now.text != call.text,
				"nothing":  true,
				"unknown":  true,
			}
			switch {
			case !possible[answer.kind]:
				return nil
			case free && answer.kind == "accepted":
				return []any{taken}
			case free && answer.kind == "unknown":
				return []any{now, taken}
			default:
				return []any{now}
			}
		},
	}
}

// TestLinearizableKey lets concurrent callers send the same and different commands under a few keys.
func TestLinearizableKey(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	eachHistory(t, func(w *world, l *line) {
		w.caller = w.workspace(100_000)
		h := &history{start: time.Now()}
		together(linearClients, func(client int) {
			for n := range linearCalls {
				// Three keys at a time, so that every key sees a race for its first use.
				call := keyCall{fmt.Sprintf("key-%d", n/3*3+rand.IntN(3)), []string{"a", "b"}[rand.IntN(2)]}
				h.call(client, call, func() (any, bool) { return answerOf(l.accept(call.key, call.text)) })
			}
		})
		for _, op := range h.calls {
			seen[op.Output.(keyAnswer).kind]++
			if op.Output.(keyAnswer).kind == "" {
				t.Fatalf("an answer that no key gives: %+v", op)
			}
		}
		h.check(t, keyModel())
		w.books()
	})
	for _, kind := range []string{"accepted", "replayed", "conflict", "unknown"} {
		if seen[kind] == 0 {
			t.Errorf("no call was answered with %s: %v", kind, seen)
		}
	}
	t.Logf("answers: %v", seen)
}

// answerOf names what the caller of a key was told.
func answerOf(receipt write.Receipt, sent uuid.UUID, err error) (answer any, known bool) {
	switch {
	case err == nil && receipt.Replayed:
		return keyAnswer{"replayed", receipt.EventID}, true
	case err == nil:
		return keyAnswer{"accepted", receipt.EventID}, true
	case fault.Is(err, fault.IdempotencyConflict):
		return keyAnswer{kind: "conflict"}, true
	case fault.Is(err, fault.IdempotencyInProgress), fault.Is(err, fault.UnavailableNow):
		return keyAnswer{kind: "nothing"}, true
	case fault.Is(err, fault.AcceptanceUnknown):
		return keyAnswer{"unknown", sent}, false
	default:
		return keyAnswer{}, true
	}
}
