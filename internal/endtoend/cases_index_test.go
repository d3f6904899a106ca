package endtoend

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// reported is one kind of fault that others have met, and the tests that show what happens here.
type reported struct {
	where string   // the reports, owner/repository#number
	what  string   // the symptom
	shown []string // package and test; "internal/" is left out, and a test alone is of this package
}

// TestCasesAreShown holds the index against the tests: each test that it names is there, and each case is named by it.
func TestCasesAreShown(t *testing.T) {
	t.Parallel()
	cases := map[string]bool{}
	for group, g := range caseGroups() {
		for name := range g.cases {
			cases["TestCases/"+group+"/"+name] = false
		}
	}
	packages := map[string]testNames{}
	for _, row := range slices.Concat(reportedOfMemories(), reportedOfKeys(), reportedOfQueues(), reportedOfStuckWork()) {
		if row.where == "" || row.what == "" || len(row.shown) == 0 {
			t.Errorf("%+v is shown by nothing", row)
		}
		for _, test := range row.shown {
			dir, name, elsewhere := strings.Cut(test, " ")
			if !elsewhere {
				dir, name = "endtoend", test
			}
			if strings.HasPrefix(name, "TestCases/") {
				if _, known := cases[name]; !known {
					t.Errorf("%s: there is no %s", row.where, name)
				}
				cases[name] = true
				continue
			}
			if packages[dir] == nil {
				packages[dir] = testsOf(t, dir)
			}
			if !packages[dir].have(name) {
				t.Errorf("%s: there is no %s in %s", row.where, name, dir)
			}
		}
	}
	for name, named := range cases {
		if !named {
			t.Errorf("%s is named by no report", name)
		}
	}
}

// testNames are the tests of a package: of each one the texts in its file, which its subtests are named by.
type testNames map[string]map[string]bool

// have tells whether a test is there, and a text for each part of its subtest's name.
func (n testNames) have(test string) bool {
	parts := strings.Split(test, "/")
	texts := n[parts[0]]
	if texts == nil {
		return false
	}
	for _, part := range parts[1:] {
		if !texts[part] && !texts[part+"/"] {
			return false
		}
	}
	return true
}

// testsOf reads the tests of a package from their source.
func testsOf(t *testing.T, dir string) testNames {
	t.Helper()
	found := testNames{}
	root := filepath.Join("..", dir) // of the packages beside this one
	if strings.HasPrefix(dir, "clients/") || strings.HasPrefix(dir, "cmd/") {
		root = filepath.Join("..", "..", dir)
	}
	files, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, f.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		texts := map[string]bool{}
		ast.Inspect(file, func(node ast.Node) bool {
			if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil {
					texts[text] = true
				}
			}
			return true
		})
		for _, declared := range file.Decls {
			if f, ok := declared.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				found[f.Name.Name] = texts
			}
		}
	}
	return found
}
