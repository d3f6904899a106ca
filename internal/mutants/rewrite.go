package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// rewrite notes the edits of one file.
func (f *source) rewrite(changes map[string][]change, fluid map[string]bool) error {
	for _, d := range f.parsed.Decls {
		switch d := d.(type) {
		case *ast.GenDecl:
			if d.Tok == token.CONST {
				f.loosen(d, changes, fluid)
			}
		case *ast.FuncDecl:
			for _, name := range []string{d.Name.Name, receiver(d) + "." + d.Name.Name} {
				if of := changes[name]; len(of) > 0 {
					f.dispatch(d, of)
				}
			}
		}
	}
	for name := range changes {
		found := 0
		for _, d := range f.parsed.Decls {
			g, isVar := d.(*ast.GenDecl)
			if n := len(named(d, name)); n > 0 && (!isVar || g.Tok == token.CONST) {
				found += n
			}
		}
		if found != 1 {
			return fmt.Errorf("%s: %s is no constant and no function", f.file, name)
		}
	}
	return nil
}

// loosen makes a variable of each fluid constant of a declaration, and a choice of each that some mutant changes.
func (f *source) loosen(d *ast.GenDecl, changes map[string][]change, fluid map[string]bool) {
	for _, spec := range d.Specs {
		s := spec.(*ast.ValueSpec)
		if len(s.Names) != 1 || !fluid[s.Names[0].Name] {
			continue
		}
		name, value := s.Names[0].Name, f.of(s.Values[0])
		if of := changes[name]; len(of) > 0 {
			var b strings.Builder
			b.WriteString("mutantText(" + value + ", map[int]string{\n")
			for _, c := range of {
				_, changed, _ := strings.Cut(c.text, "=")
				b.WriteString(strconv.Itoa(c.mutant) + ": " + strings.TrimSpace(changed) + ",\n")
			}
			b.WriteString("})")
			value = b.String()
		}
		loose := "var " + name + " = " + value
		if !d.Lparen.IsValid() {
			f.edits = append(f.edits, replacement{f.offset(d.Pos()), f.offset(d.End()), loose})
			continue
		}
		f.edits = append(f.edits, replacement{f.offset(s.Pos()), f.offset(s.End()), ""})
		f.edits = append(f.edits, replacement{f.offset(d.End()), f.offset(d.End()), "\n\n" + loose + "\n"})
	}
}

// dispatch keeps a function under another name beside what the mutants make of it, and puts the choice in its place.
func (f *source) dispatch(d *ast.FuncDecl, of []change) {
	var params, passed []string
	for _, field := range d.Type.Params.List {
		for range max(len(field.Names), 1) {
			name := fmt.Sprintf("p%d", len(params))
			params = append(params, name+" "+f.of(field.Type))
			if _, variadic := field.Type.(*ast.Ellipsis); variadic {
				name += "..."
			}
			passed = append(passed, name)
		}
	}
	self, results, back := "", "", ""
	head := "func "
	if d.Recv != nil {
		self = "r."
		head += "(r " + f.of(d.Recv.List[0].Type) + ") "
	}
	if d.Type.Results != nil {
		results, back = " "+f.of(d.Type.Results), "return "
	}
	name := d.Name.Name
	call := func(n int) string {
		return fmt.Sprintf("%s%s%s__m%d(%s)", back, self, name, n, strings.Join(passed, ", "))
	}
	var b strings.Builder
	b.WriteString(head + name + "(" + strings.Join(params, ", ") + ")" + results + " {\n\tswitch mutantNow {\n")
	for _, c := range of {
		fmt.Fprintf(&b, "\tcase %d:\n\t\t%s\n", c.mutant, call(c.mutant))
		if back == "" {
			b.WriteString("\t\treturn\n")
		}
	}
	b.WriteString("\t}\n\t" + call(0) + "\n}\n\n")
	at := f.offset(d.Name.Pos()) - f.offset(d.Pos())
	for _, c := range append([]change{{0, f.of(d)}}, of...) {
		// The head of a function is never what a mutant changes.
		b.WriteString(c.text[:at] + fmt.Sprintf("%s__m%d", name, c.mutant) + c.text[at+len(name):] + "\n\n")
	}
	f.edits = append(f.edits, replacement{f.offset(d.Pos()), f.offset(d.End()), b.String()})
}

// edited is the file with its edits.
func (f *source) edited() string {
	slices.SortStableFunc(f.edits, func(a, b replacement) int { return cmp.Compare(a.from, b.from) })
	var b strings.Builder
	at := 0
	for _, e := range f.edits {
		b.WriteString(f.text[at:e.from] + e.text)
		at = e.to
	}
	return b.String() + f.text[at:]
}
