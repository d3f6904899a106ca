package access

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/fault"
)

func TestKey(t *testing.T) {
	t.Parallel()
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	text := key.Reveal()
	t.Run("ComesBackFromItsText", func(t *testing.T) {
		t.Parallel()
		again, err := ParseKey(text)
		if err != nil || again != key {
			t.Fatalf("parse: %v, equal %v", err, again == key)
		}
	})
	t.Run("OneWrongCharacterIsRefusedWithoutTheDatabase", func(t *testing.T) {
		t.Parallel()
		for i := range text {
			for _, c := range []byte{'x', '0', '_'} {
				if text[i] == c {
					continue
				}
				wrong := text[:i] + string(c) + text[i+1:]
				if _, err := ParseKey(wrong); !fault.Is(err, fault.InvalidAPIKey) {
					t.Fatalf("character %d changed to %q: %v", i, c, err)
				}
			}
		}
	})
	t.Run("NeverPrintsItsSecret", func(t *testing.T) {
		t.Parallel()
		for _, printed := range []string{fmt.Sprint(key), fmt.Sprintf("%#v", key), fmt.Sprintf("%+v", key), fmt.Sprintf("%s", key)} {
			if strings.Contains(printed, text[17:60]) {
				t.Fatalf("printed %q", printed)
			}
		}
	})
}

func FuzzParseKey(f *testing.F) {
	key, err := NewKey()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(key.Reveal())
	f.Add("")
	f.Add("hfk_aaaaaaaaaaaa_")
	f.Fuzz(func(t *testing.T, text string) {
		if key, err := ParseKey(text); err == nil && key.Reveal() != text {
			t.Fatal("a key that parses must reveal the same text")
		}
	})
}
