package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// switched is the source of a test build that holds many mutants at once: each declaration that some mutant changes is
// there as it is and as each of them has it, and the number of the mutant decides at run time. Building a program for each
// mutant would take most of an hour. The switches are in the files of the overlay only.
type switched struct {
	root    string
	nowFile string // what the number is read from where the environment has none: programs that a test starts
	files   map[string]string
}

const (
	// nowVar is what the environment of a test binary has the number in.
	nowVar = "HOLDFAST_MUTANT"
	// migration is the schema, which is embedded.
	migration = "migrations/00001_core.sql"
)

// change is what one mutant makes of one declaration.
type change struct {
	mutant int
	text   string
}

// newSwitched writes the files of all mutants, whose numbers are their places in the list plus one; 0 is the code as it is.
func newSwitched(root, nowFile string, mutants []mutant) (*switched, error) {
	s := &switched{root: root, nowFile: nowFile, files: map[string]string{}}
	changes := map[string]map[string][]change{} // by file and declaration
	schemas := map[int]string{}
	for i, m := range mutants {
		for _, p := range m.patches {
			if changes[p.file] == nil {
				changes[p.file] = map[string][]change{}
			}
			if p.file == migration {
				continue
			}
			if filepath.Ext(p.file) != ".go" || p.within == "" {
				return nil, fmt.Errorf("%s: %s can only be changed within a declaration of Go", m.name, p.file)
			}
			text, err := m.declaration(root, p.file, p.within)
			if err != nil {
				return nil, err
			}
			all := changes[p.file][p.within]
			if len(all) == 0 || all[len(all)-1].mutant != i+1 {
				changes[p.file][p.within] = append(all, change{i + 1, text})
			}
		}
		changed, err := m.mutate(root)
		if err != nil {
			return nil, err
		}
		if schema, ok := changed[migration]; ok {
			schemas[i+1] = schema
		}
	}
	if len(schemas) > 0 {
		s.schemas(schemas)
	}
	delete(changes, migration)
	dirs := map[string]map[string]map[string][]change{}
	for file, of := range changes {
		dir := path.Dir(file)
		if dirs[dir] == nil {
			dirs[dir] = map[string]map[string][]change{}
		}
		dirs[dir][file] = of
	}
	for dir, of := range dirs {
		if err := s.pkg(dir, of); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// declaration is what the mutant makes of one declaration of a file.
func (m mutant) declaration(root, file, within string) (string, error) {
	changed, err := m.mutate(root)
	if err != nil {
		return "", err
	}
	from, to, err := patch{file: file, within: within}.span(changed[file])
	if err != nil {
		return "", fmt.Errorf("%s: %w", m.name, err)
	}
	return changed[file][from:to], nil
}

// schemas makes the embedded migrations a choice.
func (s *switched) schemas(of map[int]string) {
	var b strings.Builder
	b.WriteString("// Package migrations holds the schema.\npackage migrations\n\nimport (\n\t\"embed\"\n\t\"io/fs\"\n\t\"testing/fstest\"\n)\n\n" +
		"//go:embed *.sql\nvar embedded embed.FS\n\n// FS holds every migration.\nvar FS = func() fs.FS {\n\tswitch mutantNow {\n")
	for _, n := range slices.Sorted(maps.Keys(of)) {
		fmt.Fprintf(&b, "\tcase %d:\n\t\treturn fstest.MapFS{%q: {Data: []byte(%s)}}\n", n, path.Base(migration), strconv.Quote(of[n]))
	}
	b.WriteString("\t}\n\treturn embedded\n}()\n")
	s.files["migrations/embed.go"] = b.String()
	s.files["migrations/zz_mutant.go"] = s.switchFile("migrations")
}

// switchFile is the file that knows the number.
func (s *switched) switchFile(pkg string) string {
	return "package " + pkg + `

import (
	"os"
	"strconv"
	"strings"
)

var mutantNow = func() int {
	text := os.Getenv("` + nowVar + `")
	if text == "" {
		read, _ := os.ReadFile(` + strconv.Quote(s.nowFile) + `)
		text = strings.TrimSpace(string(read))
	}
	n, _ := strconv.Atoi(text)
	return n
}()

func mutantText(text string, of map[int]string) string {
	if changed, ok := of[mutantNow]; ok {
		return changed
	}
	return text
}

var _ = mutantText
`
}

// source is one file of a package.
type source struct {
	file   string // from the root
	text   string
	files  *token.FileSet
	parsed *ast.File
	edits  []replacement
}

type replacement struct {
	from, to int
	text     string
}

func (f *source) offset(p token.Pos) int { return f.files.Position(p).Offset }

func (f *source) of(n ast.Node) string { return f.text[f.offset(n.Pos()):f.offset(n.End())] }

// pkg rewrites the files of one package.
func (s *switched) pkg(dir string, changes map[string]map[string][]change) error {
	all, err := s.sources(dir)
	if err != nil {
		return err
	}
	fluid := map[string]bool{} // constants that can't be constants any more
	for _, f := range all {
		for name := range changes[f.file] {
			for _, d := range f.parsed.Decls {
				if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.CONST && len(named(d, name)) > 0 {
					fluid[name] = true
				}
			}
		}
	}
	for grown := true; grown; { // and those that are made of them
		grown = false
		for _, f := range all {
			grown = f.spread(fluid) || grown
		}
	}
	for _, f := range all {
		if err := f.rewrite(changes[f.file], fluid); err != nil {
			return err
		}
		if len(f.edits) > 0 {
			s.files[f.file] = f.edited()
		}
	}
	s.files[path.Join(dir, "zz_mutant.go")] = s.switchFile(all[0].parsed.Name.Name)
	return nil
}

// sources reads the files of a package, those of its own tests too: they may be made of its constants.
func (s *switched) sources(dir string) ([]*source, error) {
	names, err := filepath.Glob(filepath.Join(s.root, filepath.FromSlash(dir), "*.go"))
	if err != nil {
		return nil, fmt.Errorf("read package: %w", err)
	}
	var all []*source
	for _, name := range names {
		text, err := os.ReadFile(name) // #nosec G304 -- a package of the list
		if err != nil {
			return nil, fmt.Errorf("read package: %w", err)
		}
		f := &source{file: path.Join(dir, filepath.Base(name)), text: string(text), files: token.NewFileSet()}
		if f.parsed, err = parser.ParseFile(f.files, f.file, text, parser.ParseComments|parser.SkipObjectResolution); err != nil {
			return nil, fmt.Errorf("parse: %w", err)
		}
		if !strings.HasSuffix(f.parsed.Name.Name, "_test") {
			all = append(all, f)
		}
	}
	return all, nil
}

// spread finds constants of the file that are made of fluid ones.
func (f *source) spread(fluid map[string]bool) (grown bool) {
	for _, spec := range f.constants() {
		for i, value := range spec.Values {
			name := spec.Names[i].Name
			if fluid[name] {
				continue
			}
			ast.Inspect(value, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && fluid[id.Name] {
					fluid[name], grown = true, true
				}
				return true
			})
		}
	}
	return grown
}

func (f *source) constants() []*ast.ValueSpec {
	var all []*ast.ValueSpec
	for _, d := range f.parsed.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.CONST {
			for _, spec := range g.Specs {
				all = append(all, spec.(*ast.ValueSpec))
			}
		}
	}
	return all
}
