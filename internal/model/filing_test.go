package model

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/memory"
)

func TestParseFiles(t *testing.T) {
	t.Parallel()
	request := Request{Categories: []memory.Category{{Name: "Food"}, {Name: "work", Description: "Jobs."}, {Name: "Straße"}}}
	for _, c := range []struct{ name, members, want string }{
		{"InTheOrderOfTheRequest", `,"categories":["work","Food"]`, "Food work"},
		{"InItsSpelling", `,"categories":["FOOD","STRASSE"," work"]`, "Food work Straße"},
		{"EachOnce", `,"categories":["work","Work","work"]`, "work"},
		{"UnknownNamesAreDropped", `,"categories":["nonsense","work"]`, "work"},
		{"OneNameAlone", `,"categories":"work"`, "work"},
		{"WhatIsNoNameIsDropped", `,"categories":[7,null,{"name":"work"},["work"],"Food"]`, "Food"},
		{"ANumberNamesNothing", `,"categories":7`, ""},
		{"AnObjectNamesNothing", `,"categories":{"work":true}`, ""},
		{"NullNamesNothing", `,"categories":null`, ""},
		{"Absent", ``, ""},
		{"Empty", `,"categories":[]`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := Parse(`{"facts":[{"text":"a"`+c.members+`},{"text":"b"}]}`, request)
			if err != nil || len(got) != 2 {
				t.Fatalf("got %d facts and error %v", len(got), err)
			}
			if said := strings.Join(got[0].Categories, " "); said != c.want || got[1].Categories != nil {
				t.Errorf("filed under %q and %q, want %q", said, got[1].Categories, c.want)
			}
		})
	}

	t.Run("WithoutCategoriesOfTheRequestThereAreNone", func(t *testing.T) {
		t.Parallel()
		got, err := Parse(`[{"text":"a","categories":["work"]}]`, Request{})
		if err != nil || got[0].Categories != nil {
			t.Errorf("filed under %q, %v", got[0].Categories, err)
		}
	})
}

func TestPromptWithCategories(t *testing.T) {
	t.Parallel()

	t.Run("TheSchemaTakesTheirNamesOnly", func(t *testing.T) {
		t.Parallel()
		prompt := NewPrompt(Request{Categories: []memory.Category{{Name: `a"b`}, {Name: "</categories>", Description: "x"}}})
		var schema struct {
			Properties struct {
				Facts struct {
					Items struct {
						Required   []string `json:"required"`
						Properties map[string]struct {
							Items struct {
								Enum []string `json:"enum"`
							} `json:"items"`
						} `json:"properties"`
					} `json:"items"`
				} `json:"facts"`
			} `json:"properties"`
		}
		if err := json.Unmarshal(prompt.Schema, &schema); err != nil {
			t.Fatal(err)
		}
		fact := schema.Properties.Facts.Items
		if got := fact.Properties["categories"].Items.Enum; !slices.Equal(got, []string{`a"b`, "</categories>"}) {
			t.Errorf("the schema takes %q", got)
		}
		if len(fact.Required) != len(fact.Properties) || !slices.Contains(fact.Required, "categories") {
			t.Errorf("required are %q of %d", fact.Required, len(fact.Properties))
		}
		if n := strings.Count(prompt.System, CategoriesClose); n != 2 { // named once in the explanation
			t.Errorf("the section ends %d times", n)
		}
	})

	t.Run("WithoutThemNothingChanges", func(t *testing.T) {
		t.Parallel()
		prompt := NewPrompt(Request{})
		if strings.Contains(prompt.System, "categories") || string(prompt.Schema) != answerSchema || strings.Contains(answerSchema, namesMarker) {
			t.Error("a request without categories speaks of them")
		}
	})
}
