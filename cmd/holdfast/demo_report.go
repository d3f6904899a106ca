package main

import (
	"fmt"
	"strings"
	"time"
)

// demoReport is what demo --json prints.
type demoReport struct {
	OK           bool             `json:"ok"`
	Conversation demoConversation `json:"conversation"`
	Steps        []demoStep       `json:"steps"`
	Seconds      float64          `json:"seconds"`
	Error        string           `json:"error,omitempty"`
	Kept         string           `json:"kept,omitempty"` // where the files of a failed demo are
}

type demoConversation struct {
	Source   string `json:"source"`
	Messages int    `json:"messages"`
	LeftOut  int    `json:"left_out"` // messages without text
}

// demoStep is one step: what was seen, and what that proves. Proves is empty for a step that failed.
type demoStep struct {
	Step   int      `json:"step"`
	Title  string   `json:"title"`
	Seen   []string `json:"seen"`
	Proves string   `json:"proves"`
	OK     bool     `json:"ok"`
}

// title begins a step.
func (d *demo) title(format string, args ...any) {
	step := demoStep{Step: len(d.report.Steps) + 1, Title: fmt.Sprintf(format, args...), Seen: []string{}}
	d.say("")
	d.say("%d. %s", step.Step, step.Title)
	d.report.Steps = append(d.report.Steps, step)
}

// say prints a line at once, or keeps it for the report. A reader who went away is noticed by the signal.
func (d *demo) say(format string, args ...any) {
	if !d.session.json {
		fmt.Fprintf(d.session.out, format+"\n", args...)
		return
	}
	line := strings.TrimSpace(fmt.Sprintf(format, args...))
	if last := len(d.report.Steps) - 1; last >= 0 && line != "" && !d.report.Steps[last].OK {
		d.report.Steps[last].Seen = append(d.report.Steps[last].Seen, line)
	}
}

// proves ends a step.
func (d *demo) proves(format string, args ...any) {
	step := &d.report.Steps[len(d.report.Steps)-1]
	step.OK, step.Proves = true, fmt.Sprintf(format, args...)
	d.say("   PROVED: %s", step.Proves)
}

// finish prints the report with --json; the words are out already otherwise.
func (d *demo) finish(began time.Time, failure string) error {
	if !d.session.json {
		return nil
	}
	d.report.OK, d.report.Error = failure == "", failure
	d.report.Seconds = float64(time.Since(began).Milliseconds()) / 1000
	if d.report.Steps == nil {
		d.report.Steps = []demoStep{}
	}
	return d.session.encode(d.report)
}
