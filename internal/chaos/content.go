package chaos

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const tablesSQL = `
SELECT quote_ident(table_name) FROM information_schema.tables
 WHERE table_schema = 'public' AND table_type = 'BASE TABLE' ORDER BY table_name`

// dump reads every row of every table as text and answers which canaries are in which tables, those within binary columns
// too.
func (w *world) dump(ctx context.Context) (map[string][]string, error) {
	conn, err := w.sql.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("dump: %w", err)
	}
	defer conn.Release()
	rows, err := conn.Query(ctx, tablesSQL)
	if err != nil {
		return nil, fmt.Errorf("dump: %w", err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("dump: %w", err)
	}
	found := map[string][]string{}
	for _, table := range tables {
		var text bytes.Buffer
		if _, err := conn.Conn().PgConn().CopyTo(ctx, &text, "COPY (SELECT x::text FROM "+table+" x) TO STDOUT"); err != nil {
			return nil, fmt.Errorf("dump %s: %w", table, err)
		}
		for _, word := range canariesIn(text.Bytes()) {
			found[word] = append(found[word], table)
		}
	}
	return found, nil
}

// canariesIn answers every canary once, also those whose bytes are written as hexadecimal digits.
func canariesIn(text []byte) []string {
	pattern := canaryPattern()
	seen := map[string]bool{}
	look := func(b []byte) {
		for _, word := range pattern.FindAll(b, -1) {
			seen[string(word)] = true
		}
	}
	look(text)
	for _, digits := range regexp.MustCompile(`\\x[0-9a-f]{36,}`).FindAll(text, -1) {
		digits = digits[2:]
		raw := make([]byte, len(digits)/2)
		if _, err := hex.Decode(raw, digits[:2*len(raw)]); err == nil {
			look(raw)
		}
	}
	words := make([]string, 0, len(seen))
	for word := range seen {
		words = append(words, word)
	}
	slices.Sort(words)
	return words
}

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

// checkFiles holds that no log and no file of NATS has content, and that no process has panicked.
func (w *world) checkFiles(r *report) error {
	broken := regexp.MustCompile(`(?m)^(panic|fatal error|WARNING: DATA RACE)\b.*`)
	look := func(path string) error {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("look into files: %w", err)
		}
		name := filepath.Base(path)
		if words := canariesIn(text); len(words) > 0 {
			r.find(leaked, "a file has content", "%s: %s", name, strings.Join(words[:min(3, len(words))], ", "))
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
