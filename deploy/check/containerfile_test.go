package check

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// runs are the programs that an image is for, by the name of its stage.
func runs() []string { return []string{"api", "worker", "repair", "holdfast"} }

// stages reads the Containerfile as BuildKit does; its linter's warnings fail the test.
func stages(t *testing.T) []instructions.Stage {
	t.Helper()
	f, err := os.Open(root(t, "deploy", "Containerfile"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	parsed, err := parser.Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range parsed.Warnings {
		t.Errorf("BuildKit warns: %s %v", w.Short, w.Detail)
	}
	lint := linter.New(&linter.Config{
		Warn: func(rule, description, _, message string, location []parser.Range) {
			t.Errorf("BuildKit's linter: %s: %s (%s, %v)", rule, message, description, location)
		},
	})
	found, _, err := instructions.Parse(parsed.AST, lint)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func stage(t *testing.T, all []instructions.Stage, name string) instructions.Stage {
	t.Helper()
	i := slices.IndexFunc(all, func(s instructions.Stage) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("there is no stage %s", name)
	}
	return all[i]
}

// lineage are the commands of a stage and of those that it is made of, from the outermost on.
func lineage(t *testing.T, all []instructions.Stage, name string) []instructions.Command {
	t.Helper()
	var commands []instructions.Command
	for {
		s := stage(t, all, name)
		commands = append(slices.Clone(s.Commands), commands...)
		if s.BaseName == "scratch" || strings.Contains(s.BaseName, "$") {
			return commands
		}
		name = s.BaseName
	}
}

// last is the last command of a kind, which is the one that counts.
func last[T any](commands []instructions.Command) (command T, found bool) {
	for _, c := range commands {
		if is, ok := c.(T); ok {
			command, found = is, true
		}
	}
	return command, found
}

func TestContainerfile(t *testing.T) {
	t.Parallel()
	all := stages(t)

	t.Run("ImagesAreTheProgramAlone", func(t *testing.T) {
		t.Parallel()
		for _, name := range runs() {
			commands := lineage(t, all, name)
			path := "/usr/local/bin/" + name
			if entry, ok := last[*instructions.EntrypointCommand](commands); !ok || entry.PrependShell || !slices.Equal(entry.CmdLine, []string{path}) {
				t.Errorf("%s: it does not run %s", name, path)
			}
			if user, ok := last[*instructions.UserCommand](commands); !ok || user.User != "65532:65532" {
				t.Errorf("%s: it runs as %+v", name, user)
			}
			if _, ok := last[*instructions.RunCommand](commands); ok {
				t.Errorf("%s: something is run in an image that has no shell", name)
			}
			if s := stage(t, all, "base"); s.BaseName != "scratch" {
				t.Errorf("%s: it is made of %s", name, s.BaseName)
			}
			health, ok := last[*instructions.HealthCheckCommand](commands)
			want := []string{"CMD", path, "--probe"}
			if name == "holdfast" {
				want = []string{"NONE"}
			}
			if !ok || !slices.Equal(health.Health.Test, want) {
				t.Errorf("%s: its health is %+v", name, health)
			}
		}
	})

	t.Run("LabelsAreOCIs", func(t *testing.T) {
		t.Parallel()
		labels, _ := last[*instructions.LabelCommand](stage(t, all, "base").Commands)
		for _, name := range []string{"title", "description", "source", "licenses", "version", "revision", "documentation"} {
			if !slices.ContainsFunc(labels.Labels, func(l instructions.KeyValuePair) bool {
				return l.Key == "org.opencontainers.image."+name && l.Value != ""
			}) {
				t.Errorf("there is no label %s", name)
			}
		}
	})

	t.Run("SourcesOfCopiesAreThere", func(t *testing.T) {
		t.Parallel()
		ignored := strings.Fields(read(t, root(t, "deploy", "Containerfile.dockerignore")))
		for _, s := range all {
			for _, c := range s.Commands {
				cp, ok := c.(*instructions.CopyCommand)
				if !ok {
					continue
				}
				for _, source := range cp.SourcePaths {
					switch {
					case cp.From == "":
						if _, err := os.Stat(root(t, source)); err != nil || slices.Contains(ignored, source+"/") {
							t.Errorf("%s: %s isn't in the context", s.Name, source)
						}
					case cp.From != "build":
						t.Errorf("%s: it copies from %s, which nobody pins", s.Name, cp.From)
					}
				}
			}
		}
	})

	t.Run("BuildIsStaticAndTheSameEverywhere", func(t *testing.T) {
		t.Parallel()
		build := stage(t, all, "build")
		env, _ := last[*instructions.EnvCommand](build.Commands)
		if !slices.Contains(env.Env, instructions.KeyValuePair{Key: "CGO_ENABLED", Value: "0"}) {
			t.Errorf("the build's environment is %v", env.Env)
		}
		var script strings.Builder
		for _, c := range build.Commands {
			if cmd, ok := c.(*instructions.RunCommand); ok {
				script.WriteString(strings.Join(cmd.CmdLine, " "))
			}
		}
		for _, want := range []string{"go build -trimpath ", "-buildid=", "cyclonedx-gomod bin -json -noserial -notimestamp"} {
			if !strings.Contains(script.String(), want) {
				t.Errorf("the build has no %s", want)
			}
		}
		for _, name := range runs() {
			if !strings.Contains(script.String(), " ./cmd/"+name) {
				t.Errorf("%s isn't built", name)
			}
		}
	})
}
