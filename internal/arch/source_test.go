package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// source is one parsed Go file of the module, named relative to its root.
type source struct {
	name string
	ast  *ast.File
}

// pkg is the directory of the file, relative to the module's root.
func (s source) pkg() string { return path.Dir(s.name) }

func (s source) imports(t *testing.T) []string {
	t.Helper()
	var paths []string
	for _, spec := range s.ast.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatalf("%s: import %s: %v", s.name, spec.Path.Value, err)
		}
		paths = append(paths, p)
	}
	return paths
}

// localName answers under which name the file uses an imported package, and nothing if it doesn't import it.
func (s source) localName(importPath string) string {
	for _, spec := range s.ast.Imports {
		if spec.Path.Value != strconv.Quote(importPath) {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(importPath)
	}
	return ""
}

// moduleRoot finds the folder of go.mod above the test's own one.
func moduleRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the test's folder")
		}
		dir = parent
	}
}

// productionSources parses every Go file of the module that isn't a test, whatever its build tags. Modules of
// their own, testdata, and folders that the go command passes over are left out.
func productionSources(t *testing.T) []source {
	t.Helper()
	root := moduleRoot(t)
	var found []source
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if rel != "." && passedOver(file, entry.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		src, err := parse(filepath.ToSlash(rel), string(text))
		found = append(found, src)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func passedOver(dir, name string) bool {
	if name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

func parse(name, text string) (source, error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
	if err != nil {
		return source{}, fmt.Errorf("parse: %w", err)
	}
	return source{name: name, ast: file}, nil
}

func mustParse(t *testing.T, name, text string) source {
	t.Helper()
	src, err := parse(name, text)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// graphOf collects what each package imports, sorted and without repeats.
func graphOf(t *testing.T, sources []source) map[string][]string {
	t.Helper()
	graph := map[string][]string{}
	for _, src := range sources {
		graph[src.pkg()] = append(graph[src.pkg()], src.imports(t)...)
	}
	for pkg, imports := range graph {
		slices.Sort(imports)
		graph[pkg] = slices.Compact(imports)
	}
	return graph
}
