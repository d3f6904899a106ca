package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/app"
)

type exportCommand struct {
	remote
	Output  string        `short:"o" env:"-" placeholder:"FILE" help:"Where to write it. Otherwise to standard output."`
	Timeout time.Duration `default:"1h" env:"-" help:"How long to wait for its end at most."`
}

// Run makes a snapshot, waits for it with its progress on standard error, and writes it. A file appears under its name
// when it is whole.
func (c *exportCommand) Run(s *session) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	got, err := api.call(s.ctx, http.MethodPost, "/v1/exports", uuid.NewString(), nil)
	if err != nil {
		return err
	}
	done, err := s.follow(api, got, c.Timeout)
	if err != nil {
		return err
	}
	path := "/v1/exports/" + url.PathEscape(done.ID)
	if c.Output == "" {
		return api.download(s.ctx, path, s.out)
	}
	file, err := os.CreateTemp(filepath.Dir(c.Output), ".holdfast-export-*")
	if err != nil {
		return exitf(app.ExitUsage, "%s cannot be written: %v", c.Output, err)
	}
	defer os.Remove(file.Name()) // what was renamed is not there any more
	err = api.download(s.ctx, path, file)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), c.Output); err != nil {
		return exitf(app.ExitFailed, "%s cannot be written: %v", c.Output, err)
	}
	return s.show(done, "%d memories and items are in %s.\n", done.Progress.Done, c.Output)
}

type importCommand struct {
	remote
	File           string        `arg:"" help:"A snapshot that export has written, or what --from says."`
	From           string        `enum:"holdfast,mem0" default:"holdfast" env:"-" help:"What the file is: holdfast (a snapshot) or mem0 (memories exported from mem0, as JSON or one a line)."`
	DefaultUser    string        `env:"-" placeholder:"ID" help:"With --from mem0: whose the memories without any user, agent, app or run are. Without it they are refused."`
	DryRun         bool          `env:"-" help:"With --from mem0: check the file, print what it holds and import nothing."`
	IdempotencyKey string        `name:"idempotency-key" env:"-" placeholder:"KEY" help:"A key to repeat it with; a random one if absent."`
	Timeout        time.Duration `default:"1h" env:"-" help:"How long to wait for its end at most."`
}

// Run sends a snapshot into the empty workspace of the key and waits until it is there.
func (c *importCommand) Run(s *session) error {
	if c.From != "mem0" && (c.DryRun || c.DefaultUser != "") {
		return exitf(app.ExitUsage, "--dry-run and --default-user need --from mem0")
	}
	if c.From == "mem0" {
		snapshot, err := convertMem0(c.File, c.DefaultUser)
		if err != nil {
			return err
		}
		defer snapshot.file.Close()
		if n := snapshot.counts; c.DryRun {
			return s.show(n, "%d memories of %d users, %d agents, %d apps and %d runs, from %s to %s; %d will expire. Nothing was imported.\n",
				n.Memories, n.Users, n.Agents, n.Apps, n.Runs, n.Oldest.Format(time.DateOnly), n.Newest.Format(time.DateOnly), n.Expiring)
		}
		return c.send(s, snapshot.file)
	}
	file, err := os.Open(c.File)
	if err != nil {
		return exitf(app.ExitUsage, "%s cannot be read: %v", c.File, err)
	}
	defer file.Close()
	return c.send(s, file)
}

func (c *importCommand) send(s *session, file *os.File) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	key := c.IdempotencyKey
	if key == "" {
		key = uuid.NewString()
	}
	got, err := api.upload(s.ctx, "/v1/imports", key, file)
	if err != nil {
		return err
	}
	done, err := s.follow(api, got, c.Timeout)
	if err != nil {
		return err
	}
	return s.show(done, "%d of %d memories and items are there.\n", done.Progress.Done, done.Progress.Total)
}

// moved is the event of an export or import.
type moved struct {
	event
	Progress struct {
		Done  int64 `json:"done"`
		Total int64 `json:"total"`
		Line  int64 `json:"line,omitempty"`
	} `json:"progress"`
}

// follow waits for the end of what a receipt names and shows on standard error how far it is.
func (s *session) follow(api *client, got answer, most time.Duration) (moved, error) {
	var receipt struct {
		EventID string `json:"event_id"`
	}
	if err := got.read(&receipt); err != nil {
		return moved{}, err
	}
	deadline := time.Now().Add(most)
	bar := s.progress("memories and items")
	defer bar.end()
	for {
		step := min(progressEvery, max(0, time.Until(deadline)))
		path := "/v1/events/" + url.PathEscape(receipt.EventID) + "?wait=" + strconv.Itoa(int(step.Seconds()+0.999))
		got, err := api.call(s.ctx, http.MethodGet, path, "", nil)
		if err != nil {
			return moved{}, err
		}
		var e moved
		if err := got.read(&e); err != nil {
			return moved{}, err
		}
		if e.Progress.Total > 0 {
			bar.show(e.Progress.Done, e.Progress.Total)
		}
		switch {
		case e.Status == "SUCCEEDED":
			return e, nil
		case e.Status == "FAILED" && e.Progress.Line > 0:
			return e, exitf(app.ExitFailed, "%s: line %d of the snapshot is wrong, or its id is in the database already; nothing was stored", e.what(), e.Progress.Line)
		case e.Status == "FAILED":
			return e, exitf(app.ExitFailed, "%s failed with %s", e.ID, e.what())
		case !time.Now().Before(deadline):
			return e, exitf(exitPending, "%s has not ended after %s; nothing is lost, ask again", e.ID, most)
		}
	}
}

// streaming calls with a body or an answer of any length: it ends with ctx, not after callBound.
func (c *client) streaming(ctx context.Context, method, path, key string, body io.Reader) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+c.key.Reveal())
	if body != nil {
		request.Header.Set("Content-Type", "application/x-ndjson")
		request.Header.Set("Idempotency-Key", key)
	}
	response, err := (&http.Client{Transport: c.http.Transport}).Do(request)
	if err != nil {
		return nil, c.unreachable(err, key != "")
	}
	return response, nil
}

func (c *client) upload(ctx context.Context, path, key string, body io.Reader) (answer, error) {
	response, err := c.streaming(ctx, http.MethodPost, path, key, body)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return answer{}, c.unreachable(err, true)
	}
	got := answer{response.StatusCode, response.Header, bytes.TrimSpace(text)}
	if got.status != http.StatusAccepted {
		return got, got.refusal()
	}
	return got, nil
}

// download writes a snapshot to out and tells whether it came whole, by its last line.
func (c *client) download(ctx context.Context, path string, out io.Writer) error {
	response, err := c.streaming(ctx, http.MethodGet, path, "", nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer)) // without its reason it is refused all the same
		return answer{response.StatusCode, response.Header, bytes.TrimSpace(text)}.refusal()
	}
	end := &tail{}
	if _, err := io.Copy(io.MultiWriter(out, end), response.Body); err != nil {
		return exitf(exitTryAgain, "the snapshot broke off (%v): export again", err)
	}
	if !end.whole() {
		return exitf(exitTryAgain, "the snapshot is cut off: export again")
	}
	return nil
}

// tail keeps the end of what is written: a footer is shorter than that.
type tail struct{ kept []byte }

const tailBytes = 512

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p[max(0, len(p)-tailBytes):]...)
	t.kept = t.kept[max(0, len(t.kept)-tailBytes):]
	return len(p), nil
}

func (t *tail) whole() bool {
	last, ended := bytes.CutSuffix(t.kept, []byte("\n"))
	return ended && bytes.HasPrefix(last[bytes.LastIndexByte(last, '\n')+1:], []byte(`{"type":"footer",`))
}
