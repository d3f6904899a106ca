package endtoend

import (
	"bytes"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/testkit"
)

// caseGroup is the cases of one kind. They share a system and keep apart by their users.
type caseGroup struct {
	env   []string
	idle  bool // no worker is started
	open  bool // the cases leave work behind that nobody does, so their holds stay open
	cases map[string]func(s *system)
}

// TestCases is what goes wrong with services that keep memories, and with idempotent interfaces, ledgers and long work:
// each kind of fault with its smallest input. The index in cases_index_test.go says which report is shown where.
//
// Some kinds have no whole place here. A full queue: there is none in memory to overflow, so what is held is that each
// receipt has its row. An embedded database that is locked under parallel writers: the database is a server. A library
// that repeats by itself without a key: such an add is refused. How often a slow model is asked before an event fails
// is the retry policy's own test; here it is held that a late answer is no success.
func TestCases(t *testing.T) {
	t.Parallel()
	for name, group := range caseGroups() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSystem(t, testkit.NewDatabase(t), group.env...)
			s.startAPI()
			if !group.idle {
				s.startWorker()
			}
			t.Cleanup(func() {
				if !group.open {
					s.until("everything has ended", func() bool {
						return one[int64](s, `SELECT count(*) FROM tasks WHERE completed_at IS NULL`) == 0
					})
					s.sound(one[int64](s, owedSQL, s.ws))
				}
			})
			for name, check := range group.cases {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					check(s.of(t))
				})
			}
		})
	}
}

func caseGroups() map[string]caseGroup {
	return map[string]caseGroup{
		"Duplicates":  {cases: duplicateCases()},
		"LostWrites":  {cases: lostWriteCases()},
		"NoWorker":    {idle: true, open: true, cases: noWorkerCases()},
		"Restart":     {idle: true, cases: restartCases()},
		"SlowModel":   {env: []string{"HOLDFAST_MODEL_TIMEOUT=1s"}, cases: slowModelCases()},
		"BadEmbedder": {cases: embedderCases()},
		"Text":        {cases: textCases()},
		"Lists": {
			env:   []string{"HOLDFAST_EXTRACTOR=offline", "HOLDFAST_EMBEDDER=offline", "TZ=America/Los_Angeles"},
			cases: listCases(),
		},
		"Deletion":    {env: []string{"HOLDFAST_OUTPUT_RETRIES=0"}, cases: deletionCases()},
		"Keys":        {env: []string{"HOLDFAST_OUTPUT_RETRIES=0"}, cases: keyCases()},
		"OneKey":      {env: []string{"HOLDFAST_OUTPUT_RETRIES=0"}, cases: oneKeyCases()},
		"Ledger":      {env: []string{"HOLDFAST_OUTPUT_RETRIES=0"}, cases: ledgerCases()},
		"BrokenBooks": {env: []string{"HOLDFAST_OUTPUT_RETRIES=0"}, cases: brokenBooksCases()},
		"Drift":       {idle: true, cases: driftCases()},
		"Operations":  {env: []string{"HOLDFAST_RETRY_BASE=2s"}, cases: operationCases()},
		"Limits":      {cases: limitCases()},
		"Receivers": {
			env:   []string{"HOLDFAST_WEBHOOK_ALLOW_HTTP=true", "HOLDFAST_WEBHOOK_ALLOW_NETWORKS=127.0.0.0/8", "HOLDFAST_RETRY_BASE=2ms"},
			cases: receiverCases(),
		},
		"GuardedReceivers": {
			env:  []string{"HOLDFAST_WEBHOOK_ALLOW_HTTP=true"},
			idle: true, open: true,
			cases: guardedCases(),
		},
		"Steering": {cases: steeringCases()},
	}
}

// owedSQL is what the commands of a workspace that succeeded cost by the list of prices.
const owedSQL = `
SELECT coalesce(sum(CASE WHEN kind IN ('memory_infer', 'memory_item') THEN 2 WHEN kind = 'memory_add' THEN 1 ELSE 0 END), 0)
  FROM tasks WHERE status = 'succeeded' AND workspace_id = $1`

// of is the same system for a subtest.
func (s *system) of(t *testing.T) *system {
	mine := *s
	mine.t = t
	return &mine
}

// send sends a body as it is.
func (s *system) send(method, path, key, body string) answer {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.api+path, bytes.NewReader([]byte(body)))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+s.key)
	request.Header.Set("Content-Type", "application/json")
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	var read bytes.Buffer
	if _, err := read.ReadFrom(response.Body); err != nil {
		s.t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, read.Bytes()}
}

// want fails unless the answer has the status and its body each of the words.
func (s *system) want(a answer, status int, words ...string) {
	s.t.Helper()
	if a.status != status {
		s.t.Fatalf("%d %s, want %d", a.status, a.body, status)
	}
	for _, word := range words {
		if !strings.Contains(string(a.body), word) {
			s.t.Fatalf("%s lacks %s", a.body, word)
		}
	}
}

// stored is what a verbatim add answers.
type stored struct {
	Results []struct {
		ID     string `json:"id"`
		Memory string `json:"memory"`
		Event  string `json:"event"`
	} `json:"results"`
	EventID string `json:"event_id"`
}

// store stores one text as it is, with metadata if there is any.
func (s *system) store(user, key, text string, metadata map[string]any) stored {
	s.t.Helper()
	body := map[string]any{"user_id": user, "content": text, "infer": false}
	if metadata != nil {
		body["metadata"] = metadata
	}
	a := s.do("POST", "/v1/memories", key, body)
	s.want(a, http.StatusOK)
	var v stored
	a.into(s.t, &v)
	if len(v.Results) != 1 {
		s.t.Fatalf("stored %s", a.body)
	}
	return v
}

// members are the names in a JSON object, sorted.
func (s *system) members(a answer) string {
	s.t.Helper()
	var object map[string]any
	a.into(s.t, &object)
	return strings.Join(slices.Sorted(maps.Keys(object)), " ")
}

// tasksOf counts the commands of a user.
func (s *system) tasksOf(user string) int64 {
	s.t.Helper()
	return one[int64](s, `SELECT count(*) FROM tasks WHERE user_id = $1`, user)
}

// outcomeIs fails unless the event has the outcome.
func (s *system) outcomeIs(e event, outcome string) {
	s.t.Helper()
	if e.Outcome == nil || *e.Outcome != outcome {
		s.t.Fatalf("event %+v, want the outcome %s", e, outcome)
	}
}

// purse is a workspace of its own with so many credits, behind the same API.
func (s *system) purse(credits int64) *system {
	s.t.Helper()
	mine := *s
	mine.key, mine.ws = s.another(access.Permissions()...)
	if credits > 0 {
		mine.grant("start", credits)
	}
	return &mine
}

func (s *system) grant(reference string, credits int64) {
	s.t.Helper()
	db, err := postgres.Open(s.t.Context(), postgres.Config{URL: s.url})
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Grant(s.t.Context(), s.ws, reference, credits); err != nil {
		s.t.Fatal(err)
	}
}
