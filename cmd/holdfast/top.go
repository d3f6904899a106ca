package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/holdfast-memory/holdfast/internal/app"
	"github.com/holdfast-memory/holdfast/internal/operator"
	"github.com/holdfast-memory/holdfast/internal/postgres"
)

type topCommand struct {
	app.Database
	Every time.Duration `default:"2s" env:"-" help:"How often it looks, 500ms to 1m."`
	Once  bool          `env:"-" help:"Look once, as it does where no terminal is."`
}

const (
	leastEvery = 500 * time.Millisecond
	mostEvery  = time.Minute
	// minutesBack is where the newest row of every process is: each writes one a minute.
	minutesBack = 150 * time.Second
	// The smallest screen that is drawn for, and what is taken when its size is not known.
	topWidth, topHeight = 80, 24
)

// What a terminal is told: another screen without a cursor, and back.
const (
	screenOn  = "\x1b[?1049h\x1b[?25l"
	screenOff = "\x1b[?25h\x1b[?1049l"
	screenTop = "\x1b[H"
	lineEnd   = "\x1b[K\r\n"
	clearRest = "\x1b[J"
)

// Run draws until q, Ctrl-C or a signal. Where no terminal is, and with --json, it draws once.
func (c *topCommand) Run(s *session) error {
	if c.Every < leastEvery || c.Every > mostEvery {
		return exitf(app.ExitUsage, "--every must be %s to %s", leastEvery, mostEvery)
	}
	return s.admin(c.Database, func(db *postgres.DB) error {
		out, isFile := s.out.(*os.File)
		if s.json || c.Once || !isFile || !terminal(out) || !terminal(s.in) || os.Getenv("TERM") == "dumb" {
			v, err := lookOver(s.ctx, db)
			if err != nil {
				return err
			}
			if s.json {
				return s.encode(v)
			}
			for _, line := range v.lines(topWidth, topHeight) {
				if err := s.show(nil, "%s\n", line); err != nil {
					return err
				}
			}
			return nil
		}
		return c.watch(s, db, out)
	})
}

// watch has the terminal for itself and gives it back as it was.
func (c *topCommand) watch(s *session, db *postgres.DB, out *os.File) (err error) {
	fd := int(s.in.Fd()) // #nosec G115 -- file descriptors are small
	before, err := term.MakeRaw(fd)
	if err != nil {
		return exitf(app.ExitFailed, "the terminal can't be used (%v): try --once", err)
	}
	fmt.Fprint(out, screenOn)
	defer func() {
		fmt.Fprint(out, screenOff)
		if restored := term.Restore(fd, before); err == nil {
			err = restored
		}
	}()
	keys := make(chan byte, 1)
	go func() { // it ends with the process: a read from a terminal can't be called off
		one := make([]byte, 1)
		for {
			if n, err := s.in.Read(one); err != nil || n == 0 {
				return
			}
			keys <- one[0]
		}
	}()
	tick := time.NewTicker(c.Every)
	defer tick.Stop()
	var last view
	for {
		v, err := lookOver(s.ctx, db)
		switch {
		case s.ctx.Err() != nil:
			return nil
		case err != nil: // a database that is away comes back
			_, text := verdict(err)
			last.Trouble = text
		default:
			last = v
		}
		draw(out, last)
		for waiting := true; waiting; {
			select {
			case <-s.ctx.Done():
				return nil
			case key := <-keys:
				const ctrlC = 3
				if key == 'q' || key == 'Q' || key == ctrlC {
					return nil
				}
				draw(out, last)
			case <-tick.C:
				waiting = false
			}
		}
	}
}

func draw(out *os.File, v view) {
	width, height, err := term.GetSize(int(out.Fd())) // #nosec G115 -- file descriptors are small
	if err != nil || width < 1 || height < 1 {
		width, height = topWidth, topHeight
	}
	frame := screenTop
	for i, line := range v.lines(width, height) {
		if i > 0 {
			frame += lineEnd
		}
		frame += line
	}
	fmt.Fprint(out, frame+"\x1b[K"+clearRest)
}

// lookOver reads everything that a frame shows.
func lookOver(ctx context.Context, db *postgres.DB) (view, error) {
	standing, err := db.Standing(ctx)
	if err != nil {
		return view{}, err
	}
	minutes, err := db.Minutes(ctx, minutesBack)
	if err != nil {
		return view{}, err
	}
	work, err := db.Work(ctx)
	if err != nil {
		return view{}, err
	}
	scene, err := db.Scene(ctx)
	if err != nil {
		return view{}, err
	}
	return viewOf(time.Now(), standing, newestOf(minutes), work, scene), nil
}

// newestOf adds up the newest row of each process.
func newestOf(minutes []operator.ProcessMinute) (sum operator.ProcessMinute) {
	seen := map[string]bool{}
	for _, m := range minutes { // the newest come first
		if !seen[m.Process] {
			seen[m.Process] = true
			sum.Merge(m)
		}
	}
	return sum
}
