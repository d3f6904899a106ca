package main

import (
	"strings"
	"testing"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	m := mutant{caughtBy: scenario{"internal/x", "TestX/Y"}}
	for name, c := range map[string]struct {
		output   string
		overtime bool
		hangs    bool
		want     verdict
	}{
		"TheTestsOwnFailureCounts":      {output: "    x_test.go:3: two\n--- FAIL: TestX (0.1s)\n    --- FAIL: TestX/Y (0.1s)\nFAIL\n", want: caught},
		"APassIsASurvivor":              {output: "--- PASS: TestX (0.1s)\n    --- PASS: TestX/Y (0.1s)\nPASS\n", want: survived},
		"AnotherTestsFailureIsNone":     {output: "--- FAIL: TestX (0.1s)\n    --- PASS: TestX/Y (0.1s)\n    --- FAIL: TestX/Z (0.1s)\n", want: survived},
		"NothingRanIsBroken":            {output: "testing: warning: no tests to run\nPASS\n", want: broken},
		"APanicIsBroken":                {output: "    --- FAIL: TestX/Y (0.1s)\npanic: boom [recovered]\n", want: broken},
		"AFailureMayEndInAPanic":        {output: "    x_test.go:3: two of them\npanic: deadlock [recovered]\n", want: caught},
		"AStatementNobodyReadsIsBroken": {output: "    x_test.go:3: claim: database error 42601\n    --- FAIL: TestX/Y (0.1s)\n", want: broken},
		"ASetUpThatFailsIsBroken":       {output: "    x_test.go:3: testkit: migrate: version 1\n    --- FAIL: TestX/Y (0.1s)\n", want: broken},
		"TimeThatRunsOutIsBroken":       {output: "panic: test timed out after 1m0s\n", want: broken},
		"TimeThatRunsOutMayBeTheSign":   {output: "panic: test timed out after 1m0s\n", hangs: true, want: caught},
		"AProcessThatHangsIsBroken":     {output: "=== RUN   TestX\n", overtime: true, want: broken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := m
			m.hangs = c.hangs
			if got, why := judge(m, c.output, c.overtime); got != c.want {
				t.Errorf("judged %s: %s", got, why)
			}
		})
	}
}

func TestParseList(t *testing.T) {
	t.Parallel()
	whole := "= G\nguard: g\nin: a.go f\n- one\n-  two\n+ three\ncaught by: internal/x TestX/Y\nlimit: 3m\n"
	found, err := parseList("x.txt", whole)
	if err != nil || len(found) != 1 {
		t.Fatalf("%+v: %v", found, err)
	}
	m := found[0]
	if m.group != "G" || m.name != "g" || m.caughtBy != (scenario{"internal/x", "TestX/Y"}) || m.limit.Minutes() != 3 || len(m.patches) != 1 {
		t.Errorf("%+v", m)
	}
	if p := m.patches[0]; p.within != "f" || strings.Join(p.old, "|") != "one| two" || strings.Join(p.new, "|") != "three" {
		t.Errorf("%+v", p)
	}
	for name, text := range map[string]string{
		"WithoutAGroup":   strings.TrimPrefix(whole, "= G\n"),
		"WithoutAPatch":   "= G\nguard: g\ncaught by: internal/x TestX\n",
		"WithoutAText":    "= G\nguard: g\nin: a.go f\n+ three\ncaught by: internal/x TestX\n",
		"WithoutATest":    "= G\nguard: g\nin: a.go f\n- one\n",
		"WithWordsAround": "= G\nguard: g\nin: a.go f\n- one\nwhat is this\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if found, err := parseList("x.txt", text); err == nil {
				t.Errorf("read as %+v", found)
			}
		})
	}
}

func TestApply(t *testing.T) {
	t.Parallel()
	const source = "package p\n\nconst a = `one two`\n\nfunc (t *T) f() { g() }\n\nfunc f() { g() }\n"
	for name, c := range map[string]struct {
		patch patch
		want  string
	}{
		"WithinItsDeclaration":  {patch{"p.go", "T.f", []string{"g()"}, nil}, "package p\n\nconst a = `one two`\n\nfunc (t *T) f() {  }\n\nfunc f() { g() }\n"},
		"WithinAConst":          {patch{"p.go", "a", []string{" two"}, []string{""}}, "package p\n\nconst a = `one`\n\nfunc (t *T) f() { g() }\n\nfunc f() { g() }\n"},
		"NotTwice":              {patch{"p.go", "", []string{"g()"}, nil}, ""},
		"NotWhereItIsNot":       {patch{"p.go", "a", []string{"three"}, nil}, ""},
		"NotInAnUnknownPlace":   {patch{"p.go", "b", []string{"one"}, nil}, ""},
		"NotIfNothingIsChanged": {patch{"p.go", "a", []string{"one"}, []string{"one"}}, ""},
		"NotIfItDoesNotParse":   {patch{"p.go", "a", []string{"`one"}, []string{"one"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := c.patch.apply(source)
			if got != c.want || (err == nil) != (c.want != "") {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}
