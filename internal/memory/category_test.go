package memory

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/fault"
)

func TestNewCategories(t *testing.T) {
	t.Parallel()

	t.Run("TrimsAndKeepsTheOrder", func(t *testing.T) {
		t.Parallel()
		got, err := NewCategories("/c", []Category{{Name: " work ", Description: " d "}, {Name: "日本"}, {Name: "☕"}})
		want := []Category{{Name: "work", Description: "d"}, {Name: "日本"}, {Name: "☕"}}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("got %+v, %v", got, err)
		}
		if got, err := NewCategories("/c", []Category{}); got != nil || err != nil {
			t.Errorf("none became %v, %v", got, err)
		}
	})

	t.Run("RefusesWithPointerAndRule", func(t *testing.T) {
		t.Parallel()
		const secret = "canary"
		many := slices.Repeat([]Category{{Name: secret}}, MaxCategories+1)
		for _, c := range []struct {
			given   []Category
			pointer string
		}{
			{many, "/c"},
			{[]Category{{Name: "a"}, {Name: ""}}, "/c/1/name"},
			{[]Category{{Name: " \u200b"}}, "/c/0/name"},
			{[]Category{{Name: "canary\nb"}}, "/c/0/name"},
			{[]Category{{Name: "canary\x00"}}, "/c/0/name"},
			{[]Category{{Name: "canary\xff"}}, "/c/0/name"},
			{[]Category{{Name: strings.Repeat("é", MaxCategoryName+1)}}, "/c/0/name"},
			{[]Category{{Name: "Canary"}, {Name: "canary"}}, "/c/1/name"},
			{[]Category{{Name: "a", Description: strings.Repeat("é", MaxCategoryText+1)}}, "/c/0/description"},
			{[]Category{{Name: "a", Description: "canary\x00"}}, "/c/0/description"},
		} {
			got, err := NewCategories("/c", c.given)
			refused, isFault := errors.AsType[*fault.Error](err)
			if got != nil || !isFault || refused.Pointer != c.pointer || strings.Contains(err.Error(), secret) {
				t.Errorf("%.60v: %v, %v", c.given, got, err)
			}
		}
		full := []Category{{Name: strings.Repeat("é", MaxCategoryName), Description: strings.Repeat("é", MaxCategoryText)}}
		if _, err := NewCategories("/c", full); err != nil {
			t.Errorf("the greatest is refused: %v", err)
		}
	})
}
