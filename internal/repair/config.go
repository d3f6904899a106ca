package repair

import (
	"errors"
	"fmt"
	randv2 "math/rand/v2"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-memory/holdfast/internal/operator"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// Config holds the numbers of a repairer. Zero values mean the defaults of DefaultConfig.
type Config struct {
	// Every is the mean time between two rounds of the loop.
	Every time.Duration
	// MaxAttempts is how many crashes end a task before its canonical commit: the workers' own number.
	MaxAttempts int
	// HintAge is how old the last hint of a due task must be before it is hinted again.
	HintAge time.Duration
	// HintLimit is the most hints of a round, and the most that may wait in NATS because of repair.
	HintLimit int
	// FailedInputRetention is how long a failed task can be retried by hand.
	FailedInputRetention time.Duration
	// ArchiveAfter is how long ended tasks stay in the hot table.
	ArchiveAfter time.Duration
	// KeyRetention is how long keys and events live after their task ended.
	KeyRetention time.Duration
	// ActRetention is how long the log of acts is kept.
	ActRetention time.Duration
	// RetentionEvery and BooksEvery are the least times between two runs of those passes in the loop.
	RetentionEvery time.Duration
	BooksEvery     time.Duration
	// Batch is how many rows one transaction of retention moves, and how many leases one scan reads.
	Batch int
	// Log gets one line for each pass that found something, and one for each disagreement of the books.
	Log zerolog.Logger
	// Rand returns numbers in [0,1) for jitter; it must be safe for concurrent use.
	Rand func() float64
}

// MinKeyRetention is promised to callers: a key is known at least that long after its task ended (DESIGN, Retention).
const MinKeyRetention = 30 * 24 * time.Hour

// Bounds of the settings.
const (
	minEvery     = 10 * time.Millisecond // below it repair is the load
	maxEvery     = time.Hour             // a lease of a dead worker waits that long when no worker polls
	maxHintLimit = 10_000                // the order of what JetStream hands out at a time
	minRetention = time.Second           // below it a failed event can't be read before its input is gone
	maxRetention = 10 * 365 * 24 * time.Hour
	maxBatch     = 1_000 // rows locked by one transaction
)

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{
		Every: 10 * time.Second, MaxAttempts: task.DefaultPolicy().MaxAttempts, HintAge: 30 * time.Second, HintLimit: 500,
		FailedInputRetention: 7 * 24 * time.Hour, ArchiveAfter: 72 * time.Hour, KeyRetention: MinKeyRetention,
		ActRetention:   400 * 24 * time.Hour, // a year and the month in which it is looked at
		RetentionEvery: time.Minute, BooksEvery: time.Hour, Batch: 200, Log: zerolog.Nop(), Rand: randv2.Float64,
	}
}

// checked returns the config with its defaults filled in, or names the setting that can't be.
func (c Config) checked() (Config, error) {
	d := DefaultConfig()
	for _, setting := range []struct{ value, fallback *time.Duration }{
		{&c.Every, &d.Every},
		{&c.HintAge, &d.HintAge},
		{&c.FailedInputRetention, &d.FailedInputRetention},
		{&c.ArchiveAfter, &d.ArchiveAfter},
		{&c.KeyRetention, &d.KeyRetention},
		{&c.ActRetention, &d.ActRetention},
		{&c.RetentionEvery, &d.RetentionEvery},
		{&c.BooksEvery, &d.BooksEvery},
	} {
		if *setting.value == 0 {
			*setting.value = *setting.fallback
		}
	}
	for _, setting := range []struct{ value, fallback *int }{
		{&c.MaxAttempts, &d.MaxAttempts}, {&c.HintLimit, &d.HintLimit}, {&c.Batch, &d.Batch},
	} {
		if *setting.value == 0 {
			*setting.value = *setting.fallback
		}
	}
	if c.Rand == nil {
		c.Rand = d.Rand
	}
	return c, c.validate()
}

func (c Config) validate() error {
	switch {
	case c.Every < minEvery || c.Every > maxEvery:
		return fmt.Errorf("repair interval must be %s to %s, not %s", minEvery, maxEvery, c.Every)
	case c.MaxAttempts < 1 || c.MaxAttempts > 100:
		return fmt.Errorf("max attempts must be 1 to 100, not %d", c.MaxAttempts)
	case c.HintAge < 0 || c.RetentionEvery < 0 || c.BooksEvery < 0:
		return errors.New("hint age and intervals must not be negative")
	case c.HintLimit < 1 || c.HintLimit > maxHintLimit:
		return fmt.Errorf("hint limit must be 1 to %d, not %d", maxHintLimit, c.HintLimit)
	case c.Batch < 1 || c.Batch > maxBatch:
		return fmt.Errorf("batch must be 1 to %d rows, not %d", maxBatch, c.Batch)
	case c.FailedInputRetention < minRetention || c.ArchiveAfter < minRetention:
		return fmt.Errorf("failed-input retention and the time to the archive must be at least %s", minRetention)
	case c.KeyRetention < MinKeyRetention || c.KeyRetention > maxRetention:
		return fmt.Errorf("key retention must be %s to %s, not %s", MinKeyRetention, maxRetention, c.KeyRetention)
	case c.ActRetention < operator.MinActRetention || c.ActRetention > maxRetention:
		return fmt.Errorf("act retention must be %s to %s, not %s", operator.MinActRetention, maxRetention, c.ActRetention)
	case c.KeyRetention < c.FailedInputRetention:
		return fmt.Errorf("key retention %s must not be below failed-input retention %s: a retry would lose its key",
			c.KeyRetention, c.FailedInputRetention)
	case c.KeyRetention < c.ArchiveAfter:
		return fmt.Errorf("key retention %s must not be below the time to the archive %s", c.KeyRetention, c.ArchiveAfter)
	}
	return nil
}
