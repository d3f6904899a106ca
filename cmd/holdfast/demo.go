package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/holdfast-memory/holdfast/examples"
	"github.com/holdfast-memory/holdfast/internal/app"
	"github.com/holdfast-memory/holdfast/internal/command"
)

type demoCommand struct {
	Conversation string `env:"CONVERSATION,HOLDFAST_CONVERSATION" placeholder:"PATH" help:"A conversation in the common chat format; - reads standard input. Without it the one that standard input brings, or the example."`
}

const (
	// demoBound ends a demo that hangs; it takes about fifteen seconds.
	demoBound = 3 * time.Minute
	// pipeBound is how long a demo waits for the first byte of a pipe that nobody may ever write to.
	pipeBound = 2 * time.Second
	// maxTurns is one less than the API takes, because the demo adds a message of its own.
	maxTurns = 499
)

// demo is one run of it.
type demo struct {
	session      *session
	conversation conversation
	report       demoReport
	world        *world
	api          *client

	canaries [2]string // stands in a message, stands in the instructions
	first    string    // the first event
	charged  int       // events that were paid for
	traced   []string  // raw messages that were found in the database while they waited
	short    int       // messages that are too short to be searched for
}

// untrue is a claim that did not hold. The demo then ends with 1.
type untrue struct{ claim string }

func (e *untrue) Error() string { return "NOT TRUE: " + e.claim }

// Run runs the demo. A signal, and a reader of the output who went away, break it off: it then leaves nothing behind.
func (c *demoCommand) Run(s *session) error {
	found, source, err := c.conversation(s)
	if err != nil {
		return err
	}
	d := &demo{session: s, conversation: found, canaries: [2]string{"mark-" + rand.Text(), "mark-" + rand.Text()}}
	d.report.Conversation = demoConversation{Source: source, Messages: len(found.messages), LeftOut: found.leftOut}
	if err := d.fits(); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(s.ctx)
	defer stop()
	gone := make(chan os.Signal, 1) // with this the writes fail, and the process lives on to clean up
	signal.Notify(gone, syscall.SIGPIPE)
	defer signal.Stop(gone)
	go func() {
		select {
		case <-gone:
			stop()
		case <-ctx.Done():
		}
	}()
	return d.run(ctx)
}

// fits refuses what the API would refuse, before anything is started.
func (d *demo) fits() error {
	if n := len(d.conversation.messages); n > maxTurns {
		return exitf(app.ExitUsage, "the conversation has %d messages; one request of the API takes 500, and the demo adds one", n)
	}
	body, err := json.Marshal(d.request())
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	if len(body) > command.MaxBody {
		return exitf(app.ExitUsage, "the conversation makes a request of %d bytes; the API takes %d: shorten it", len(body), command.MaxBody)
	}
	return nil
}

// conversation is the named one, or that of standard input when something is there, or the example.
func (c *demoCommand) conversation(s *session) (conversation, string, error) {
	if c.Conversation != "" {
		found, err := readConversation(c.Conversation, s.in)
		return found, c.Conversation, err
	}
	if text := waiting(s.in); text != nil {
		found, err := parseConversation(text)
		return found, "standard input", err
	}
	found, err := parseConversation(examples.Conversation())
	return found, "examples/conversation.json", err
}

// waiting returns a JSON conversation that standard input holds, nil if there is none. Standard input can be many
// things that nobody meant as one: a terminal, nothing, a pipe that stays silent, the script that runs the demo. So
// only what begins like JSON is taken, and the rest is left where it is.
func waiting(in *os.File) []byte {
	if !piped(in) {
		return nil
	}
	first := make(chan byte, 1)
	go func() { // ends with the process when the pipe stays silent
		defer close(first)
		one := make([]byte, 1)
		for {
			if n, err := in.Read(one); n == 0 || err != nil {
				return
			}
			switch one[0] {
			case ' ', '\t', '\r', '\n', 0xef, 0xbb, 0xbf:
				continue
			}
			first <- one[0]
			return
		}
	}()
	select {
	case b, any := <-first:
		if !any || b != '[' && b != '{' {
			_, _ = in.Seek(-1, io.SeekCurrent) // a file can be given back, a pipe can't
			return nil
		}
		rest, err := io.ReadAll(io.LimitReader(in, maxConversation))
		if err != nil {
			return nil
		}
		return append([]byte{b}, rest...)
	case <-time.After(pipeBound):
		return nil
	}
}

// piped tells whether standard input is a file or a pipe.
func piped(in *os.File) bool {
	info, err := in.Stat()
	return err == nil && (info.Mode().IsRegular() || info.Mode()&os.ModeNamedPipe != 0)
}

// run runs the steps in their world and ends it. A failed demo keeps its files, to be looked at; one that was broken
// off doesn't.
func (d *demo) run(ctx context.Context) error {
	began := time.Now()
	w, err := newWorld()
	if err != nil {
		return err
	}
	d.world = w
	bounded, cancel := context.WithTimeout(ctx, demoBound)
	defer cancel()
	err = d.steps(bounded)
	if errors.Is(bounded.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("it takes longer than %s: %w", demoBound, err)
	}
	stopped := d.world.stop()
	if ctx.Err() != nil { // whatever has failed since then failed for that
		if err := os.RemoveAll(w.dir); err != nil {
			return fmt.Errorf("interrupted; remove the demo's files: %w", err)
		}
		return errors.Join(exitf(exitInterrupted, "interrupted"), d.finish(began, "interrupted"))
	}
	if err = errors.Join(err, stopped); err == nil {
		err = d.nothingLeft()
	}
	if err != nil {
		d.report.Kept = w.dir
		d.say("")
		d.say("The demo failed; logs and data, your conversation too, are kept in %s", w.dir)
		return errors.Join(err, d.finish(began, err.Error()))
	}
	d.say("")
	d.say("Every claim above was checked. %.0f seconds; nothing is left running.", time.Since(began).Seconds())
	return d.finish(began, "")
}

func (d *demo) steps(ctx context.Context) error {
	c := d.report.Conversation
	leftOut := ""
	if c.LeftOut > 0 {
		leftOut = fmt.Sprintf("; %d more without text are left out", c.LeftOut)
	}
	d.say("Holdfast demo, with the conversation of %s (%d messages%s).", c.Source, c.Messages, leftOut)
	d.say("Starting a private PostgreSQL, NATS and the API, as `holdfast up --workers 0`.")
	running, err := d.world.up(ctx)
	if err != nil {
		return err
	}
	d.api = newClient(running.API, secret(running.Key))
	d.say("API %s (process %d), PostgreSQL (process %d). No worker runs yet.", running.API, running.PIDs.Holdfast, running.PIDs.Postgres)
	for _, step := range []func(context.Context) error{
		d.receipt, d.completion, d.sameRequest, d.otherBody, d.killedWorker, d.purgedHint, d.ledger, d.textIsGone,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// claim fails unless it holds.
func claim(holds bool, format string, args ...any) error {
	if holds {
		return nil
	}
	return &untrue{fmt.Sprintf(format, args...)}
}

// nothingLeft shows that the processes are gone, and removes the files.
func (d *demo) nothingLeft() error {
	d.title("The end")
	for _, pid := range d.world.pids {
		if err := claim(!alive(pid), "process %d has ended", pid); err != nil {
			return err
		}
	}
	d.say("   SIGTERM to worker and server: both ended with 0, and with them PostgreSQL and NATS.")
	if err := os.RemoveAll(d.world.dir); err != nil {
		return fmt.Errorf("remove the demo's files: %w", err)
	}
	d.proves("all %d processes that the demo started are gone, and so are its files", len(d.world.pids))
	return nil
}

// secret keeps a key from being printed by mistake.
func secret(text string) (s app.Secret) { return app.Secret(text) }
