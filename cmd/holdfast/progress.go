package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// progress tells on standard error how far long work is: as a bar on a terminal, as a line now and then elsewhere.
type progress struct {
	out   io.Writer
	bar   bool
	what  string
	began time.Time
	last  time.Time
	done  int64
	drawn int
}

const (
	// barEvery redraws often enough to look alive, and costs nothing.
	barEvery = 100 * time.Millisecond
	// barCells is the bar's width; with its words a line stays below 80 columns.
	barCells = 30
)

// terminal tells whether a person is at that end.
func terminal(f *os.File) bool { return f != nil && term.IsTerminal(int(f.Fd())) } // #nosec G115 -- file descriptors are small

// progress counts things of that name. With --quiet tools that read standard error, lines come once a second at most.
func (s *session) progress(what string) *progress {
	file, isFile := s.err.(*os.File)
	return &progress{out: s.err, bar: isFile && terminal(file) && os.Getenv("TERM") != "dumb", what: what, began: time.Now(), done: -1}
}

// show tells how far it is. A total of 0 is not known.
func (p *progress) show(done, total int64) {
	now := time.Now()
	every := progressEvery
	if p.bar {
		every = barEvery
	}
	if done == p.done || now.Sub(p.last) < every {
		return
	}
	p.done, p.last = done, now
	if p.bar {
		p.draw(p.line(done, total, now))
		return
	}
	if total > 0 {
		fmt.Fprintf(p.out, "%d of %d %s\n", done, total, p.what)
	} else {
		fmt.Fprintf(p.out, "%d %s\n", done, p.what)
	}
}

// line is a bar with its numbers, as "[#####.....]  50%  1200/2400 memories  0:12 left".
func (p *progress) line(done, total int64, now time.Time) string {
	if total <= 0 {
		return fmt.Sprintf("%d %s", done, p.what)
	}
	share := min(float64(done)/float64(total), 1)
	full := int(share * barCells)
	line := fmt.Sprintf("[%s%s] %3d%%  %d/%d %s", strings.Repeat("#", full), strings.Repeat(".", barCells-full), int(share*100), done, total, p.what)
	if spent := now.Sub(p.began); done > 0 && done < total && spent > 2*time.Second { // a guess from less is none
		left := time.Duration(float64(spent) * float64(total-done) / float64(done)).Round(time.Second)
		line += fmt.Sprintf("  %d:%02d left", int(left.Minutes()), int(left.Seconds())%60)
	}
	return line
}

func (p *progress) draw(line string) {
	fmt.Fprintf(p.out, "\r%s%s", line, strings.Repeat(" ", max(0, p.drawn-len(line))))
	p.drawn = len(line)
}

// end takes the bar away, so that what follows begins on a clean line.
func (p *progress) end() {
	if p.drawn > 0 {
		fmt.Fprintf(p.out, "\r%s\r", strings.Repeat(" ", p.drawn))
		p.drawn = 0
	}
}
