package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// patch replaces one text of a file. The text is looked for within one declaration, so that the same words in another
// don't make it ambiguous.
type patch struct {
	file   string
	within string // of Go the name of a const, var, type, func or Type.method; of SQL how the statement begins; or empty
	old    []string
	new    []string
}

// apply returns the file with the patch in it. The old text must be there exactly once, and a Go file must still parse.
func (p patch) apply(source string) (string, error) {
	from, to, err := p.span(source)
	if err != nil {
		return "", err
	}
	old := strings.Join(p.old, "\n")
	if n := strings.Count(source[from:to], old); n != 1 {
		return "", fmt.Errorf("%s %s: %q is there %d times, not once", p.file, p.within, old, n)
	}
	changed := source[:from] + strings.Replace(source[from:to], old, strings.Join(p.new, "\n"), 1) + source[to:]
	if changed == source {
		return "", fmt.Errorf("%s %s: the patch changes nothing", p.file, p.within)
	}
	if filepath.Ext(p.file) == ".go" {
		if _, err := parser.ParseFile(token.NewFileSet(), p.file, changed, parser.SkipObjectResolution); err != nil {
			return "", fmt.Errorf("with the patch: %w", err)
		}
	}
	return changed, nil
}

// span answers where the declaration that the patch is about begins and ends.
func (p patch) span(source string) (from, to int, err error) {
	if p.within == "" {
		return 0, len(source), nil
	}
	if filepath.Ext(p.file) != ".go" {
		if n := strings.Count(source, p.within); n != 1 {
			return 0, 0, fmt.Errorf("%s: %q is there %d times, not once", p.file, p.within, n)
		}
		from = strings.Index(source, p.within)
		end := strings.Index(source[from:], ";\n")
		if end < 0 {
			return 0, 0, fmt.Errorf("%s: %q has no end", p.file, p.within)
		}
		return from, from + end, nil
	}
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, p.file, source, parser.SkipObjectResolution)
	if err != nil {
		return 0, 0, fmt.Errorf("parse: %w", err)
	}
	var found []ast.Node
	for _, d := range parsed.Decls {
		found = append(found, named(d, p.within)...)
	}
	if len(found) != 1 {
		return 0, 0, fmt.Errorf("%s: %d declarations are named %s", p.file, len(found), p.within)
	}
	return files.Position(found[0].Pos()).Offset, files.Position(found[0].End()).Offset, nil
}

// named answers those parts of a declaration that declare the name.
func named(d ast.Decl, name string) []ast.Node {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.Name == name || receiver(d)+"."+d.Name.Name == name {
			return []ast.Node{d}
		}
	case *ast.GenDecl:
		var found []ast.Node
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec:
				for _, id := range s.Names {
					if id.Name == name {
						found = append(found, s)
					}
				}
			case *ast.TypeSpec:
				if s.Name.Name == name {
					found = append(found, s)
				}
			}
		}
		return found
	}
	return nil
}

// receiver is the name of the type that a method belongs to.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return ""
	}
	kind := d.Recv.List[0].Type
	if star, ok := kind.(*ast.StarExpr); ok {
		kind = star.X
	}
	if id, ok := kind.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

// mutate answers what the mutant makes of the files below root that it is about, by their paths from there.
func (m mutant) mutate(root string) (map[string]string, error) {
	changed := map[string]string{}
	for _, p := range m.patches {
		source, again := changed[p.file]
		if !again {
			text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(p.file))) // #nosec G304 -- a path of the list
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.name, err)
			}
			source = string(text)
		}
		var err error
		if changed[p.file], err = p.apply(source); err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return changed, nil
}
