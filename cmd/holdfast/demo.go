package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/holdfast-memory/holdfast/examples"
	"github.com/holdfast-memory/holdfast/internal/app"
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
	conversation []message
	source       string
	world        *world
	api          *client
	step         int

	canaries [2]string // stands in a message, stands in the instructions
	first    string    // the first event
	charged  int       // events that were paid for
}

// untrue is a claim that did not hold. The demo then ends with 1.
type untrue struct{ claim string }

func (e *untrue) Error() string { return "NOT TRUE: " + e.claim }

func (c *demoCommand) Run(s *session) error {
	conversation, source, err := c.conversation(s)
	if err != nil {
		return err
	}
	if len(conversation) > maxTurns {
		return fmt.Errorf("the conversation has %d messages; one request of the API takes 500", len(conversation))
	}
	ctx, cancel := context.WithTimeout(s.ctx, demoBound)
	defer cancel()
	limited := *s
	limited.ctx = ctx
	d := &demo{session: &limited, conversation: conversation, source: source}
	return d.run(ctx)
}

// conversation is the named one, or that of standard input when something is there, or the example.
func (c *demoCommand) conversation(s *session) ([]message, string, error) {
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

// run runs the steps in their world and ends it. A failed demo keeps its files, to be looked at.
func (d *demo) run(ctx context.Context) error {
	began := time.Now()
	w, err := newWorld()
	if err != nil {
		return err
	}
	d.world = w
	err = d.steps(ctx)
	if serr := d.world.stop(); serr != nil {
		err = errors.Join(err, serr)
	}
	if err != nil {
		d.say("")
		d.say("The demo failed; logs and data are kept in %s", w.dir)
		return err
	}
	if err := d.nothingLeft(); err != nil {
		return err
	}
	d.say("")
	d.say("Every claim above was checked. %.0f seconds; nothing is left running.", time.Since(began).Seconds())
	return nil
}

func (d *demo) steps(ctx context.Context) error {
	d.say("Holdfast demo, with the conversation of %s (%d messages).", d.source, len(d.conversation))
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

// title begins a step.
func (d *demo) title(format string, args ...any) {
	d.step++
	d.say("")
	d.say("%d. %s", d.step, fmt.Sprintf(format, args...))
}

func (d *demo) say(format string, args ...any) {
	fmt.Fprintf(d.session.out, format+"\n", args...)
}

// proves ends a step.
func (d *demo) proves(format string, args ...any) {
	d.say("   PROVED: %s", fmt.Sprintf(format, args...))
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
