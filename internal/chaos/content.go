package chaos

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/testkit/canary"
)

// dump reads every row of every table as text and answers which canaries are in which tables, those within binary columns
// too.
func (w *world) dump(ctx context.Context) (map[string][]string, error) {
	conn, err := w.sql.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("dump: %w", err)
	}
	defer conn.Release()
	tables, err := canary.Tables(ctx, conn.Conn())
	if err != nil {
		return nil, fmt.Errorf("dump: %w", err)
	}
	found := map[string][]string{}
	for _, table := range slices.Sorted(maps.Keys(tables)) {
		for _, word := range canary.Find(tables[table], canaryPattern()) {
			found[word] = append(found[word], table)
		}
	}
	return found, nil
}

// canariesIn answers every canary once, also those whose bytes are written as hexadecimal digits.
func canariesIn(text []byte) []string { return canary.Find(canary.Readable(text), canaryPattern()) }

// checkContent holds that content is only where it may be.
func (w *world) checkContent(ctx context.Context, n *notes, r *report) error {
	found, err := w.dump(ctx)
	if err != nil {
		return err
	}
	tasks, err := w.tasks(ctx)
	if err != nil {
		return err
	}
	nowhere := func(words []string, check, whose string) {
		for _, word := range words {
			if in := found[word]; len(in) > 0 {
				r.find(leaked, check, "%s of %s is in %s", word, whose, strings.Join(in, ", "))
			}
		}
	}
	for _, c := range n.commands {
		whose := c.kind + " " + c.event.String()
		switch {
		case c.event == uuid.Nil && c.clean && c.refusal != "":
			nowhere(append(slices.Clone(c.facts), c.raw...), "a refused request left content", whose)
		case c.event == uuid.Nil || c.late:
		case c.erased:
			nowhere(append(slices.Clone(c.facts), c.raw...), "erased content is there", whose)
		case tasks[c.event].status == "succeeded":
			nowhere(c.raw, "raw input outlived success", whose)
		}
	}
	for word, in := range found {
		if word[3] == canaryRefused {
			r.find(leaked, "a refused request left content", "%s is in %s", word, strings.Join(in, ", "))
		}
	}
	for _, it := range n.items {
		if it.sure && it.forgotten {
			nowhere(it.texts, "forgotten content is there", it.id+" of "+it.account)
		}
	}
	w.checkMetrics(ctx, r)
	return w.checkFiles(r)
}

// checkMetrics holds that what processes show an operator has no content.
func (w *world) checkMetrics(ctx context.Context, r *report) {
	for _, address := range w.admins {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/metrics", nil)
		if err != nil {
			continue
		}
		response, err := w.http.Do(request)
		if err != nil {
			r.find(stuck, "a process shows no metrics", "%s", address)
			continue
		}
		text, _ := io.ReadAll(io.LimitReader(response.Body, mostBytes))
		_ = response.Body.Close()
		if words := canariesIn(text); len(words) > 0 {
			r.find(leaked, "metrics have content", "%s: %s", address, words[0])
		}
	}
}

// checkFiles holds that no log and no file of NATS has content or a secret, and that no process has panicked.
func (w *world) checkFiles(r *report) error {
	broken := regexp.MustCompile(`(?m)^(panic|fatal error|WARNING: DATA RACE)\b.*|"panic":"[^"]*"`)
	look := func(path string) error {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("look into files: %w", err)
		}
		name := filepath.Base(path)
		if words := canariesIn(text); len(words) > 0 {
			r.find(leaked, "a file has content", "%s: %s", name, strings.Join(words[:min(3, len(words))], ", "))
		}
		for _, secret := range w.secrets {
			if bytes.Contains(text, []byte(secret)) {
				r.find(leaked, "a file has a secret", "%s", name)
			}
		}
		if line := broken.Find(text); line != nil && strings.HasSuffix(name, ".log") {
			r.find(stuck, "a process broke", "%s: %s", name, line)
		}
		return nil
	}
	logs, err := filepath.Glob(filepath.Join(w.dir, "*.log"))
	if err != nil {
		return fmt.Errorf("look into files: %w", err)
	}
	for _, path := range logs {
		if err := look(path); err != nil {
			return err
		}
	}
	return filepath.WalkDir(w.store, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil //nolint:nilerr // NATS replaces its files while this looks
		}
		_ = look(path)
		return nil
	})
}
