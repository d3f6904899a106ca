package app

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/operator"
	"github.com/holdfast-memory/holdfast/internal/repair"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/wakeup"
)

// Database says how to reach PostgreSQL.
type Database struct {
	DatabaseURL       model.Secret `name:"database-url" placeholder:"URL" help:"PostgreSQL 15 or newer, as postgres://user:password@host/database. Otherwise the database that run.json in the state directory names."`
	DatabasePooler    string       `name:"database-pooler" enum:"none,transaction" default:"none" help:"transaction: the URL leads to PgBouncer in transaction mode."`
	DatabaseDirectURL model.Secret `name:"database-direct-url" placeholder:"URL" help:"The server itself, past a pooler, for migrations and doctor."`
	StateDir          string       `name:"state-dir" placeholder:"DIR" help:"Where up keeps its servers' data and run.json (root: /var/lib/holdfast, others: $$XDG_STATE_HOME/holdfast)."`
}

// Direct returns the URL of the server itself.
func (d Database) Direct() model.Secret {
	if d.DatabaseDirectURL != "" {
		return d.DatabaseDirectURL
	}
	return d.DatabaseURL
}

// Models says which providers do the thinking.
type Models struct {
	Extractor            string        `enum:"offline,openai,anthropic" default:"offline" help:"Who extracts memories: offline (no network, simple and deterministic), openai (any compatible server) or anthropic."`
	Embedder             string        `enum:"offline,openai" default:"offline" help:"Who makes vectors: offline or openai."`
	OpenAIBaseURL        string        `name:"openai-base-url" placeholder:"URL" help:"An OpenAI-compatible server (https://api.openai.com/v1)."`
	OpenAIAPIKey         model.Secret  `name:"openai-api-key" placeholder:"KEY" help:"Its API key."`
	OpenAIModel          string        `name:"openai-model" placeholder:"NAME" help:"Its model for extraction."`
	OpenAIEmbeddingModel string        `name:"openai-embedding-model" placeholder:"NAME" help:"Its model for vectors."`
	AnthropicBaseURL     string        `name:"anthropic-base-url" placeholder:"URL" help:"Another address than https://api.anthropic.com."`
	AnthropicAPIKey      model.Secret  `name:"anthropic-api-key" placeholder:"KEY" help:"Its API key."`
	AnthropicModel       string        `name:"anthropic-model" placeholder:"NAME" help:"Its model for extraction."`
	ModelTimeout         time.Duration `name:"model-timeout" default:"60s" help:"How long one model call may take."`
	ModelInputChars      int           `name:"model-input-chars" default:"24000" help:"How many characters of a conversation one model call reads, 4000 to 250000; longer conversations are read in overlapping windows."`
}

// Work says how tasks are run and repaired.
type Work struct {
	LeaseTTL             time.Duration `name:"lease-ttl" default:"60s" help:"How long a task of a worker that died waits for another one; at least 1s. All processes must agree."`
	MaxAttempts          int           `name:"max-attempts" default:"5" help:"Crashes before a task fails with ATTEMPTS_EXHAUSTED."`
	RetryBase            time.Duration `name:"retry-base" default:"2s" help:"First delay after a provider failed; it doubles, with full jitter."`
	OutputRetries        int           `name:"output-retries" default:"1" help:"Retries after an answer of the wrong form."`
	WorkerSlots          int           `name:"worker-slots" default:"16" help:"Tasks that one worker runs at once."`
	WorkerPoll           time.Duration `name:"worker-poll" default:"5s" help:"How often a worker looks for due tasks without being told; 0 is never."`
	RepairInterval       time.Duration `name:"repair-interval" default:"10s" help:"How often repair makes a round."`
	FailedInputRetention time.Duration `name:"failed-input-retention" default:"168h" help:"How long the input of a failed task is kept for a retry by hand."`
	ActRetention         time.Duration `name:"act-retention" default:"9600h" help:"How long the log of acts is kept; at least 720h."`
	HintAge              time.Duration `name:"hint-age" default:"30s" hidden:"" help:"How long a due task waits before repair hints it again."`
	MinuteInterval       time.Duration `name:"minute-interval" default:"1m" hidden:"" help:"How often a process keeps the numbers that the console draws."`
}

// Limits keep one workspace from taking everything. Those of a workspace or a key itself come first.
type Limits struct {
	RateLimit  int `name:"rate-limit" default:"600000" help:"Requests a minute that one API process takes of a workspace without a limit of its own; 0 is any number."`
	MaxPending int `name:"max-pending" default:"100000" help:"Writes that a workspace without a limit of its own may have waiting; 0 is any number."`
	// WorkspaceLeases is soft: slots that nobody else wants are given beyond it.
	WorkspaceLeases int `name:"workspace-leases" default:"64" help:"Tasks under way, over all workers, from which a workspace without a cap of its own waits for its turn; 0 is any number."`
}

// NATS says how to reach NATS and how both sides know each other.
type NATS struct {
	NATSURL      model.Secret `name:"nats-url" placeholder:"URL" help:"NATS with JetStream, as tls://host:4222 or nats://host:4222. Without it tasks are found by polling only."`
	NATSNkeyFile string       `name:"nats-nkey-file" placeholder:"FILE" help:"The seed of this process's user at NATS, mode 0600; users are made by nats-setup."`
	NATSCAFile   string       `name:"nats-ca-file" placeholder:"FILE" help:"Certificates of the authorities that may vouch for NATS (those of the system); with it TLS is demanded."`
	NATSCertFile string       `name:"nats-cert-file" placeholder:"FILE" help:"A client certificate for NATS, where it wants one."`
	NATSKeyFile  string       `name:"nats-key-file" placeholder:"FILE" help:"Its key, mode 0600."`
	NATSReplicas int          `name:"nats-replicas" default:"1" help:"On how many servers of a NATS cluster the stream is kept that this process makes: 1, 3 or 5. What is there stays as it is."`
}

// link is how a process of that name shows itself to NATS.
func (n NATS) link(process string) wakeup.Link {
	return wakeup.Link{
		NkeyFile: n.NATSNkeyFile, Process: process, CAFile: n.NATSCAFile, CertFile: n.NATSCertFile, KeyFile: n.NATSKeyFile,
	}
}

// Settings are all settings of the processes, read from flags and from the environment under the same names
// (--lease-ttl is HOLDFAST_LEASE_TTL). Every process takes all of them and uses its own.
type Settings struct {
	Database
	Models
	Work
	Limits
	Receivers
	Encryption
	NATS
	Listen      string `placeholder:"HOST:PORT" help:"Where the API listens (127.0.0.1:8765)."`
	AdminListen string `name:"admin-listen" placeholder:"HOST:PORT" help:"Where /metrics, /healthz and /readyz are (127.0.0.1, the next free port from 8766); off is nowhere."`
	// AdminProfiles is off by default: a profile slows the process down.
	AdminProfiles bool     `name:"admin-profiles" help:"Serve Go's profiles under /debug/pprof of the admin listener."`
	MCPOrigins    []string `name:"mcp-origins" placeholder:"ORIGIN" help:"Pages that may call /mcp from a browser beside those of the API's own host, as https://host:port, separated by commas."`
	GroupCommit   bool     `name:"group-commit" default:"true" negatable:"" help:"What a process accepts, claims or commits at the same time shares a commit."`
	LogLevel      string   `name:"log-level" enum:"debug,info,warn,error" default:"info" help:"What goes to standard error: debug, info, warn or error."`
}

// maxInterval bounds the loops that find work when NATS is down.
const maxInterval = time.Hour

// maxLimit is what a limit's column holds.
const maxLimit = math.MaxInt32

// Validate refuses settings that contradict each other or that no process could work with. What one package alone
// knows is checked by its constructor.
func (s Settings) Validate() error {
	switch {
	case s.LeaseTTL < time.Second:
		return fmt.Errorf("lease-ttl is %s: below 1s a slow disk costs leases", s.LeaseTTL)
	case s.WorkerPoll < 0:
		return errors.New("worker-poll is negative: 0 turns it off")
	case s.RepairInterval < 100*time.Millisecond || s.RepairInterval > maxInterval:
		return fmt.Errorf("repair-interval must be 100ms to %s, not %s", maxInterval, s.RepairInterval)
	case s.FailedInputRetention < time.Second || s.FailedInputRetention > repair.MinKeyRetention:
		return fmt.Errorf("failed-input-retention must be 1s to %s, the time that keys are kept, not %s",
			repair.MinKeyRetention, s.FailedInputRetention)
	case s.ActRetention < operator.MinActRetention:
		return fmt.Errorf("act-retention must be at least %s, not %s", operator.MinActRetention, s.ActRetention)
	case s.NATSReplicas != 1 && s.NATSReplicas != 3 && s.NATSReplicas != 5:
		return fmt.Errorf("nats-replicas must be 1, 3 or 5, not %d", s.NATSReplicas)
	case s.MinuteInterval < 100*time.Millisecond || s.MinuteInterval > maxInterval:
		return fmt.Errorf("minute-interval must be 100ms to %s, not %s", maxInterval, s.MinuteInterval)
	case s.HintAge < 0:
		return errors.New("hint-age is negative")
	case min(s.RateLimit, s.MaxPending, s.WorkspaceLeases) < 0 || max(s.RateLimit, s.MaxPending, s.WorkspaceLeases) > maxLimit:
		return fmt.Errorf("rate-limit, max-pending and workspace-leases must be 0 to %d: 0 turns them off", maxLimit)
	}
	if _, err := s.rules(); err != nil {
		return fmt.Errorf("webhook-allow-networks: %w", err)
	}
	if err := s.policy().Validate(); err != nil {
		return err
	}
	return nil
}

// policy returns the retry rules.
func (s Settings) policy() task.Policy {
	p := task.DefaultPolicy()
	p.MaxAttempts, p.RetryBase, p.OutputRetries = s.MaxAttempts, s.RetryBase, s.OutputRetries
	return p
}

// Secret is text that prints as [redacted].
type Secret = model.Secret
