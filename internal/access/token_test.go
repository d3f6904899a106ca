package access

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/fault"
)

func TestToken(t *testing.T) {
	t.Parallel()
	token, err := NewToken()
	if err != nil {
		t.Fatal(err)
	}
	text := token.Reveal()
	t.Run("ComesBackFromItsText", func(t *testing.T) {
		t.Parallel()
		again, err := ParseToken(text)
		if err != nil || again != token || !strings.HasPrefix(text, "hfo_") {
			t.Fatalf("parse: %v, equal %v", err, again == token)
		}
	})
	t.Run("OneWrongCharacterIsRefused", func(t *testing.T) {
		t.Parallel()
		for i := range text {
			wrong := text[:i] + "~" + text[i+1:]
			if _, err := ParseToken(wrong); !fault.Is(err, fault.InvalidAPIKey) {
				t.Fatalf("character %d: %v", i, err)
			}
		}
		for _, short := range []string{"", "hfo_", text[:len(text)-1], text + "x"} {
			if _, err := ParseToken(short); !fault.Is(err, fault.InvalidAPIKey) {
				t.Fatalf("%d characters: %v", len(short), err)
			}
		}
	})
	t.Run("IsNoKeyAndAKeyIsNoToken", func(t *testing.T) {
		t.Parallel()
		if _, err := ParseKey(text); !fault.Is(err, fault.InvalidAPIKey) {
			t.Errorf("a token as a key: %v", err)
		}
		key, err := NewKey()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseToken(key.Reveal()); !fault.Is(err, fault.InvalidAPIKey) {
			t.Errorf("a key as a token: %v", err)
		}
	})
	t.Run("NeverPrintsItsSecret", func(t *testing.T) {
		t.Parallel()
		for _, printed := range []string{fmt.Sprint(token), fmt.Sprintf("%#v", token), fmt.Sprintf("%+v", token)} {
			if strings.Contains(printed, text[17:60]) {
				t.Fatalf("printed %q", printed)
			}
		}
	})
}
