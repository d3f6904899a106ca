package memory

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-memory/holdfast/internal/fault"
)

const (
	// MaxCategories bounds a list of categories: all of them stand in each prompt and in the schema of its answer.
	MaxCategories = 100
	// MaxCategoryName is the greatest length of a category's name in characters, as a label of a record.
	MaxCategoryName = 100
	// MaxCategoryText is the greatest length of a category's description in characters: a sentence or two.
	MaxCategoryText = 500
)

// Category is a subject that records are filed under. A record has the name alone.
type Category struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// NewCategories returns the categories with their names and descriptions trimmed, nil for none. Faults:
// INVALID_REQUEST at a pointer below within, also for two names that differ in case alone.
func NewCategories(within string, given []Category) ([]Category, error) {
	if len(given) > MaxCategories {
		return nil, fault.At(fault.InvalidRequest, within, fmt.Sprintf("at most %d categories", MaxCategories))
	}
	var categories []Category
	seen := make(map[string]bool, len(given))
	for i, c := range given {
		at := within + "/" + strconv.Itoa(i)
		c.Name, c.Description = strings.TrimSpace(c.Name), strings.TrimSpace(c.Description)
		switch key := Fold(c.Name); {
		case !LabelFits(c.Name):
			return nil, fault.At(fault.InvalidRequest, at+"/name", fmt.Sprintf("1 to %d visible characters", MaxCategoryName))
		case seen[key]:
			return nil, fault.At(fault.InvalidRequest, at+"/name", "each name once, whatever its case")
		case !utf8.ValidString(c.Description) || brokenText(c.Description, MaxCategoryText) != "":
			return nil, fault.At(fault.InvalidRequest, at+"/description",
				fmt.Sprintf("at most %d characters of valid UTF-8 without NUL", MaxCategoryText))
		default:
			seen[key] = true
		}
		categories = append(categories, c)
	}
	return categories, nil
}

// LabelFits tells whether text can be the name of a category: something to see, in at most 100 characters.
func LabelFits(text string) bool {
	return utf8.ValidString(text) && brokenText(text, MaxCategoryName) == "" && visible(text) != "" &&
		!strings.ContainsFunc(text, unicode.IsControl)
}
