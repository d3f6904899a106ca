package endtoend

import (
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

// found is what a search answers.
type found struct {
	Results []struct {
		ID           string  `json:"id"`
		Memory       string  `json:"memory"`
		ValidTo      *string `json:"valid_to"`
		SupersededBy *string `json:"superseded_by"`
	} `json:"results"`
}

func (s *system) search(body map[string]any) found {
	s.t.Helper()
	a := s.do("POST", "/v1/memories/search", "", body)
	if a.status != http.StatusOK {
		s.t.Fatalf("search: %d %s", a.status, a.body)
	}
	var f found
	a.into(s.t, &f)
	return f
}

func (f found) texts() string {
	texts := make([]string, len(f.Results))
	for i, r := range f.Results {
		texts[i] = r.Memory
	}
	return strings.Join(texts, "|")
}

// TestMoved says where somebody lives and later that she moved: the answer changes, and nothing is forgotten.
func TestMoved(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env          []string
		first, later string
	}{
		"stub": {nil, "FACT: User lives in Paris", "FACT: User lives in Berlin REPLACES: Paris"},
		"offline": {
			[]string{"HOLDFAST_EXTRACTOR=offline", "HOLDFAST_EMBEDDER=offline"}, "I live in Paris.", "I moved to Berlin.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSystem(t, testkit.NewDatabase(t), c.env...)
			s.startAPI()
			s.startWorker()
			old := s.succeeded(s.add("k1", conversation("u", c.first)))
			e := s.succeeded(s.add("k2", conversation("u", c.later)))
			if len(e.Results) != 2 || e.Results[0].Event != "ADD" || e.Results[1].Event != "INVALIDATE" || e.Results[1].ID != old.Results[0].ID {
				t.Fatalf("event %+v", e)
			}
			now := s.search(map[string]any{"query": "where does she live", "user_id": "u"})
			if len(now.Results) != 1 || !strings.Contains(now.texts(), "Berlin") {
				t.Errorf("now %q", now.texts())
			}
			all := s.search(map[string]any{"query": "where does she live", "user_id": "u", "latest_only": false})
			if len(all.Results) != 2 {
				t.Fatalf("ever %q", all.texts())
			}
			for _, r := range all.Results {
				ended := strings.Contains(r.Memory, "Paris")
				if (r.ValidTo != nil) != ended || (r.SupersededBy != nil) != ended {
					t.Errorf("validity of %+v", r)
				}
			}
			history := string(s.do("GET", "/v1/memories/"+old.Results[0].ID+"/history", "", nil).body)
			if !strings.Contains(history, "ADD") || !strings.Contains(history, "INVALIDATE") || !strings.Contains(history, "Paris") {
				t.Errorf("history %s", history)
			}
			s.sound(4)
		})
	}
}

// TestOneOfThreeVectorsFails lets the embedder fail while one of three facts is among the texts: no vector of the
// command is there before all of them are.
func TestOneOfThreeVectorsFails(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t))
	s.startAPI()
	s.startWorker()
	down := stubmodel.Match{Endpoint: stubmodel.Embeddings, Marker: "two"}
	s.stub.Always(down, stubmodel.Reply(stubmodel.Refuse(http.StatusInternalServerError, "down")))
	id := s.add("k", conversation("u", "FACT: one", "FACT: two", "FACT: three"))
	s.until("the projection is retried", func() bool { return s.event(id).Status == "RETRYING" })
	if n := one[int64](s, `SELECT count(*) FROM memory_vectors`); n != 0 {
		t.Errorf("%d vectors of three", n)
	}
	if n := one[int64](s, `SELECT count(*) FROM memories`); n != 3 {
		t.Errorf("%d records of three", n)
	}
	s.stub.Always(down, nil)
	s.succeeded(id)
	if n := one[int64](s, `SELECT count(*) FROM memory_vectors`); n != 3 {
		t.Errorf("%d vectors of three at the end", n)
	}
	s.sound(2)
}
