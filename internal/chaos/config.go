package chaos

import (
	crand "crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Config says what one run does. FromEnvironment reads it.
type Config struct {
	Seed     uint64
	Commands int           // how many commands the actors send, replays and refused ones included
	Traffic  time.Duration // the time over which they are spread when nothing holds them up
	Faults   []string      // which kinds of fault strike, of Kinds
	Workers  int
}

// The kinds of fault.
const (
	faultKill    = "kill"    // SIGKILL of a process at a random moment
	faultStop    = "stop"    // SIGSTOP of a process, SIGCONT later
	faultPoint   = "point"   // a process starts with crash points that kill, freeze or hang it
	faultNet     = "net"     // latency, reset, black hole, half-open or refused connections of one process to one service
	faultCommit  = "commit"  // the answer to a COMMIT is lost, or the COMMIT itself
	faultRestart = "restart" // PostgreSQL restarts with a checkpoint
	faultCrash   = "crash"   // PostgreSQL restarts as after a crash
	faultFsync   = "fsync"   // PostgreSQL's disk takes its time
	faultNATS    = "nats"    // NATS is killed and started again
	faultFreeze  = "freeze"  // NATS is stopped and goes on later
	faultWipe    = "wipe"    // NATS loses its store
	faultHints   = "hints"   // hints are dropped, duplicated, late and out of order
	faultModel   = "model"   // the model stalls, fails and answers nonsense
	faultHooks   = "hooks"   // receivers of webhooks stall, fail, hang up, and one is gone
	faultClock   = "clock"   // one worker's clock is ten minutes ahead, all the time
)

// Kinds returns every kind of fault.
func Kinds() []string {
	return []string{
		faultKill, faultStop, faultPoint, faultNet, faultCommit, faultRestart, faultCrash, faultFsync, faultNATS, faultFreeze,
		faultWipe, faultHints, faultModel, faultHooks, faultClock,
	}
}

const (
	shortCommands = 240 // the part of `make test`: about half a minute of traffic
	mostCommands  = 1_000_000
	pace          = 12 // commands a second that two cores carry while everything breaks
	leastTraffic  = 20 * time.Second
	mostTraffic   = 24 * time.Hour
)

// FromEnvironment reads CHAOS_SEED (a fresh one otherwise), CHAOS_COMMANDS, CHAOS_SECONDS, CHAOS_WORKERS and CHAOS_FAULTS
// (kinds separated by commas, or none).
func FromEnvironment() (Config, error) {
	cfg := Config{Commands: shortCommands, Workers: 3, Faults: Kinds()}
	var fresh [8]byte
	_, _ = crand.Read(fresh[:]) // never fails
	cfg.Seed = binary.LittleEndian.Uint64(fresh[:])
	if text := os.Getenv("CHAOS_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return cfg, fmt.Errorf("CHAOS_SEED: %w", err)
		}
		cfg.Seed = seed
	}
	if err := number("CHAOS_COMMANDS", 1, mostCommands, &cfg.Commands); err != nil {
		return cfg, err
	}
	if err := number("CHAOS_WORKERS", 1, 16, &cfg.Workers); err != nil {
		return cfg, err
	}
	seconds := max(int(leastTraffic/time.Second), cfg.Commands/pace)
	if err := number("CHAOS_SECONDS", 1, int(mostTraffic/time.Second), &seconds); err != nil {
		return cfg, err
	}
	cfg.Traffic = time.Duration(seconds) * time.Second
	if text := os.Getenv("CHAOS_FAULTS"); text != "" {
		cfg.Faults = nil
		for name := range strings.SplitSeq(text, ",") {
			if name = strings.TrimSpace(name); name == "none" {
				continue
			}
			if !slices.Contains(Kinds(), name) {
				return cfg, fmt.Errorf("CHAOS_FAULTS: there is no fault %q; there are none and %s", name, strings.Join(Kinds(), ", "))
			}
			cfg.Faults = append(cfg.Faults, name)
		}
	}
	return cfg, nil
}

func number(name string, least, most int, into *int) error {
	text := os.Getenv(name)
	if text == "" {
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return fmt.Errorf("%s must be %d to %d", name, least, most)
	}
	*into = n
	return nil
}

func (c Config) has(kind string) bool { return slices.Contains(c.Faults, kind) }

// encryption is the setting with the master key of the run. Every other seed runs with payload encryption; an empty setting
// is none.
func (c Config) encryption() string {
	const name = "HOLDFAST_ENCRYPTION_KEYS="
	if c.Seed%2 == 0 {
		return name
	}
	key := sha256.Sum256(binary.LittleEndian.AppendUint64([]byte("master key "), c.Seed))
	return name + "chaos:" + base64.StdEncoding.EncodeToString(key[:])
}

// bound is how long a whole run may take: the traffic, held up by outages, and then the quiet.
func (c Config) bound() time.Duration { return 3*c.Traffic + sendBound + quietBound + 3*time.Minute }

// stream is the random numbers of one actor. What one takes doesn't change what another gets.
func (c Config) stream(name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return rand.New(rand.NewPCG(c.Seed, h.Sum64()))
}

// between is a random time from low to high.
func between(r *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(r.Int64N(int64(high-low)+1))
}
