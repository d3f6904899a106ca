package chaos

import (
	"encoding/hex"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// planOf is the beginning of everything that a seed decides.
func planOf(cfg Config) []any {
	var all []any
	for _, name := range []string{"actor-0", "actor-1"} {
		a := &actor{cfg: cfg, plan: cfg.stream(name)}
		for range 50 {
			all = append(all, a.choose())
		}
	}
	b := &boss{cfg: cfg, plan: cfg.stream("operator")}
	for range 20 {
		all = append(all, b.choose())
	}
	s := &saboteur{w: &world{cfg: cfg}, plan: cfg.stream("faults")}
	for range 50 {
		x, _ := s.next()
		all = append(all, x)
	}
	return append(all, cfg.canary(canaryFact, 1, 2, 3), cfg.key(1, 2))
}

func TestPlan(t *testing.T) {
	t.Parallel()

	t.Run("TheSameSeedIsTheSamePlan", func(t *testing.T) {
		t.Parallel()
		cfg := Config{Seed: 7, Faults: Kinds()}
		if !reflect.DeepEqual(planOf(cfg), planOf(cfg)) {
			t.Fatal("two plans of one seed differ")
		}
		if reflect.DeepEqual(planOf(cfg), planOf(Config{Seed: 8, Faults: Kinds()})) {
			t.Fatal("two seeds have one plan")
		}
	})

	t.Run("EveryKindStrikes", func(t *testing.T) {
		t.Parallel()
		struck := map[string]bool{faultModel: true, faultHooks: true, faultClock: true} // these last for the whole run
		s := &saboteur{w: &world{cfg: Config{Seed: 1, Faults: Kinds()}}, plan: Config{Seed: 1}.stream("faults")}
		for range 1000 {
			x, any := s.next()
			if !any || x.after < 0 || x.after > time.Minute || x.last <= 0 {
				t.Fatalf("a strike out of bounds: %+v", x)
			}
			struck[x.kind] = true
		}
		for _, kind := range Kinds() {
			if !struck[kind] {
				t.Errorf("%s never strikes", kind)
			}
		}
	})

	t.Run("NoFaultsAreNone", func(t *testing.T) {
		t.Parallel()
		s := &saboteur{w: &world{}, plan: Config{}.stream("faults")}
		if x, any := s.next(); any {
			t.Fatalf("%+v strikes", x)
		}
	})
}

func TestCanaries(t *testing.T) {
	t.Parallel()
	cfg := Config{Seed: 3}
	plain, binary := cfg.canary(canaryFact, 0, 0, 0), cfg.canary(canaryRaw, 0, 0, 1)
	text := `7	{"a":"` + plain + `"}	\\x` + hex.EncodeToString([]byte(`{"b":"`+binary+`"}`)) + "	f"
	want := []string{plain, binary}
	slices.Sort(want)
	if got := canariesIn([]byte(text)); !slices.Equal(got, want) {
		t.Fatalf("found %q, want %q", got, want)
	}
	if got := canariesIn([]byte("cnyf and cnyq0123456789abcd9 and canary")); len(got) != 0 {
		t.Fatalf("found %q where there is none", got)
	}
}

func TestTwin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, message, want string }{
		{"WithHeaders", "HPUB wake.bulk _INBOX.1 12 14\r\nNats-Msg-Id:a\r\nhi\r\n", "HPUB wake.bulk 12 14\r\nChaos-MsgId:a\r\nhi\r\n"},
		{"Plain", "PUB wake.bulk 2\r\nhi\r\n", "PUB wake.bulk 2\r\nhi\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			line, _, _ := strings.Cut(c.message, "\n")
			if got := string(twin(strings.Fields(line), []byte(c.message))); got != c.want {
				t.Fatalf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	r := &report{accepted: 12}
	if got := r.line(); got != "accepted=12 lost=0 duplicated=0 double_charged=0 ledger_drift=0 stuck=0 leaked=0" || !r.clean() {
		t.Fatalf("a clean run says %q", got)
	}
	for _, column := range columns() {
		r.find(column, "a check", "something")
	}
	if got := r.line(); got != "accepted=12 lost=1 duplicated=1 double_charged=1 ledger_drift=1 stuck=1 leaked=1" || r.clean() {
		t.Fatalf("a broken run says %q", got)
	}
}
