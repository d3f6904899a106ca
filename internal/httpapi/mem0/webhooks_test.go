package mem0

import (
	"testing"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/endpoint"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/task"
)

func TestKindsOf(t *testing.T) {
	t.Parallel()
	for _, names := range [][]string{nil, {"memory_categorize"}, {"memory_add", "ingest_job_failed"}, {"event.succeeded"}, {""}} {
		if kinds, err := kindsOf(names); !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("%v: %v %v", names, kinds, err)
		}
	}
	kinds, err := kindsOf([]string{"memory_delete", "memory_add", "memory_add"})
	if err != nil {
		t.Fatal(err)
	}
	change := endpoint.Change{Types: &[]endpoint.Type{endpoint.Succeeded}, Kinds: &kinds}
	if err := change.Check(); err != nil {
		t.Errorf("the kinds are refused: %v", err)
	}
	shown := hookOf(endpoint.Endpoint{ID: uuid.New(), Types: *change.Types, Kinds: kinds, Active: true})
	if len(shown.Types) != 2 || shown.Types[0] != "memory_add" || shown.Types[1] != "memory_delete" || shown.Secret != "" {
		t.Errorf("%+v", shown)
	}
}

func TestHookOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		types []endpoint.Type
		kinds []task.Kind
		want  int
	}{
		{[]endpoint.Type{endpoint.Succeeded}, nil, 3},
		{[]endpoint.Type{endpoint.Failed}, nil, 0},
		{[]endpoint.Type{endpoint.Succeeded, endpoint.Failed}, []task.Kind{task.Erase}, 1},
		{[]endpoint.Type{endpoint.Succeeded}, []task.Kind{task.Export}, 0},
	} {
		if got := hookOf(endpoint.Endpoint{Types: c.types, Kinds: c.kinds}).Types; len(got) != c.want || got == nil {
			t.Errorf("%v %v: %v", c.types, c.kinds, got)
		}
	}
}
