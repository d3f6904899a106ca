package chaos

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

// doomed stands in a conversation that the model declines the first time and answers the second.
const doomed = "first decline this"

// factMark begins a line that is a fact.
const factMark = "FACT: "

// answerMark stands before the number of the answer that a fact is from.
const answerMark = ", says answer "

// mind is what the stub model does. It counts the calls of each command and answers every call differently: the same
// facts in other words, so that two commits of one command can be told apart.
type mind struct {
	seed    uint64
	wicked  bool
	pattern *regexp.Regexp

	mu     sync.Mutex
	calls  map[string]int // extractions by the canary of a command's raw text
	embeds int
	acts   map[string]int // what it did instead of answering
}

func newMind(cfg Config) *mind {
	return &mind{
		seed: cfg.Seed, wicked: cfg.has(faultModel), pattern: canaryPattern(), calls: map[string]int{}, acts: map[string]int{},
	}
}

func (m *mind) answer(call stubmodel.Call) stubmodel.Answer {
	if call.Endpoint != stubmodel.Chat {
		return m.embed(call)
	}
	who, text := "", strings.Builder{}
	for _, turn := range call.Conversation {
		text.WriteString(turn.Content + "\n")
	}
	for _, word := range m.pattern.FindAllString(text.String(), -1) {
		if who == "" || word[3] == canaryRaw {
			who = word
		}
	}
	m.mu.Lock()
	m.calls[who]++
	nth := m.calls[who]
	m.mu.Unlock()
	r := m.dice(who, nth)
	if strings.Contains(text.String(), doomed) && nth == 1 {
		return m.act("declines", stubmodel.Refused())
	}
	if m.wicked {
		if nth > 1 { // whoever lost the lease before comes back while the next one waits for this answer
			time.Sleep(between(r, 0, modelTimeout))
		}
		if answer, odd := m.misbehave(r, true); odd {
			return answer
		}
	}
	var facts []string
	for line := range strings.Lines(text.String()) {
		if fact, ok := strings.CutPrefix(strings.TrimSpace(line), factMark); ok {
			facts = append(facts, fmt.Sprintf("%s%s%d of mood %d", fact, answerMark, nth, r.IntN(1000)))
		}
	}
	return stubmodel.Facts(facts...)
}

func (m *mind) embed(call stubmodel.Call) stubmodel.Answer {
	m.mu.Lock()
	m.embeds++
	nth := m.embeds
	m.mu.Unlock()
	if m.wicked {
		if answer, odd := m.misbehave(m.dice(strings.Join(call.Inputs, "\n"), nth), false); odd {
			return answer
		}
	}
	return stubmodel.Answer{}
}

// dice are the random numbers of one call.
func (m *mind) dice(who string, nth int) *rand.Rand {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s/%d", who, nth)
	return rand.New(rand.NewPCG(m.seed, h.Sum64()))
}

// misbehave chooses what a call gets in place of an answer, one time in six.
func (m *mind) misbehave(r *rand.Rand, extraction bool) (stubmodel.Answer, bool) {
	roll := r.Float64()
	switch {
	case roll < 0.03:
		return m.act("is unavailable", stubmodel.Refuse(503, "")), true
	case roll < 0.05:
		return m.act("hangs up", stubmodel.Dropped()), true
	case roll < 0.07 && extraction:
		return m.act("hangs up in the middle", stubmodel.CutOff()), true
	case roll < 0.08:
		return m.act("wants a pause", stubmodel.RateLimited(300*time.Millisecond)), true
	case roll < 0.10 && extraction:
		return m.act("talks nonsense", stubmodel.Content("nonsense")), true
	case roll < 0.11 && extraction:
		return m.act("is cut short", stubmodel.Truncated()), true
	case roll < 0.12:
		return m.act("sends a page", stubmodel.HTML(502)), true
	case roll < 0.15: // some beyond the caller's patience
		time.Sleep(between(r, 200*time.Millisecond, 2*modelTimeout))
		m.act("is slow", stubmodel.Answer{})
	default:
		time.Sleep(between(r, 0, 500*time.Millisecond))
	}
	return stubmodel.Answer{}, false
}

func (m *mind) act(name string, answer stubmodel.Answer) stubmodel.Answer {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.acts[name]++
	return answer
}

// counts returns a copy of the calls by canary.
func (m *mind) counts() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	counts := make(map[string]int, len(m.calls))
	for who, n := range m.calls {
		counts[who] = n
	}
	return counts
}
