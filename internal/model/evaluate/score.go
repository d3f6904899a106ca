package main

import (
	"strings"

	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
)

// score counts what an extractor made of some conversations.
type score struct {
	conversations int
	failed        int // calls without a valid answer: nothing was found
	expected      int
	found         int // of the expected facts
	facts         int
	right         int // of the facts
	quiet         int // conversations that hold nothing to remember
	silent        int // of these, those that left nothing
}

func (s *score) add(t score) {
	s.conversations += t.conversations
	s.failed += t.failed
	s.expected += t.expected
	s.found += t.found
	s.facts += t.facts
	s.right += t.right
	s.quiet += t.quiet
	s.silent += t.silent
}

// precision is the share of the extracted facts that were wanted, recall the share of the expected facts that were
// extracted. A share of nothing is 1.
func (s score) precision() float64 { return share(s.right, s.facts) }
func (s score) recall() float64    { return share(s.found, s.expected) }

func share(part, whole int) float64 {
	if whole == 0 {
		return 1
	}
	return float64(part) / float64(whole)
}

// judgement is the score of one conversation, with what was missed and what nobody wanted.
type judgement struct {
	score
	missed []string
	wrong  []string
}

// judge compares the facts of a conversation with what should be remembered of it.
func judge(s sample, facts []model.Fact) judgement {
	j := judgement{score: score{conversations: 1, expected: len(s.Expect), facts: len(facts)}}
	texts := make([]string, len(facts))
	for i, f := range facts {
		texts[i] = normal(f.Text)
	}
	for _, want := range s.Expect {
		if want.inAny(texts) {
			j.found++
			continue
		}
		j.missed = append(j.missed, strings.Join(want, " + "))
	}
	for i, text := range texts {
		if wants(s.Expect, text) || wants(s.Also, text) {
			j.right++
			continue
		}
		j.wrong = append(j.wrong, facts[i].Text)
	}
	if s.quiet() {
		j.quiet = 1
		if len(facts) == 0 {
			j.silent = 1
		}
	}
	return j
}

func wants(all []wanted, text string) bool {
	for _, want := range all {
		if want.in(text) {
			return true
		}
	}
	return false
}

func (w wanted) inAny(texts []string) bool {
	for _, text := range texts {
		if w.in(text) {
			return true
		}
	}
	return false
}

// in tells whether every key word stands in text, which is normal.
func (w wanted) in(text string) bool {
	for _, word := range w {
		if !oneOf(strings.Split(word, "|"), text) {
			return false
		}
	}
	return true
}

func oneOf(words []string, text string) bool {
	for _, word := range words {
		if strings.Contains(text, normal(word)) {
			return true
		}
	}
	return false
}

// normal makes texts comparable: compatibility forms, case, apostrophes and runs of white space don't count.
func normal(text string) string {
	return strings.Join(strings.Fields(memory.Fold(strings.ReplaceAll(text, "’", "'"))), " ")
}
