package offline

import (
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
)

// filing knows by which words a fact belongs to a category.
type filing struct {
	names []string
	words []map[string]bool // of each category
}

// newFiling takes the words of each category's name, and of its description those that describe no other category and
// are no word of the forms that facts are written in.
func newFiling(categories []memory.Category) filing {
	f := filing{names: make([]string, len(categories)), words: make([]map[string]bool, len(categories))}
	described := map[string]int{}
	for _, c := range categories {
		for _, term := range memory.TermsOf(c.Description).Terms {
			described[term]++
		}
	}
	usual := usualWords()
	for i, c := range categories {
		f.names[i], f.words[i] = c.Name, map[string]bool{}
		for _, term := range memory.TermsOf(separated(c.Name)).Terms {
			f.words[i][term] = true
		}
		for _, term := range memory.TermsOf(c.Description).Terms {
			if described[term] == 1 && !usual[term] {
				f.words[i][term] = true
			}
		}
	}
	return f
}

// separated makes words of a name such as work_history.
func separated(name string) string {
	runes := []rune(name)
	for i, r := range runes {
		if r == '_' || r == '-' || r == '/' || r == '.' {
			runes[i] = ' '
		}
	}
	return string(runes)
}

// usualWords are the words that say nothing about the subject: those with which this package words facts, and those
// with which people describe what a category is for.
func usualWords() map[string]bool {
	usual := map[string]bool{}
	for _, term := range memory.TermsOf(`User user's users person people like likes liked love loves prefer prefers have has had
		want wants need needs thing things anything something everything fact facts memory memories statement statements
		information info detail details about related concerning includes including include regarding topic topics category
		example examples such etc general other various`).Terms {
		usual[term] = true
	}
	return usual
}

// file gives each fact the categories that a word of it stands for, in their order.
func (f filing) file(facts []model.Fact) {
	for i := range facts {
		terms := memory.TermsOf(facts[i].Text).Terms
		for n, words := range f.words {
			for _, term := range terms {
				if words[term] {
					facts[i].Categories = append(facts[i].Categories, f.names[n])
					break
				}
			}
		}
	}
}
