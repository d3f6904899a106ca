package memory

import (
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/holdfast-memory/holdfast/internal/testkit/property"
)

func TestKeyOf(t *testing.T) {
	t.Parallel()
	t.Run("SameWordsHaveOneKey", func(t *testing.T) {
		t.Parallel()
		for _, pair := range [][2]string{
			{"I like Coffee", "  i LIKE coffee\n"},
			{"café", "cafe\u0301"},
			{"Straße", "STRASSE"},
			{"ﬁsh", "FISH"},
			{"ＡＢＣ", "abc"},
		} {
			if KeyOf(pair[0]) != KeyOf(pair[1]) {
				t.Errorf("%q and %q have different keys", pair[0], pair[1])
			}
		}
	})
	t.Run("OtherWordsHaveOtherKeys", func(t *testing.T) {
		t.Parallel()
		for _, pair := range [][2]string{{"tea", "coffee"}, {"cafe", "café"}, {"a b", "ab"}, {"", "a"}, {"咖啡", "珈琲"}} {
			if KeyOf(pair[0]) == KeyOf(pair[1]) {
				t.Errorf("%q and %q have one key", pair[0], pair[1])
			}
		}
	})
}

func TestLane(t *testing.T) {
	t.Parallel()
	t.Run("DifferentTuplesNeverShareALane", func(t *testing.T) {
		t.Parallel()
		value := rapid.StringOfN(rapid.RuneFrom([]rune("ab\x00")), 0, 3, -1)
		property.Check(t, func(t *rapid.T) {
			draw := func(name string) Scope {
				return Scope{value.Draw(t, name+" user"), value.Draw(t, name+" agent"), value.Draw(t, name+" run"), value.Draw(t, name+" app")}
			}
			a, b := draw("first"), draw("second")
			if (a == b) != (a.Lane() == b.Lane()) {
				t.Fatalf("%+v and %+v", a, b)
			}
		})
	})
	t.Run("TheFieldCounts", func(t *testing.T) {
		t.Parallel()
		if (Scope{UserID: "x"}).Lane() == (Scope{AgentID: "x"}).Lane() {
			t.Fatal("a user and an agent of one name share a lane")
		}
	})
}

func TestHistoryID(t *testing.T) {
	t.Parallel()
	task := uuid.MustParse("0192f0c1-2f3a-7000-8000-000000000001")
	seen := map[uuid.UUID]bool{}
	for ordinal := range 1000 {
		id := HistoryID(task, ordinal)
		if id != HistoryID(task, ordinal) {
			t.Fatal("the id is not derived")
		}
		if seen[id] {
			t.Fatalf("ordinal %d shares its id", ordinal)
		}
		seen[id] = true
	}
	other := uuid.MustParse("0192f0c1-2f3a-7000-8000-000000000002")
	if seen[HistoryID(other, 0)] {
		t.Fatal("two tasks share an id")
	}
}

func TestParseFactType(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]FactType{
		"preference": TypePreference, " Goal ": TypeGoal, "TODO": TypeTodo, "": "", "rumour": "", "fact\x00": "",
	} {
		if got := ParseFactType(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
