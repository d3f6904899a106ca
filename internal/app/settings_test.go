package app

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/holdfast-memory/holdfast/internal/repair"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// parsed is what the given arguments and no environment make.
func parsed(t *testing.T, args ...string) (Settings, *kong.Kong, error) {
	t.Helper()
	var s Settings
	parser, err := kong.New(&s, kong.Name("test"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = parser.Parse(args)
	return s, parser, err
}

func TestSettings(t *testing.T) {
	t.Parallel()

	t.Run("DefaultsAreThoseOfThePackages", func(t *testing.T) {
		t.Parallel()
		s, _, err := parsed(t)
		if err != nil {
			t.Fatal(err)
		}
		w, r := worker.DefaultConfig(), repair.DefaultConfig()
		if s.WorkerSlots != w.Slots || s.WorkerPoll != w.Poll || s.LeaseTTL != w.LeaseTTL || s.ModelTimeout != w.ModelTimeout ||
			s.RepairInterval != r.Every || s.HintAge != r.HintAge || s.FailedInputRetention != r.FailedInputRetention || s.ActRetention != r.ActRetention ||
			s.policy() != task.DefaultPolicy() {
			t.Errorf("the settings are %+v, the worker's defaults %+v, repair's %+v", s.Work, w, r)
		}
	})

	t.Run("HaveTheDocumentedNamesInTheEnvironment", func(t *testing.T) {
		t.Parallel()
		var s Settings
		parser, err := kong.New(&s, kong.Name("test"), kong.DefaultEnvars(envPrefix))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, flag := range parser.Model.Flags {
			names = append(names, flag.Envs...)
		}
		for _, want := range strings.Fields(`LISTEN ADMIN_LISTEN STATE_DIR EXTRACTOR EMBEDDER OPENAI_BASE_URL OPENAI_API_KEY
			OPENAI_MODEL OPENAI_EMBEDDING_MODEL ANTHROPIC_BASE_URL ANTHROPIC_API_KEY ANTHROPIC_MODEL LEASE_TTL MODEL_TIMEOUT MODEL_INPUT_CHARS
			MAX_ATTEMPTS RETRY_BASE OUTPUT_RETRIES WORKER_SLOTS WORKER_POLL REPAIR_INTERVAL FAILED_INPUT_RETENTION LOG_LEVEL
			DATABASE_URL DATABASE_POOLER DATABASE_DIRECT_URL NATS_URL
			ENCRYPTION_KEYS ENCRYPTION_KEYS_FILE ENCRYPTION_OPEN_ONLY
			NATS_NKEY_FILE NATS_CA_FILE NATS_CERT_FILE NATS_KEY_FILE NATS_REPLICAS`) {
			if !slices.Contains(names, "HOLDFAST_"+want) {
				t.Errorf("HOLDFAST_%s is missing", want)
			}
		}
	})

	t.Run("DefaultsAreThoseOfTheDesign", func(t *testing.T) {
		t.Parallel()
		s, _, err := parsed(t)
		if err != nil {
			t.Fatal(err)
		}
		if s.LeaseTTL != time.Minute || s.MaxAttempts != 5 || s.WorkerPoll != 5*time.Second || s.OutputRetries != 1 ||
			s.FailedInputRetention != 7*24*time.Hour || s.ModelInputChars != 24_000 || s.Extractor != "offline" || s.Embedder != "offline" {
			t.Fatalf("got %+v", s)
		}
	})

	t.Run("ThatContradictAreRefusedAtTheStart", func(t *testing.T) {
		t.Parallel()
		for _, arg := range []string{
			"--lease-ttl=999ms", "--worker-poll=-1s", "--repair-interval=1ms", "--failed-input-retention=800h", "--max-attempts=0",
			"--output-retries=-1", "--retry-base=1h", "--extractor=magic", "--database-pooler=session", "--log-level=loud", "--nats-replicas=2",
		} {
			if _, _, err := parsed(t, arg); err == nil {
				t.Errorf("%s was taken", arg)
			}
		}
		if _, _, err := parsed(t, "--worker-poll=0"); err != nil {
			t.Errorf("a poll of 0 turns it off: %v", err)
		}
	})

	t.Run("SnapshotSaysHowACommandIsToBeRead", func(t *testing.T) {
		t.Parallel()
		for arg, want := range map[string]string{
			"--extractor=offline":                           `{"prompt":"holdfast-3","extractor":"offline"}`,
			"--extractor=openai":                            `{"prompt":"holdfast-3","extractor":"openai","model":"gpt-4.1-mini"}`,
			"--extractor=openai --openai-model=llama3":      `{"prompt":"holdfast-3","extractor":"openai","model":"llama3"}`,
			"--extractor=anthropic":                         `{"prompt":"holdfast-3","extractor":"anthropic","model":"claude-haiku-4-5"}`,
			"--extractor=anthropic --anthropic-model=other": `{"prompt":"holdfast-3","extractor":"anthropic","model":"other"}`,
		} {
			s, _, err := parsed(t, strings.Fields(arg)...)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := s.snapshot(); err != nil || string(got) != want {
				t.Errorf("%s: got %s, %v", arg, got, err)
			}
		}
	})

	t.Run("NeverPrintTheirSecrets", func(t *testing.T) {
		t.Parallel()
		s, _, err := parsed(t, "--database-url=postgres://u:canary@h/d", "--nats-url=nats://u:canary@h", "--openai-api-key=canary",
			"--anthropic-api-key=canary", "--database-direct-url=postgres://u:canary@h/d")
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{fmt.Sprint(s), fmt.Sprintf("%+v", s), fmt.Sprintf("%#v", s)} {
			if strings.Contains(text, "canary") {
				t.Fatalf("a secret shows in %s", text)
			}
		}
	})
}
