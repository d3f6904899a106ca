package main

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// completionCommand prints a script for a shell. The script asks this program for what may come next, so that it never
// lags behind the commands.
type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (c *completionCommand) Run(s *session) error {
	script := map[string]string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}[c.Shell]
	return s.show(map[string]string{"shell": c.Shell, "script": script}, "%s", script)
}

const bashScript = `# holdfast completion bash: source it, or put it into ~/.local/share/bash-completion/completions/holdfast
_holdfast() {
    local IFS=$'\n' line
    COMPREPLY=()
    while read -r line; do
        COMPREPLY+=("${line%%$'\t'*}")
    done < <(command holdfast complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _holdfast holdfast
`

const zshScript = `#compdef holdfast
# holdfast completion zsh: put it as _holdfast into a directory of $fpath, or source it after compinit
_holdfast() {
    local -a found
    local line
    while IFS= read -r line; do
        found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done < <(command holdfast complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)
    if (( ${#found} )); then
        _describe holdfast found
    else
        _files
    fi
}
if [ "$funcstack[1]" = "_holdfast" ]; then
    _holdfast
else
    compdef _holdfast holdfast
fi
`

const fishScript = `# holdfast completion fish: put it into ~/.config/fish/completions/holdfast.fish
function __holdfast_complete
    set -l words (commandline -opc) (commandline -ct)
    command holdfast complete -- $words[2..-1] 2>/dev/null
end
complete -c holdfast -f -a '(__holdfast_complete)'
complete -c holdfast -n 'test -z "(__holdfast_complete)"' -F
`

// completeCommand answers the scripts: what may stand for the last word, one a line, with a tab and what it is.
type completeCommand struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

func (c *completeCommand) Run(s *session, grammar *kong.Kong) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		words = []string{""}
	}
	for _, found := range completions(grammar.Model.Node, words) {
		if _, err := fmt.Fprintf(s.out, "%s\t%s\n", found.text, found.help); err != nil {
			return fmt.Errorf("write output: %w", err)
		}
	}
	return nil
}

// completion is a word that may come next.
type completion struct{ text, help string }

// completions walks the command line to the word that is being written.
func completions(at *kong.Node, words []string) []completion {
	last := words[len(words)-1]
	positional := 0
	var value *kong.Value // whose value comes next
	for _, word := range words[:len(words)-1] {
		name, _, given := strings.Cut(word, "=")
		switch flag := flagOf(at, name); {
		case value != nil:
			value = nil
		case strings.HasPrefix(word, "-"):
			if flag != nil && !flag.IsBool() && !given {
				value = flag.Value
			}
		case childOf(at, word) != nil:
			at = childOf(at, word)
		default:
			positional++
		}
	}
	name, prefix, given := strings.Cut(last, "=")
	switch {
	case value != nil:
		return valuesOf(value, "", last)
	case given && strings.HasPrefix(last, "--"):
		if flag := flagOf(at, name); flag != nil {
			return valuesOf(flag.Value, name+"=", prefix)
		}
		return nil
	case strings.HasPrefix(last, "-"):
		return flagsOf(at, last)
	}
	var found []completion
	for _, child := range at.Children {
		if !child.Hidden && strings.HasPrefix(child.Name, last) {
			found = append(found, completion{child.Name, child.Help})
		}
	}
	if len(at.Children) == 0 && positional < len(at.Positional) {
		found = valuesOf(at.Positional[positional], "", last)
	}
	return found
}

func childOf(at *kong.Node, name string) *kong.Node {
	for _, child := range at.Children {
		if child.Name == name {
			return child
		}
	}
	return nil
}

// flagOf finds a flag by --name or -x, also among those of the commands before.
func flagOf(at *kong.Node, word string) *kong.Flag {
	for _, group := range at.AllFlags(false) {
		for _, flag := range group {
			if word == "--"+flag.Name || flag.Short != 0 && word == "-"+string(flag.Short) {
				return flag
			}
		}
	}
	return nil
}

func flagsOf(at *kong.Node, prefix string) []completion {
	var found []completion
	for _, group := range at.AllFlags(true) {
		for _, flag := range group {
			if text := "--" + flag.Name; strings.HasPrefix(text, prefix) {
				found = append(found, completion{text, flag.Help})
			}
		}
	}
	return found
}

// valuesOf are the values that there are a few of; for others the shell looks for files.
func valuesOf(value *kong.Value, before, prefix string) []completion {
	var found []completion
	for _, one := range value.EnumSlice() {
		if one != "" && strings.HasPrefix(one, prefix) {
			found = append(found, completion{before + one, ""})
		}
	}
	return found
}
