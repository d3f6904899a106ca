package worker

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	randv2 "math/rand/v2"
	"os"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-memory/holdfast/internal/task"
)

// Config holds the numbers of a worker. Zero values mean the defaults of DefaultConfig, but for Poll and
// WorkspaceLeases.
type Config struct {
	// Worker is the incarnation: unique to this start of the process. By default host, pid and a random part.
	Worker string
	// LeaseTTL is how long a task of a worker that died waits for another one; heartbeats come at a third of it.
	LeaseTTL time.Duration
	// ModelTimeout bounds one provider call. It may exceed LeaseTTL: heartbeats carry the lease through a call.
	ModelTimeout time.Duration
	// InputChars is how much of a conversation one call of the extractor reads, in characters; a longer conversation
	// takes several calls.
	InputChars int
	// Slots is how many tasks run at a time.
	Slots int
	// WorkspaceLeases is from how many live leases of one workspace, over all workers, its hints are left to the fair
	// drain; 0 is any number. A workspace may have a cap of its own. Without a poll there is no drain and no cap.
	WorkspaceLeases int
	// Poll is the mean time between two looks at the database; 0 leaves it to the hints alone.
	Poll time.Duration
	// Policy decides what follows a failure.
	Policy task.Policy
	// Kinds are the kinds of task that are claimed, beside those that have a job of their own.
	Kinds []task.Kind
	// Log gets one line for the end of each claim, and what no caller can be told.
	Log zerolog.Logger
	// Rand returns numbers in [0,1) for jitter; it must be safe for concurrent use.
	Rand func() float64
}

// Bounds of the settings.
const (
	minLeaseTTL     = time.Second           // below it a slow fsync costs leases
	maxLeaseTTL     = time.Hour             // a task of a dead worker waits that long
	minModelTimeout = 10 * time.Millisecond // below it no provider answers
	maxModelTimeout = time.Hour             // nothing else ends a call that hangs
	minInputChars   = 4_000                 // below it a window is hardly more than its overlap and a few sentences
	maxInputChars   = 250_000               // no body is longer
	maxSlots        = 1024                  // each holds a payload of up to 250 kB and a connection now and then
	minPoll         = 10 * time.Millisecond // below it the poll is the load
	maxPoll         = time.Hour             // the poll is what finds work when NATS is off
)

// DefaultConfig returns the defaults, the poll among them.
func DefaultConfig() Config {
	return Config{
		LeaseTTL: 60 * time.Second, ModelTimeout: 60 * time.Second, InputChars: 24_000, Slots: 16, WorkspaceLeases: 64, Poll: 5 * time.Second,
		Policy: task.DefaultPolicy(), Kinds: []task.Kind{task.Infer, task.Add, task.Update, task.Item}, Log: zerolog.Nop(),
		Rand: randv2.Float64,
	}
}

// checked returns the config with its defaults filled in.
func (c Config) checked(hints bool) (Config, error) {
	defaults := DefaultConfig()
	if c.LeaseTTL == 0 {
		c.LeaseTTL = defaults.LeaseTTL
	}
	if c.ModelTimeout == 0 {
		c.ModelTimeout = defaults.ModelTimeout
	}
	if c.InputChars == 0 {
		c.InputChars = defaults.InputChars
	}
	if c.Slots == 0 {
		c.Slots = defaults.Slots
	}
	if c.Policy == (task.Policy{}) {
		c.Policy = defaults.Policy
	}
	if c.Kinds == nil {
		c.Kinds = defaults.Kinds
	}
	if c.Rand == nil {
		c.Rand = defaults.Rand
	}
	if c.Worker == "" {
		name, err := incarnation()
		if err != nil {
			return c, err
		}
		c.Worker = name
	}
	if err := c.Policy.Validate(); err != nil {
		return c, err
	}
	return c, c.validate(hints)
}

func (c Config) validate(hints bool) error {
	switch {
	case c.LeaseTTL < minLeaseTTL || c.LeaseTTL > maxLeaseTTL:
		return fmt.Errorf("lease TTL must be %s to %s, not %s", minLeaseTTL, maxLeaseTTL, c.LeaseTTL)
	case c.ModelTimeout < minModelTimeout || c.ModelTimeout > maxModelTimeout:
		return fmt.Errorf("model timeout must be %s to %s, not %s", minModelTimeout, maxModelTimeout, c.ModelTimeout)
	case c.InputChars < minInputChars || c.InputChars > maxInputChars:
		return fmt.Errorf("input characters must be %d to %d, not %d", minInputChars, maxInputChars, c.InputChars)
	case c.Slots < 1 || c.Slots > maxSlots:
		return fmt.Errorf("slots must be 1 to %d, not %d", maxSlots, c.Slots)
	case c.Poll != 0 && (c.Poll < minPoll || c.Poll > maxPoll):
		return fmt.Errorf("poll must be 0 (off) or %s to %s, not %s", minPoll, maxPoll, c.Poll)
	case c.WorkspaceLeases < 0:
		return fmt.Errorf("leases of a workspace must not be %d: 0 turns the cap off", c.WorkspaceLeases)
	case c.Poll == 0 && !hints:
		return errors.New("a worker without hints needs a poll: set it to 5s")
	case len(c.Kinds) == 0:
		return errors.New("at least one kind of task is required")
	}
	return nil
}

// incarnation names this start of this process.
func incarnation() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("name the worker: %w", err)
	}
	var random [4]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", fmt.Errorf("name the worker: %w", err)
	}
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), hex.EncodeToString(random[:])), nil
}
