package main

import (
	"regexp"
	"strings"
)

// verdict is what a run of a scenario amounts to.
type verdict string

const (
	passed   verdict = "passed"
	caught   verdict = "caught"
	hung     verdict = "ran out of time"
	broken   verdict = "BROKEN"
	survived verdict = "SURVIVED"
)

// Signs that the program under test never got to the question: the mutant itself is wrong then, not what it shows. A
// statement that PostgreSQL can't read (SQLSTATE class 42) says no more of a guard than Go code that doesn't compile.
var (
	noSQL   = regexp.MustCompile(`(?:SQLSTATE|database error) (42[0-9A-Z]{3})\b`)
	noSetUp = regexp.MustCompile(`testkit: |create test database|migrate: `)
	panics  = regexp.MustCompile(`(?m)^panic: `)
	timeout = regexp.MustCompile(`(?m)^panic: test timed out after`)
	words   = regexp.MustCompile(`(?m)^\s+\w+_test\.go:\d+: `)
)

// ended reads the verbose output of a test binary: whether it says that the test passed or failed.
func ended(output, test, how string) bool {
	for line := range strings.Lines(output) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "--- "+how+": ")
		if !ok {
			continue
		}
		name, _, _ = strings.Cut(name, " ")
		if name == test {
			return true
		}
	}
	return false
}

// unreadable tells whether PostgreSQL could not read a statement. Rights that are lacking (42501) are a refusal like any.
func unreadable(output string) bool {
	for _, found := range noSQL.FindAllStringSubmatch(output, -1) {
		if found[1] != "42501" {
			return true
		}
	}
	return false
}

// told tells whether the test said what it found wrong before anything panicked: a test that gives up halfway may leave
// things behind that panic afterwards.
func told(output string) bool {
	if at := panics.FindStringIndex(output); at != nil {
		return words.MatchString(output[:at[0]])
	}
	return false
}

// judge says what the output of a run with a mutant means for its scenario. A failure counts only if it is the test's
// own: a panic, a program that doesn't start and a statement that nobody can read catch nothing.
func judge(m mutant, output string, overtime bool) (verdict, string) {
	switch {
	case overtime || timeout.MatchString(output):
		if m.hangs {
			return caught, ""
		}
		return broken, "it ran out of time"
	case noSetUp.MatchString(output):
		return broken, "its set-up failed"
	case unreadable(output):
		return broken, "PostgreSQL can't read its statement"
	case told(output):
		return caught, ""
	case panics.MatchString(output):
		return broken, "it panicked"
	case ended(output, m.caughtBy.test, "FAIL"):
		return caught, ""
	case ended(output, m.caughtBy.test, "PASS"):
		return survived, ""
	case ended(output, strings.Split(m.caughtBy.test, "/")[0], "FAIL") && words.MatchString(output):
		return caught, "" // a clean-up that fails keeps its test from being named
	}
	return broken, "its scenario did not run"
}
