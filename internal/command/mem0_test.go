package command

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
)

func mem0At(text string) time.Time {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		panic(err)
	}
	return at
}

func TestMem0(t *testing.T) {
	t.Parallel()
	m := Mem0{Now: mem0At("2026-01-01T00:00:00Z")}
	const id = "01920000-0000-7000-8000-000000000001"
	t.Run("KeepsIDScopeTimesMetadataAndCategories", func(t *testing.T) {
		t.Parallel()
		got, history, err := m.Convert([]byte(`{"id":"` + id + `","memory":"Likes tea","user_id":" ada ","agent_id":null,"app_id":"web",
"session_id":"s1","hash":"x","score":0.5,"metadata":{"z":1.50,"a":[1,{"n":null}]},"categories":["food","personal_details"],
"created_at":"2025-02-27T16:33:20.557123-07:00","updated_at":"2025-03-01T00:00:00Z","expiration_date":"2030-01-31",
"structured_attributes":{"day":1}}`))
		if err != nil {
			t.Fatal(err)
		}
		created := mem0At("2025-02-27T23:33:20.557123Z")
		if got.ID.String() != id || got.Text != "Likes tea" || *got.UserID != "ada" || got.AgentID != nil || *got.AppID != "web" ||
			*got.RunID != "s1" || string(got.Metadata) != `{"z":1.50,"a":[1,{"n":null}]}` || strings.Join(got.Categories, " ") != "food personal_details" {
			t.Errorf("%+v", got)
		}
		if !got.CreatedAt.Equal(created) || !got.SaidAt.Equal(created) || !got.UpdatedAt.Equal(mem0At("2025-03-01T00:00:00Z")) ||
			!got.ExpiresAt.Equal(mem0At("2030-02-01T00:00:00Z")) {
			t.Errorf("times %+v", got)
		}
		check := NewSnapshotCheck(m.Now)
		header := &SnapshotHeader{Version: SnapshotVersion, Workspace: uuid.New(), CreatedAt: created}
		footer := &SnapshotFooter{Memories: 1, History: 1}
		for _, line := range []SnapshotLine{{Header: header}, {Memory: &got}, {History: &history}, {Footer: footer}} {
			text, err := line.AppendTo(nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := check.Line(text[:len(text)-1]); err != nil {
				t.Errorf("an import refuses %s", text)
			}
		}
		again, _, _ := m.Convert([]byte(`{"id":"` + id + `","memory":"Likes tea","user_id":"ada","created_at":1740699200.557}`))
		if again.Event != got.Event {
			t.Error("the same memory has another event")
		}
	})
	t.Run("ReadsTheOtherSpellings", func(t *testing.T) {
		t.Parallel()
		for given, want := range map[string]string{
			`"created_at":"2025-02-27T16:33:20"`:         "2025-02-27T16:33:20Z",
			`"created_at":"2025-02-27 16:33:20.5"`:       "2025-02-27T16:33:20.5Z",
			`"created_at":1740674000`:                    "2025-02-27T16:33:20Z",
			`"created_at":1740674000.25`:                 "2025-02-27T16:33:20.25Z",
			`"created_at":"2025-02-27T16:33:20.000001Z"`: "2025-02-27T16:33:20.000001Z",
		} {
			got, _, err := m.Convert([]byte(`{"id":"` + id + `","text":"a","run_id":"r",` + given + `}`))
			if err != nil || !got.CreatedAt.Equal(mem0At(want)) || !got.UpdatedAt.Equal(got.CreatedAt) || *got.RunID != "r" {
				t.Errorf("%s: %v %v", given, got.CreatedAt, err)
			}
		}
		ended, _, err := m.Convert([]byte(`{"id":"` + id + `","memory":"a","user_id":"u","created_at":"2025-01-01T00:00:00Z",
"updated_at":"2025-02-01T00:00:00Z","replaced_by":"01920000-0000-7000-8000-000000000002","expiration_date":"2025-06-01T12:00:00Z"}`))
		if err != nil || ended.ValidTo == nil || !ended.ValidTo.Equal(ended.UpdatedAt) || ended.SupersededBy == nil ||
			!ended.ExpiresAt.Equal(mem0At("2025-06-01T12:00:00Z")) {
			t.Errorf("%+v %v", ended, err)
		}
	})
	t.Run("ADefaultUserIsForThoseWithoutAnyEntity", func(t *testing.T) {
		t.Parallel()
		with := Mem0{Now: m.Now, DefaultUser: "nobody"}
		bare := `{"id":"` + id + `","memory":"a","created_at":"2025-01-01T00:00:00Z"`
		if got, _, err := with.Convert([]byte(bare + `}`)); err != nil || *got.UserID != "nobody" {
			t.Errorf("%+v %v", got, err)
		}
		if got, _, err := with.Convert([]byte(bare + `,"agent_id":"a"}`)); err != nil || got.UserID != nil {
			t.Errorf("%+v %v", got, err)
		}
	})
	t.Run("RefusesWhatItCannotKeep", func(t *testing.T) {
		t.Parallel()
		good := map[string]string{"id": `"` + id + `"`, "memory": `"secret-a"`, "user_id": `"u"`, "created_at": `"2025-01-01T00:00:00Z"`}
		for _, bad := range []struct{ member, value, pointer string }{
			{"id", `7`, "/id"},
			{"id", `"secret"`, "/id"},
			{"id", `null`, "/id"},
			{"memory", `{"a":1}`, "/memory"},
			{"memory", `7`, "/memory"},
			{"memory", `" "`, "/memory"},
			{"memory", `null`, "/memory"},
			{"user_id", `null`, ""},
			{"user_id", `7`, "/user_id"},
			{"user_id", `""`, ""},
			{"created_at", `"yesterday"`, "/created_at"},
			{"created_at", `null`, "/created_at"},
			{"created_at", `"2027-01-01T00:00:00Z"`, "/created_at"},
			{"updated_at", `true`, "/updated_at"},
			{"metadata", `"secret"`, "/metadata"},
			{"metadata", `[1]`, "/metadata"},
			{"categories", `"secret"`, "/categories"},
			{"categories", `["a","a"]`, "/categories"},
			{"categories", `[""]`, "/categories"},
			{"expiration_date", `"soon"`, "/expiration_date"},
			{"replaced_by", `"secret"`, "/replaced_by"},
			{"created_at", `"0000-01-01T00:00:00Z"`, ""},
			{"metadata", `{"n":9007199254740993}`, "/metadata"},
		} {
			var members []string
			for name, value := range good {
				if name != bad.member {
					members = append(members, `"`+name+`":`+value)
				}
			}
			raw := `{` + strings.Join(append(members, `"`+bad.member+`":`+bad.value), ",") + `}`
			_, _, err := m.Convert([]byte(raw))
			f, _ := err.(*fault.Error) //nolint:errorlint // the fault itself, not one that is wrapped
			if f == nil || f.Kind() != fault.Invalid || !strings.HasPrefix(f.Pointer, bad.pointer) || strings.Contains(f.Error(), "secret") {
				t.Errorf("%s %s: %v", bad.member, bad.value, err)
			}
		}
		for _, raw := range []string{`[]`, `"a"`, `7`, `null`} {
			if _, _, err := m.Convert([]byte(raw)); err == nil {
				t.Errorf("%s was taken", raw)
			}
		}
	})
}

func TestReadMem0(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"List":         `[{"a":1},{"b":[2,3]}]`,
		"Page":         `{"count":2,"next":null,"results":[{"a":1},{"b":[2,3]}],"previous":null}`,
		"Export":       `{"memories":[{"a":1},{"b":[2,3]}]}`,
		"SomePages":    `{"results":[{"a":1}]}` + "\n" + `{"results":[{"b":[2,3]}]}`,
		"Lines":        `{"a":1}` + "\r\n\n" + ` { "b" : [2,3] }` + "\n",
		"EmptyPageToo": `{"results":[]}[{"a":1},{"b":[2,3]}]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			err := ReadMem0(strings.NewReader(text), func(position int, raw []byte) error {
				if position != len(got)+1 {
					t.Errorf("position %d", position)
				}
				got = append(got, strings.ReplaceAll(string(raw), " ", ""))
				return nil
			})
			if err != nil || strings.Join(got, "|") != `{"a":1}|{"b":[2,3]}` {
				t.Errorf("%v %v", got, err)
			}
		})
	}
	for name, text := range map[string]string{
		"CutOff": `[{"a":1},{"secret":`, "CutOffPage": `{"results":[{"a":1}`, "NoJSON": "secret,b\n", "Twice": `[{"secret":1,"secret":2}]`,
		"Text": `"secret"`, "Rest": `[{"a":1}]secret`, "CutOffMemory": `{"a":1,`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := ReadMem0(strings.NewReader(text), func(int, []byte) error { return nil })
			if !fault.Is(err, fault.InvalidBody) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v", err)
			}
		})
	}
}
