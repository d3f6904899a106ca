package mem0

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

// settings is what the routes of this file talk to.
type settings struct {
	changes []command.PolicyChange
	filters []memory.Filter
}

func (s *settings) Change(_ context.Context, _ access.Caller, change command.PolicyChange) (command.ExtractionPolicy, error) {
	s.changes = append(s.changes, change)
	return command.ExtractionPolicy{}, nil
}

func (s *settings) Define(_ context.Context, _ access.Caller, filter memory.Filter) (uuid.UUID, error) {
	s.filters = append(s.filters, filter)
	return uuid.New(), nil
}

func (s *settings) Get(context.Context, uuid.UUID, uuid.UUID) (recall.Exported, bool, error) {
	return recall.Exported{Records: []memory.Record{{ID: uuid.New(), Text: "x"}}, Truncated: true}, true, nil
}

func (s *settings) Latest(_ context.Context, _ uuid.UUID, filter memory.Filter) (recall.Exported, bool, error) {
	s.filters = append(s.filters, filter)
	return recall.Exported{}, false, nil
}

// called is a call as the server hands it on.
func called(body string) httpapi.GuestCall {
	return httpapi.GuestCall{Caller: access.Caller{Workspace: access.Workspace{ID: uuid.New(), Name: "w"}}, Body: []byte(body)}
}

func TestPolicyChangeOf(t *testing.T) {
	t.Parallel()

	t.Run("OnlyWhatIsSaid", func(t *testing.T) {
		t.Parallel()
		for body, want := range map[string]string{
			`{}`:                           `{}`,
			`{"custom_instructions":"x"}`:  `{"instructions":"x"}`,
			`{"custom_instructions":null}`: `{"instructions":""}`,
			`{"custom_categories":null}`:   `{"categories":[]}`,
			`{"decay":false,"memory_depth":null,"org_id":"o"}`:                 `{}`,
			`{"custom_categories":[{"food":"eaten"},"work",{"b":"","a":"x"}]}`: `{"categories":[{"name":"food","description":"eaten"},{"name":"work"},{"name":"a","description":"x"},{"name":"b"}]}`,
		} {
			change, err := policyChangeOf(called(body))
			if err != nil {
				t.Errorf("%s: %v", body, err)
				continue
			}
			if got, err := change.Encode(); err != nil || string(got) != want {
				t.Errorf("%s became %s, %v", body, got, err)
			}
		}
	})

	t.Run("WhatIsNotDoneHereIsRefused", func(t *testing.T) {
		t.Parallel()
		for body, code := range map[string]fault.Code{
			`{"custom_instructions":"x","decay":true}`: fault.NotImplemented,
			`{"memory_depth":"` + canary + `"}`:        fault.NotImplemented,
			`[]`:                                       fault.InvalidRequest,
			`{"custom_instructions":7}`:                fault.InvalidRequest,
			`{"custom_categories":"food"}`:             fault.InvalidRequest,
			`{"custom_categories":[{"food":7}]}`:       fault.InvalidRequest,
			`{"custom_categories":["a","A"]}`:          fault.InvalidRequest,
		} {
			if _, err := policyChangeOf(called(body)); !fault.Is(err, code) {
				t.Errorf("%s: %v, want %s", body, err, code)
			}
		}
	})
}

func TestExportsNeedAnOwner(t *testing.T) {
	t.Parallel()
	for body, good := range map[string]bool{
		`{"filters":{"user_id":"u"}}`:                     true,
		`{"user_id":"u"}`:                                 true,
		`{"filters":{"AND":[{"userId":"u"}]},"schema":7}`: true,
		`{}`:                             false,
		`{"filters":{}}`:                 false,
		`{"filters":{"categories":"x"}}`: false,
		`{"filters":{"user":"u"}}`:       false,
		`{"filters":[]}`:                 false,
	} {
		s := &settings{}
		h := handlers{Deps{ExportDefiner: s, ExportReader: s}}
		answer, err := h.createExport(t.Context(), called(body))
		if (err == nil) != good || good && (answer.Status != 201 || len(s.filters) != 1) {
			t.Errorf("%s: %+v, %v", body, answer, err)
		}
		if _, err := h.readExport(t.Context(), called(body)); good && !fault.Is(err, fault.RouteNotFound) {
			t.Errorf("%s is found: %v", body, err)
		} else if good && len(s.filters) != 2 {
			t.Errorf("%s was looked for in another way", body)
		}
	}
	h := handlers{Deps{ExportReader: &settings{}}}
	answer, err := h.readExport(t.Context(), called(`{"memory_export_id":"`+uuid.NewString()+`"}`))
	if shown, ok := answer.Body.(exported); err != nil || !ok || shown.Count != 1 || len(shown.Memories) != 1 || !shown.Truncated {
		t.Errorf("answer %+v, %v", answer, err)
	}
}
