package command

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
)

func TestPolicyChange(t *testing.T) {
	t.Parallel()
	text := func(s string) *string { return &s }

	t.Run("SaysOnlyWhatIsToChange", func(t *testing.T) {
		t.Parallel()
		none := []memory.Category{}
		for _, c := range []struct {
			given PolicyChange
			want  string
		}{
			{PolicyChange{}, `{}`},
			{PolicyChange{Instructions: text(" x ")}, `{"instructions":" x "}`},
			{PolicyChange{Instructions: text(" \u200b")}, `{"instructions":""}`},
			{PolicyChange{Categories: &none}, `{"categories":[]}`},
			{PolicyChange{Categories: &[]memory.Category{{Name: " a "}}}, `{"categories":[{"name":"a"}]}`},
		} {
			change, err := NewPolicyChange(c.given)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := change.Encode(); err != nil || string(got) != c.want {
				t.Errorf("got %s, %v, want %s", got, err, c.want)
			}
		}
	})

	t.Run("RefusesWhatCannotBeKept", func(t *testing.T) {
		t.Parallel()
		for _, wrong := range []string{strings.Repeat("é", MaxInstructions+1), "canary\x00", "canary\xff"} {
			_, err := NewPolicyChange(PolicyChange{Instructions: &wrong})
			if f, ok := errors.AsType[*fault.Error](err); !ok || f.Pointer != "/instructions" || strings.Contains(err.Error(), "canary") {
				t.Errorf("%.20q: %v", wrong, err)
			}
		}
		if _, err := NewPolicyChange(PolicyChange{Instructions: text(strings.Repeat("é", MaxInstructions))}); err != nil {
			t.Errorf("the longest is refused: %v", err)
		}
	})

	t.Run("WhatCannotBeReadIsEmpty", func(t *testing.T) {
		t.Parallel()
		for _, kept := range []string{"", "{}", "null", "nonsense", `{"instructions":3}`, `{"categories":{}}`} {
			if got := ReadExtractionPolicy([]byte(kept)); !got.Empty() {
				t.Errorf("%q became %+v", kept, got)
			}
		}
	})
}

func TestCategoriesOfACommandAreItsOwn(t *testing.T) {
	t.Parallel()
	const plain = `{"content":"x","user_id":"u"}`
	without := printOf(t, plain)
	if printOf(t, `{"content":"x","user_id":"u","categories":[]}`) != without {
		t.Error("an empty list is another command")
	}
	with := printOf(t, `{"content":"x","user_id":"u","categories":[{"name":"a"}]}`)
	if with == without || with != printOf(t, `{"content":"x","user_id":"u","categories":[{"name":" a ","description":""}]}`) {
		t.Error("categories aren't part of the command as they are kept")
	}
	if with == printOf(t, `{"content":"x","user_id":"u","categories":[{"name":"a","description":"b"}]}`) {
		t.Error("a description makes no difference")
	}
	add := mustRead(t, `{"content":"x","user_id":"u","categories":[{"name":"a","description":"b"}]}`)
	payload, err := add.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(Format, payload)
	if err != nil || len(back.Categories) != 1 || back.Categories[0] != (memory.Category{Name: "a", Description: "b"}) {
		t.Errorf("it comes back as %+v, %v", back, err)
	}
}

func TestNewFeedback(t *testing.T) {
	t.Parallel()
	id := uuid.New()
	positive, blank, long, unknown := "POSITIVE", " ", strings.Repeat("x", MaxReason+1), "positive"
	if f, err := NewFeedback(id, &positive, &blank); err != nil || *f.Verdict != Positive || f.Reason != nil || f.Memory != id {
		t.Errorf("got %+v, %v", f, err)
	}
	if f, err := NewFeedback(id, nil, &positive); err != nil || f.Verdict != nil || f.Reason != nil {
		t.Errorf("taken back: %+v, %v", f, err)
	}
	for _, c := range []struct {
		verdict, reason *string
		pointer         string
	}{{&positive, &long, "/reason"}, {&unknown, nil, "/feedback"}} {
		_, err := NewFeedback(id, c.verdict, c.reason)
		if f, ok := errors.AsType[*fault.Error](err); !ok || f.Pointer != c.pointer {
			t.Errorf("got %v, want %s", err, c.pointer)
		}
	}
}
