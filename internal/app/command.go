package app

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/alecthomas/kong"
)

// Exit codes of all binaries. Scripts rely on them.
const (
	ExitOK     = 0
	ExitFailed = 1 // it failed, or repair found drift, or doctor found a danger
	ExitUsage  = 2 // the command line or a setting cannot be read
)

const envPrefix = "HOLDFAST"

// Parse reads the command line and the environment into grammar, a pointer to a kong struct, and returns what kong
// selected. On --help it prints and ends the process; on an error it says what is wrong and ends it with ExitUsage.
func Parse(grammar any, name, description string) *kong.Context {
	dropEmpty()
	parser, err := kong.New(grammar, kong.Name(name), kong.Description(description), kong.DefaultEnvars(envPrefix),
		kong.Vars{"version": Version()}, kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: helpWidth}))
	if err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(ExitUsage)
	}
	parsed, err := parser.Parse(os.Args[1:])
	if err != nil {
		if parse, ok := errors.AsType[*kong.ParseError](err); ok && len(os.Args) == 1 {
			_ = parse.Context.PrintUsage(false)
		}
		fmt.Fprintf(os.Stderr, "%s: %v (%s --help tells more)\n", name, err, name)
		os.Exit(ExitUsage)
	}
	return parsed
}

// helpWidth keeps help readable on wide terminals.
const helpWidth = 120

// dropEmpty forgets settings that are set to nothing, as compose files do with variables that are not set.
func dropEmpty() {
	for _, entry := range os.Environ() {
		if name, value, _ := strings.Cut(entry, "="); value == "" && strings.HasPrefix(name, envPrefix+"_") {
			_ = os.Unsetenv(name)
		}
	}
}

// Exit says what went wrong, if anything, and returns the exit code.
func Exit(name string, err error) int {
	if err == nil {
		return ExitOK
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	return ExitFailed
}

// VersionFlag prints the version and ends the process.
type VersionFlag = kong.VersionFlag
