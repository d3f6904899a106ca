package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestReadme runs the README's curl commands as they are printed, with only address and key of the server at hand.
func TestReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	blocks := strings.Split(string(text), "```sh\n")
	for _, block := range blocks[1:] {
		code, _, _ := strings.Cut(block, "```")
		if strings.Contains(code, "curl ") {
			script.WriteString(code)
		}
	}
	if strings.Count(script.String(), "curl ") != 5 {
		t.Fatalf("the README has five curl commands:\n%s", script.String())
	}
	m := sharedMachine(t)
	up, r := m.up()
	cmd := exec.CommandContext(t.Context(), "sh", "-eu", "-c", script.String())
	cmd.Env = append(os.Environ(), "API="+r.API, "KEY="+r.Key)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	for _, want := range []string{`"status":"SUCCEEDED"`, `"outcome":"STORED"`, "peanuts", `"available":998`} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%s is missing in:\n%s", want, out)
		}
	}
	stop(t, up)
}
