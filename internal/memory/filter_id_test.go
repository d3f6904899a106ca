package memory

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
)

func TestFilterOfIDs(t *testing.T) {
	t.Parallel()
	id := uuid.NewString()
	for _, form := range []string{id, "mem_" + id, strings.ToUpper(id)} {
		filter, err := ParseFilter(fmt.Appendf(nil, `{"id":{"in":[%q]}}`, form))
		if err != nil || filter.Field != FilterID || filter.Values[0].Text != id {
			t.Errorf("%s: %+v, %v", form, filter, err)
		}
	}
	for _, bad := range []string{`"x"`, `"evt_` + id + `"`, `"{` + id + `}"`, `7`, `{"contains":"` + id + `"}`, `{"icontains":"` + id + `"}`, `{"gt":"` + id + `"}`} {
		if _, err := ParseFilter([]byte(`{"id":` + bad + `}`)); !fault.Is(err, fault.InvalidFilter) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
