package command_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
)

func items(t *testing.T, account, key string, inputs ...command.ItemInput) []command.Item {
	t.Helper()
	read, err := command.ItemsKey([]string{key})
	if err != nil {
		t.Fatal(err)
	}
	named, err := command.NewItems(account, read, inputs)
	if err != nil {
		t.Fatal(err)
	}
	return named
}

func text(s string) *string { return &s }

func TestItemsAreNamed(t *testing.T) {
	t.Parallel()
	nine, midnight := text("2026-03-01T09:00+09:00"), text("2026-03-01T00:00Z")
	plain := command.ItemInput{Text: "I have a cat."}
	long := strings.Repeat("k", 250)
	workspace := uuid.MustParse("0192f0c1-2222-7000-8000-000000000001")
	for _, c := range []struct {
		name           string
		oneKey, twoKey string
		one, two       command.ItemInput
		same           bool
	}{
		{"ByTheirOwnID", "a", "b", command.ItemInput{ID: text("x"), Text: "one"}, command.ItemInput{ID: text("x"), Text: "two"}, true},
		{"OwnIDsAreNotTrimmed", "", "", command.ItemInput{ID: text("x"), Text: "t"}, command.ItemInput{ID: text("x "), Text: "t"}, false},
		{"ByKeyAndPlace", "batch-7", "batch-7", plain, command.ItemInput{Text: "other words"}, true},
		{"ByTheTrimmedKey", "batch-7", "  batch-7 ", plain, plain, true},
		{"ByTheKeyCutAt200", long, long[:200], plain, plain, true},
		{"NotByWhatFollows200", long, long[:199], plain, plain, false},
		{"AnotherKeyIsAnother", "batch-7", "batch-8", plain, plain, false},
		{"AGeneratedNameIsTheCallersToo", "batch-7", "", plain, command.ItemInput{ID: text("batch-7:0"), Text: "t"}, true},
		{"ByWordsWithATime", "", "", command.ItemInput{Text: "t", At: nine}, command.ItemInput{Text: "t", At: nine}, true},
		{"OtherWordsAreOthers", "", "", command.ItemInput{Text: "t", At: nine}, command.ItemInput{Text: "u", At: nine}, false},
		{"OtherAuthorsAreOthers", "", "", command.ItemInput{Text: "t", At: nine, Author: text("Ann")}, command.ItemInput{Text: "t", At: nine}, false},
		{"OtherSessionsAreOthers", "", "", command.ItemInput{Text: "t", At: nine, Session: text("s")}, command.ItemInput{Text: "t", At: nine}, false},
		{"OneInstantInTwoTextsIsTwo", "", "", command.ItemInput{Text: "t", At: nine}, command.ItemInput{Text: "t", At: midnight}, false},
		{"TheKeyComesBeforeTheWords", "k", "k", command.ItemInput{Text: "t", At: nine}, command.ItemInput{Text: "u", At: midnight}, true},
		{"AtRandomWithoutATime", "", "", plain, plain, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			one, two := items(t, "u", c.oneKey, c.one)[0], items(t, "u", c.twoKey, c.two)[0]
			if (one.ID == two.ID) != c.same || (one.Key() == two.Key()) != c.same || (one.EventID(workspace) == two.EventID(workspace)) != c.same {
				t.Fatalf("%q and %q", one.ID, two.ID)
			}
			if !command.IsItemEvent(one.EventID(workspace)) {
				t.Fatalf("event id %q", one.EventID(workspace))
			}
		})
	}
}

func TestItemsOfOtherAccountsAreOthers(t *testing.T) {
	t.Parallel()
	one, two := items(t, "u", "k", command.ItemInput{Text: "t"})[0], items(t, "v", "k", command.ItemInput{Text: "t"})[0]
	workspace := uuid.New()
	if one.ID != "k:0" || one.ID != two.ID || one.Key() == two.Key() || one.EventID(workspace) == two.EventID(workspace) {
		t.Fatalf("%+v and %+v", one, two)
	}
	if one.EventID(workspace) == one.EventID(uuid.New()) {
		t.Fatal("the workspace is no part of the event id")
	}
}

func TestPlacesCountAllItemsOfABatch(t *testing.T) {
	t.Parallel()
	named := items(t, "u", "k", command.ItemInput{Text: "a"}, command.ItemInput{ID: text("own"), Text: "b"}, command.ItemInput{Text: "c"})
	if named[0].ID != "k:0" || named[1].ID != "own" || named[2].ID != "k:2" {
		t.Fatalf("%q %q %q", named[0].ID, named[1].ID, named[2].ID)
	}
}

func TestItemTimes(t *testing.T) {
	t.Parallel()
	nine := items(t, "u", "k", command.ItemInput{Text: "t", At: text("2026-03-01T09:00+09:00")})[0]
	midnight := items(t, "u", "k", command.ItemInput{Text: "t", At: text("2026-03-01T00:00:00Z")})[0]
	if !nine.At.Equal(*midnight.At) || nine.At.Location().String() != "UTC" {
		t.Fatalf("%s and %s", nine.At, midnight.At)
	}
}

func TestItemsAreChecked(t *testing.T) {
	t.Parallel()
	many := make([]command.ItemInput, command.MaxItems+1)
	for i := range many {
		many[i].Text = "t"
	}
	for _, c := range []struct {
		name    string
		inputs  []command.ItemInput
		pointer string
	}{
		{"None", nil, "/items"},
		{"TooMany", many, "/items"},
		{"Blank", []command.ItemInput{{Text: "t"}, {Text: " \u200b"}}, "/items/1/text"},
		{"TooLong", []command.ItemInput{{Text: strings.Repeat("ü", command.MaxItemText+1)}}, "/items/0/text"},
		{"NUL", []command.ItemInput{{Text: "a\x00"}}, "/items/0/text"},
		{"BlankID", []command.ItemInput{{ID: text(""), Text: "t"}}, "/items/0/id"},
		{"LongID", []command.ItemInput{{ID: text(strings.Repeat("i", 513)), Text: "t"}}, "/items/0/id"},
		{"NoOffset", []command.ItemInput{{Text: "t", At: text("2026-03-01T09:00:00")}}, "/items/0/at"},
		{"Comma", []command.ItemInput{{Text: "t", At: text("2026-03-01T09:00:00,5Z")}}, "/items/0/at"},
		{"LongAuthor", []command.ItemInput{{Text: "t", Author: text(strings.Repeat("a", 129))}}, "/items/0/author"},
		{"LongSession", []command.ItemInput{{Text: "t", Session: text(strings.Repeat("s", 513))}}, "/items/0/session"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := command.NewItems("u", "", c.inputs)
			f, ok := errors.AsType[*fault.Error](err)
			if !ok || f.Code != fault.InvalidRequest || f.Pointer != c.pointer {
				t.Fatalf("%v, want a fault at %s", err, c.pointer)
			}
		})
	}
}

func TestItemsKeyIsOneLine(t *testing.T) {
	t.Parallel()
	if key, err := command.ItemsKey(nil); key != "" || err != nil {
		t.Fatalf("%q, %v", key, err)
	}
	if key, err := command.ItemsKey([]string{"two words, ü"}); key != "two words, ü" || err != nil {
		t.Fatalf("%q, %v", key, err)
	}
	for _, lines := range [][]string{{"a", "b"}, {"\xff"}} {
		if _, err := command.ItemsKey(lines); !fault.Is(err, fault.InvalidIdempotencyKey) {
			t.Fatalf("%q: %v", lines, err)
		}
	}
}

func TestAStoredItemIsReadAsItsAuthorsMessage(t *testing.T) {
	t.Parallel()
	item := items(t, "u", "k", command.ItemInput{Text: "t", Author: text(" Ann "), Session: text("s"), At: text("2026-03-01T09:00+09:00")})[0]
	payload, err := item.Encode()
	if err != nil {
		t.Fatal(err)
	}
	add, err := command.DecodeItem(command.Format, payload)
	if err != nil {
		t.Fatal(err)
	}
	m := add.Messages[0]
	if add.Scope.UserID != "u" || add.Scope.RunID != "s" || len(add.Messages) != 1 || m.Name != "Ann" || m.Content != "t" || !add.EventDate.Equal(*item.At) {
		t.Fatalf("%+v", add)
	}
	for _, broken := range []string{"", "{}", `{"account":"u"}`, string(payload) + "1", `{"account":"u","id":"i","text":"t","more":1}`} {
		if _, err := command.DecodeItem(command.Format, []byte(broken)); err == nil {
			t.Errorf("%s is no item", broken)
		}
	}
}
