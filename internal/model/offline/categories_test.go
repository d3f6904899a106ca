package offline

import (
	"context"
	"strings"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
)

func TestCategories(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		said       string
		categories []memory.Category
		want       string
	}{
		{"AWordOfTheName", "My hobby is chess.", []memory.Category{{Name: "food"}, {Name: "hobbies"}}, "hobbies"},
		{"AWordOfTheDescription", "I love pizza.", []memory.Category{{Name: "food", Description: "Pizza, pasta and other things the user likes."}}, "food"},
		{"WordsOfANameInOnePiece", "I live in Rome.", []memory.Category{{Name: "where_they_live"}}, "where_they_live"},
		{"WordsThatDescribeSeveralTellNothing", "I love pizza in summer.", []memory.Category{{Name: "a", Description: "Summer dishes."}, {Name: "b", Description: "Summer trips."}}, ""},
		{"WordsOfEveryFactTellNothing", "I like tea.", []memory.Category{{Name: "a", Description: "What the user likes and loves."}}, ""},
		{"SeveralInTheirOrder", "I work as a cook in Rome.", []memory.Category{{Name: "Rome"}, {Name: "x"}, {Name: "work"}}, "Rome work"},
		{"NoneWithoutAPolicy", "I love pizza.", nil, ""},
		{"OtherScripts", "我喜欢寿司。", []memory.Category{{Name: "寿司"}, {Name: "音乐"}}, "寿司"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := New().Extract(context.Background(), model.Request{Messages: []model.Message{user(c.said)}, Categories: c.categories})
			if err != nil || len(got.Facts) != 1 {
				t.Fatalf("facts %+v, %v", got.Facts, err)
			}
			if filed := strings.Join(got.Facts[0].Categories, " "); filed != c.want {
				t.Errorf("%q is filed under %q, want %q", got.Facts[0].Text, filed, c.want)
			}
		})
	}
}
