package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-memory/holdfast/internal/app"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// words say what is done to how many events and what that moves.
func (e *errand) words() string {
	credits, more := int64(0), ""
	for _, p := range e.parts {
		credits += p.Credits
		if p.More {
			more = "more than "
		}
	}
	effect := fmt.Sprintf("which holds %d credits", credits)
	if e.choice.Act == write.BulkCancel {
		effect = fmt.Sprintf("which releases %d credits and stores nothing of them", credits)
	}
	return fmt.Sprintf("%s %s%d events, %s", e.choice.Act, more, e.count(), effect)
}

// confirm shows what it comes to and asks for the word, on the terminal only.
func (e *errand) confirm() error {
	if !terminal(e.s.in) {
		return exitf(app.ExitUsage, "this would %s; say --yes to do it, or --dry-run to see more", e.words())
	}
	out := *e.s
	out.out, out.json = e.s.err, false // what is asked is no output
	if err := (&errand{s: &out, choice: e.choice, parts: e.parts}).table(); err != nil {
		return err
	}
	fmt.Fprintf(e.s.err, "This will %s. Type yes to do it: ", e.words())
	return e.s.answered("yes")
}

// answered is nil when the next line of input is the word.
func (s *session) answered(word string) error {
	line, err := bufio.NewReader(io.LimitReader(s.in, maxReply)).ReadString('\n')
	if s.ctx.Err() != nil {
		return s.ctx.Err()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read answer: %w", err)
	}
	if strings.TrimSpace(line) != word {
		return exitf(app.ExitUsage, "nothing is done: the answer was not %s", word)
	}
	return nil
}

// maxReply bounds an answer that is typed.
const maxReply = 1024

// again is the command that goes on with the same bulk.
func (e *errand) again() string {
	line := fmt.Sprintf("holdfast event %s --since %s --until %s --bulk %s --yes", e.choice.Act,
		e.choice.Since.UTC().Format(time.RFC3339Nano), e.choice.Until.UTC().Format(time.RFC3339Nano), e.id)
	f := e.flags
	for _, flag := range [][2]string{
		{"code", f.Code}, {"workspace", f.Workspace}, {"user-id", f.UserID}, {"agent-id", f.AgentID}, {"run-id", f.RunID}, {"app-id", f.AppID},
	} {
		if flag[1] != "" {
			line += " --" + flag[0] + " '" + strings.ReplaceAll(flag[1], "'", `'\''`) + "'"
		}
	}
	return line
}

// show prints what it would do, or has done.
func (e *errand) show() error {
	if e.s.json {
		if e.parts == nil {
			e.parts = []*bulkPart{}
		}
		return e.s.encode(map[string]any{
			"act": e.choice.Act, "bulk": e.id.String(), "dry_run": e.flags.DryRun, "since": e.choice.Since.UTC(), "until": e.choice.Until.UTC(),
			"workspaces": e.parts,
		})
	}
	if err := e.table(); err != nil {
		return err
	}
	if e.flags.DryRun && e.count() > 0 {
		return e.s.show(nil, "This would %s. Nothing was done.\n", e.words())
	}
	return nil
}

func (e *errand) table() error {
	if len(e.parts) == 0 || e.count() == 0 && e.gone() == 0 {
		return e.s.show(nil, "There are no such events.\n")
	}
	rows := make([]string, 0, len(e.parts))
	for _, p := range e.parts {
		rows = append(rows, fmt.Sprintf("%s\t%d\t%d\t%d\t%d\t%d\t%s\t%s", p.Name, p.Count, p.Credits, p.Available, p.Gone, p.Done+p.Before,
			counted(p.Refused), counted(p.Classes)))
	}
	return e.s.table("workspace\tevents\tcredits\tavailable\tinput gone\tdone\trefused\tclasses", rows)
}

func (e *errand) gone() (n int) {
	for _, p := range e.parts {
		n += p.Gone
	}
	return n
}

// counted names what there is of each, in order.
func counted(numbers map[string]int) string {
	words := make([]string, 0, len(numbers))
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		words = append(words, fmt.Sprintf("%s %d", cmp.Or(name, "-"), numbers[name]))
	}
	return cmp.Or(strings.Join(words, ", "), "-")
}
