package endtoend

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

// twin sends one call of the items dialect for account u, the key as it is if there is one.
func (s *system) twin(route, key, body string) answer {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.api+"/v1/memory/"+route, bytes.NewReader([]byte(body)))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+s.key)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Twin-Account", "u")
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, read}
}

type kept struct {
	Items []struct {
		ID      string `json:"id"`
		EventID string `json:"event_id"`
		Landed  bool   `json:"landed"`
	} `json:"items"`
	Queued  int `json:"queued"`
	Pending int `json:"pending"`
}

func (s *system) keep(key, body string) kept {
	s.t.Helper()
	a := s.twin("add", key, body)
	if a.status != http.StatusOK {
		s.t.Fatalf("add: %d %s", a.status, a.body)
	}
	var k kept
	a.into(s.t, &k)
	return k
}

// said checks that a call succeeds and answers something with the text.
func (s *system) said(route, body, want string) {
	s.t.Helper()
	if a := s.twin(route, "", body); a.status != http.StatusOK || !strings.Contains(string(a.body), want) {
		s.t.Errorf("%s %s: %d %s, want %s", route, body, a.status, a.body, want)
	}
}

// TestTheDocumentedCallSentTwiceIsOneItem is the call of docs/items.md: two headers, one item without an id.
func TestTheDocumentedCallSentTwiceIsOneItem(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t), "HOLDFAST_EXTRACTOR=offline", "HOLDFAST_EMBEDDER=offline")
	s.startAPI()
	const call = `{"items":[{"text":"I have a cat called Rex."}]}`
	first := s.keep("batch-7", call)
	again := s.keep("batch-7", call)
	if first.Items[0].ID != "batch-7:0" || first.Items[0] != again.Items[0] || first.Queued != 1 || again.Queued != 0 || again.Pending != 1 {
		t.Fatalf("%+v, then %+v", first, again)
	}
	if e := s.event(first.Items[0].EventID); e.Status != "PENDING" {
		t.Fatalf("%+v", e)
	}
	s.startWorker()
	if e := s.succeeded(first.Items[0].EventID); len(e.Results) != 1 || e.Results[0].Event != "ADD" {
		t.Fatalf("%+v", e)
	}
	landed := s.keep("batch-7", call)
	if !landed.Items[0].Landed || landed.Items[0].EventID != first.Items[0].EventID || landed.Queued != 0 || landed.Pending != 0 {
		t.Fatalf("%+v", landed)
	}
	if own := s.keep("", `{"items":[{"id":"batch-7:0","text":"I have a cat called Rex."}]}`); own.Items[0] != landed.Items[0] || own.Queued != 0 {
		t.Fatalf("the generated name as the caller's own: %+v", own)
	}
	if n := one[int](s, `SELECT count(*) FROM memories`); n != 1 {
		t.Fatalf("%d memories", n)
	}
	s.said("search", `{"query":"what is the cat called"}`, "Rex")
	s.said("grep", `{"pattern":"cal+ed R","regex":true}`, `"batch-7:0"`)
	s.said("read", `{"ids":["batch-7:0"]}`, `"landed":true`)
	s.said("forget", `{"ids":["batch-7:0"]}`, `{"events":1,"queue":0}`)
	s.said("forget", `{"ids":["batch-7:0"]}`, `{"events":0,"queue":0}`)
	if a := s.do("GET", "/v1/events/"+first.Items[0].EventID, "", nil); a.status != http.StatusNotFound {
		t.Errorf("the event of a forgotten item: %d %s", a.status, a.body)
	}
	s.sound(2)
}

func quoted(text string) string {
	encoded, _ := json.Marshal(text)
	return string(encoded)
}

// TestAnEditOvertakesARunningRevision edits and forgets items in the middle of a model call, with vectors that come
// later than the records.
func TestAnEditOvertakesARunningRevision(t *testing.T) {
	t.Parallel()
	const canary = "xylophone-canary-4712"
	s := newSystem(t, testkit.NewDatabase(t), "HOLDFAST_LOG_LEVEL=debug")
	api := s.startAPI()
	item := func(id, text string) string {
		return `{"items":[{"id":` + quoted(id) + `,"text":` + quoted(text) + `,"session":` + quoted(id) + `}]}`
	}
	holdEdited, holdForgotten := s.stub.Hold(stubmodel.With("first-edited")), s.stub.Hold(stubmodel.With("first-forgotten"))
	edited := s.keep("", item("edited", "FACT: first-edited "+canary))
	forgotten := s.keep("", item("forgotten", "FACT: first-forgotten "+canary))
	worker := s.startWorker()
	<-holdEdited.Arrived()
	<-holdForgotten.Arrived()
	if again := s.keep("", item("edited", "FACT: second")); again.Queued != 1 || again.Items[0].EventID != edited.Items[0].EventID {
		t.Fatalf("%+v", again)
	}
	s.said("forget", `{"session":"forgotten"}`, `{"events":1,"queue":1}`)
	holdEdited.Release()
	holdForgotten.Release()
	e := s.succeeded(edited.Items[0].EventID)
	if len(e.Results) != 1 || *e.Results[0].Memory != "second" {
		t.Fatalf("%+v", e)
	}
	if a := s.do("GET", "/v1/events/"+forgotten.Items[0].EventID, "", nil); a.status != http.StatusNotFound {
		t.Errorf("the event of a forgotten item: %d %s", a.status, a.body)
	}

	var right struct {
		EventID string  `json:"event_id"`
		Memory  *string `json:"memory"`
	}
	a := s.twin("correct", "", `{"id":`+quoted(e.Results[0].ID)+`,"text":"third"}`)
	a.into(t, &right)
	if a.status != http.StatusOK || right.Memory == nil {
		t.Fatalf("%d %s", a.status, a.body)
	}
	s.succeeded(right.EventID)
	if a := s.twin("correct", "", `{"id":`+quoted(e.Results[0].ID)+`}`); a.status != http.StatusNotFound {
		t.Errorf("a second correction: %d %s", a.status, a.body)
	}
	if live := one[string](s, `SELECT string_agg(text, '|') FROM memories WHERE deleted_at IS NULL`); live != "third" {
		t.Errorf("live: %s", live)
	}
	if n := one[int](s, `SELECT count(*) FROM memory_vectors v JOIN memories m ON m.id = v.memory_id AND m.version = v.version AND m.deleted_at IS NULL`); n != 1 {
		t.Errorf("%d vectors of live records", n)
	}
	s.said("forget", `{"all":true}`, `{"events":1,"queue":0}`)
	for _, text := range []string{canary, "second", "third"} {
		if found := one[string](s, everywhereSQL, text); found != "" {
			t.Errorf("%q is in %s", text, found)
		}
	}
	worker.Signal(syscall.SIGTERM)
	worker.Wait(patience)
	api.Signal(syscall.SIGTERM)
	api.Wait(patience)
	if logs := api.Stderr() + worker.Stderr(); strings.Contains(logs, canary) {
		t.Error("a log quotes the caller")
	}
	s.sound(2)
}
