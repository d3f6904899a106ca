package admin

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/operator"
)

func TestDocument(t *testing.T) {
	t.Parallel()
	t.Run("NamesEveryRouteAndNoOther", func(t *testing.T) {
		t.Parallel()
		var shown struct {
			Paths map[string]map[string]json.RawMessage
		}
		if err := json.Unmarshal(document, &shown); err != nil {
			t.Fatal(err)
		}
		var documented []string
		for path, item := range shown.Paths {
			for method := range item {
				documented = append(documented, strings.ToUpper(method)+" "+path)
			}
		}
		routed := append(slices.Collect(maps.Keys((&api{}).routes())), "GET "+root+"/openapi.json")
		slices.Sort(documented)
		slices.Sort(routed)
		if !slices.Equal(documented, routed) {
			t.Fatalf("documented %v\nrouted %v", documented, routed)
		}
	})
	t.Run("IsValid", func(t *testing.T) {
		t.Parallel()
		loader := openapi3.NewLoader()
		doc, err := loader.LoadFromData(document)
		if err != nil {
			t.Fatal(err)
		}
		if err := doc.Validate(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestCursor(t *testing.T) {
	t.Parallel()
	place := operator.ActPlace{At: time.Date(2026, 3, 4, 5, 6, 7, 891_000, time.UTC), ID: uuid.New()}
	if again, ok := placeOf(cursorOf(place)); !ok || !again.At.Equal(place.At) || again.ID != place.ID {
		t.Fatalf("%v, %v", again, ok)
	}
	for _, broken := range []string{"", "x", "!", cursorOf(place) + "A"} {
		if _, ok := placeOf(broken); ok {
			t.Errorf("%q is a place", broken)
		}
	}
}
