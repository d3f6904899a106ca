package worker

import (
	"slices"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
)

func TestRequestFollowsThePolicyOfItsTask(t *testing.T) {
	t.Parallel()
	policy := model.Policy{Prompt: "p", Instructions: "Workspace.", Categories: []memory.Category{{Name: "work"}}}
	kept, err := policy.Encode()
	if err != nil {
		t.Fatal(err)
	}
	own := []memory.Category{{Name: "own"}}
	for _, c := range []struct {
		name   string
		policy []byte
		add    command.Add
		wishes string
		want   []memory.Category
	}{
		{"TheWorkspaces", kept, command.Add{}, "Workspace.", policy.Categories},
		{"TheCommandsOnTop", kept, command.Add{Instructions: "Mine."}, "Workspace.\n\nMine.", policy.Categories},
		{"CategoriesOfTheCommandInTheirPlace", kept, command.Add{Categories: own}, "Workspace.", own},
		{"WithoutAPolicy", []byte("{}"), command.Add{Instructions: "Mine.", Categories: own}, "Mine.", own},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			request := requestOf(c.add, Lease{Policy: c.policy})
			if request.Instructions != c.wishes || !slices.Equal(request.Categories, c.want) {
				t.Errorf("asked with %q and %v", request.Instructions, request.Categories)
			}
		})
	}
}
