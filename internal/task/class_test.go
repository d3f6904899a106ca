package task

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"testing"
)

// TestLists holds the lists against the constants of the file.
func TestLists(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "class.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]int{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			if kind, ok := spec.Type.(*ast.Ident); ok {
				declared[kind.Name]++
			}
		}
		return true
	})
	if len(Classes()) != declared["Class"] || len(ErrorCodes()) != declared["ErrorCode"] {
		t.Errorf("%d classes and %d codes are declared: %v", len(Classes()), len(ErrorCodes()), declared)
	}
	for _, class := range Classes() {
		if !slices.Contains(ErrorCodes(), CodeOf(class)) {
			t.Errorf("%s ends with %s, which is not listed", class, CodeOf(class))
		}
	}
	for _, code := range ErrorCodes() {
		if e := Explain(code); e.Message == "" || e.Action == "" {
			t.Errorf("%s is not explained", code)
		}
	}
}
