//go:build images

package check

import (
	"debug/elf"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
)

// TestBuildStage runs what the Containerfile runs, outside of an image. It compiles everything anew, static and trimmed, so
// that `make deploy-images` has it and `make deploy-check` hasn't.
func TestBuildStage(t *testing.T) {
	t.Parallel()
	all := stages(t)
	out := t.TempDir()
	build := stage(t, all, "build")
	for _, c := range build.Commands {
		cmd, ok := c.(*instructions.RunCommand)
		if !ok {
			continue
		}
		// What differs outside an image: the directory, the platform, whom root may give files to, and the version
		// stamp of a working tree that is being changed.
		script := strings.NewReplacer("/out/", out+"/", "chown 65532:65532", "true").Replace(strings.Join(cmd.CmdLine, " "))
		run(t, []string{"CGO_ENABLED=0", "GOFLAGS=-buildvcs=false"}, "sh", "-ec", script)
	}
	for _, s := range all {
		for _, c := range s.Commands {
			if cp, ok := c.(*instructions.CopyCommand); ok && cp.From == "build" && strings.HasPrefix(cp.SourcePaths[0], "/out/") {
				if _, err := os.Stat(filepath.Join(out, strings.TrimPrefix(cp.SourcePaths[0], "/out/"))); err != nil {
					t.Errorf("%s copies what the build stage has not made: %v", s.Name, err)
				}
			}
		}
	}
	for _, name := range runs() {
		static(t, filepath.Join(out, "bin", name))
		billOfMaterials(t, filepath.Join(out, "sbom", name+".json"))
	}
}

// static fails the test when a program needs a loader or another library.
func static(t *testing.T, path string) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	libraries, err := f.ImportedLibraries()
	if err != nil || len(libraries) > 0 || slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		t.Errorf("%s isn't static: %v %v", filepath.Base(path), libraries, err)
	}
}

func billOfMaterials(t *testing.T, path string) {
	t.Helper()
	var bill struct {
		BOMFormat  string
		Components []struct{ Name, Version, PURL string }
	}
	if err := json.Unmarshal([]byte(read(t, path)), &bill); err != nil {
		t.Fatal(err)
	}
	named := map[string]string{}
	for _, c := range bill.Components {
		named[c.Name] = c.Version
	}
	for _, module := range []string{"github.com/jackc/pgx/v5", "github.com/nats-io/nats.go", "github.com/labstack/echo/v4"} {
		if bill.BOMFormat != "CycloneDX" || !strings.HasPrefix(named[module], "v") {
			t.Errorf("%s does not name %s: %q", filepath.Base(path), module, named[module])
		}
	}
}
