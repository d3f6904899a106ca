package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-memory/holdfast/internal/postgres"
)

// firstGrant is what `holdfast up` gives its first workspace.
const firstGrant = 1_000

// seenEvent is an event with the bytes that told of it.
type seenEvent struct {
	event
	body []byte
}

func (d *demo) get(ctx context.Context, path string) (seenEvent, error) {
	got, err := d.api.call(ctx, http.MethodGet, path, "", nil)
	if err != nil {
		return seenEvent{}, err
	}
	e := seenEvent{body: got.body}
	return e, got.read(&e.event)
}

func (d *demo) event(ctx context.Context, id string) (seenEvent, error) {
	return d.get(ctx, "/v1/events/"+url.PathEscape(id))
}

// await waits for the end of an event.
func (d *demo) await(ctx context.Context, id string) (seenEvent, error) {
	deadline := time.Now().Add(eventBound)
	for {
		e, err := d.get(ctx, "/v1/events/"+url.PathEscape(id)+"?wait=10")
		if err != nil || e.terminal() {
			return e, err
		}
		if time.Now().After(deadline) {
			return e, &untrue{fmt.Sprintf("%s ends within %s; it is %s", id, eventBound, e.Status)}
		}
	}
}

// memories are the texts of all memories of the demo's user.
func (d *demo) memories(ctx context.Context) ([]string, error) {
	var texts []string
	for cursor := ""; ; {
		query := url.Values{"user_id": {demoUser}, "limit": {"100"}}
		if cursor != "" {
			query.Set("cursor", cursor)
		}
		got, err := d.api.call(ctx, http.MethodGet, "/v1/memories?"+query.Encode(), "", nil)
		if err != nil {
			return nil, err
		}
		var page struct {
			Results []struct {
				Memory string `json:"memory"`
			} `json:"results"`
			NextCursor *string `json:"next_cursor"`
		}
		if err := got.read(&page); err != nil {
			return nil, err
		}
		for _, m := range page.Results {
			texts = append(texts, m.Memory)
		}
		if page.NextCursor == nil {
			return texts, nil
		}
		cursor = *page.NextCursor
	}
}

// balance checks what is available and held when so many runs are open and so many are paid for.
func (d *demo) balance(ctx context.Context, open, paid int64) error {
	got, err := d.api.call(ctx, http.MethodGet, "/v1/credits", "", nil)
	if err != nil {
		return err
	}
	var b struct{ Available, Held int64 }
	if err := got.read(&b); err != nil {
		return err
	}
	d.say("   Credits: %d available, %d held", b.Available, b.Held)
	return claim(b.Available == firstGrant-price*(open+paid) && b.Held == price*open,
		"%d credits are available and %d held, not %d and %d", firstGrant-price*(open+paid), price*open, b.Available, b.Held)
}

// journalEntry is one line of the journal.
type journalEntry struct {
	Type      string  `json:"type"`
	Amount    int64   `json:"amount"`
	EventID   *string `json:"event_id"`
	Reference *string `json:"reference"`
}

// entries are the lines of the journal for an event (all with an empty id) and type (all with an empty one).
func (d *demo) entries(ctx context.Context, id, kind string) ([]journalEntry, error) {
	got, err := d.api.call(ctx, http.MethodGet, "/v1/credits/entries?limit=100", "", nil)
	if err != nil {
		return nil, err
	}
	var page struct {
		Results []journalEntry `json:"results"`
	}
	if err := got.read(&page); err != nil {
		return nil, err
	}
	var found []journalEntry
	for _, e := range page.Results {
		if (id == "" || e.EventID != nil && *e.EventID == id) && (kind == "" || e.Type == kind) {
			found = append(found, e)
		}
	}
	return found, nil
}

func (d *demo) ledger(ctx context.Context) error {
	d.title("The ledger, before and after")
	entries, err := d.entries(ctx, "", "")
	if err != nil {
		return err
	}
	sums := map[string]int64{}
	for i := len(entries) - 1; i >= 0; i-- {
		e := entries[i]
		sums[e.Type] += e.Amount
		subject := "-"
		switch {
		case e.EventID != nil:
			subject = *e.EventID
		case e.Reference != nil:
			subject = *e.Reference
		}
		d.say("     %-8s %5d  %s", e.Type, e.Amount, subject)
	}
	paid := int64(d.charged)
	d.say("   Before: %d available. After %d paid requests, %d repeats, one refusal and one crash:", firstGrant, paid, repeats)
	if err := firstOf(
		d.balance(ctx, 0, paid),
		claim(sums["grant"] == firstGrant && sums["hold"] == price*paid && sums["settle"] == price*paid && sums["release"] == 0,
			"every hold was settled once: %v", sums),
	); err != nil {
		return err
	}
	d.proves("%d events, %d holds, %d settles of %d credits, and the journal adds up to the balance", paid, paid, paid, price)
	return nil
}

// shortest is the least length of a message that is searched for: shorter ones stand in other texts by chance.
const shortest = 24

// trace finds every raw message where it waits, so that finding none of them later means something.
func (d *demo) trace(ctx context.Context) error {
	for _, m := range d.conversation.messages {
		if utf8.RuneCountInString(m.Content) < shortest {
			d.short++
			continue
		}
		if slices.Contains(d.traced, m.Content) {
			continue
		}
		found, _, err := d.find(ctx, m.Content)
		if err != nil {
			return err
		}
		if err := claim(found["tasks"] == 1, "a raw message waits in one row of tasks, not in %s", names(found)); err != nil {
			return err
		}
		d.traced = append(d.traced, m.Content)
	}
	found, _, err := d.find(ctx, d.canaries[1])
	if err != nil {
		return err
	}
	return claim(found["tasks"] == 1, "the mark in the instructions waits in one row of tasks, not in %s", names(found))
}

// find counts the rows of each table that hold text, as it is or as it stands in JSON.
func (d *demo) find(ctx context.Context, text string) (map[string]int, int, error) {
	url := d.world.running.DatabaseURL
	found, tables, err := postgres.FindText(ctx, url, text)
	if err != nil {
		return nil, 0, err
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		return nil, 0, fmt.Errorf("encode message: %w", err)
	}
	inJSON := string(quoted[1 : len(quoted)-1])
	if inJSON == text {
		return found, tables, nil
	}
	more, _, err := postgres.FindText(ctx, url, inJSON)
	for table, n := range more {
		found[table] = max(found[table], n)
	}
	return found, tables, err
}

// textIsGone searches every table, log and file of the servers for what was said.
func (d *demo) textIsGone(ctx context.Context) error {
	d.title("The raw text is gone")
	memories, err := d.memories(ctx)
	if err != nil {
		return err
	}
	kept := strings.Join(memories, "\n")
	searched := slices.DeleteFunc(slices.Clone(d.traced), func(text string) bool { return strings.Contains(kept, text) })
	tables := 0
	for _, text := range append(slices.Clone(searched), d.canaries[:]...) {
		var found map[string]int
		if found, tables, err = d.find(ctx, text); err != nil {
			return err
		}
		if err := claim(len(found) == 0, "a raw message is still in %s", names(found)); err != nil {
			return err
		}
	}
	files, err := d.searchFiles(d.canaries[:])
	if err != nil {
		return err
	}
	e, err := d.event(ctx, d.first)
	if err != nil {
		return err
	}
	if err := claim(e.Status == "SUCCEEDED", "%s is SUCCEEDED, not %s", d.first, e.Status); err != nil {
		return err
	}
	d.say("   Step 1 found %s and the demo's own two marks in the database, of which one stands in small talk and one", count(len(d.traced), "raw message"))
	d.say("   in the instructions. The same SELECT over all %d tables, text and bytes, now finds neither mark%s.", tables, norAny(len(searched)))
	d.say("   Neither mark is in any of %d files of NATS and of the logs, PostgreSQL's too.", files)
	if d.short > 0 {
		d.say("   Not searched for: %s of less than %d characters, which may stand in other texts by chance.", count(d.short, "message"), shortest)
	}
	if same := len(d.traced) - len(searched); same > 0 {
		d.say("   Not searched for: %s, word for word a memory now.", count(same, "message"))
	}
	what := "the two marks"
	if len(searched) > 0 {
		what = count(len(searched), "raw message") + " and the two marks"
	}
	d.proves("%s are gone after success, only memories are kept, and the event still tells what became of the request", what)
	return nil
}

func norAny(messages int) string {
	if messages == 0 {
		return ""
	}
	return fmt.Sprintf(", and none of %s", count(messages, "raw message"))
}

// count is a number of things.
func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// searchFiles looks for texts in the files of NATS, in PostgreSQL's log and in the logs of all processes.
func (d *demo) searchFiles(texts []string) (files int, err error) {
	all := os.DirFS(d.world.dir)
	for _, root := range []string{"logs", "state/nats", "state/postgres.log"} {
		err = fs.WalkDir(all, root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := fs.ReadFile(all, path)
			if err != nil {
				return err
			}
			files++
			for _, text := range texts {
				if bytes.Contains(content, []byte(text)) {
					return &untrue{"a mark is in no file; it is in " + path}
				}
			}
			return nil
		})
		if err != nil {
			return files, err
		}
	}
	return files, claim(files > 0, "there are files to look at")
}
