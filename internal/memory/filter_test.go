package memory

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-memory/holdfast/internal/fault"
)

func TestParseFilter(t *testing.T) {
	t.Parallel()
	t.Run("NothingIsNoFilter", func(t *testing.T) {
		t.Parallel()
		for _, raw := range []string{"", " ", "null", "{}", " {} "} {
			if f, err := ParseFilter([]byte(raw)); f != nil || err != nil {
				t.Errorf("%q: %+v, %v", raw, f, err)
			}
		}
	})
	t.Run("MembersAreTakenTogetherInTheOrderOfTheirNames", func(t *testing.T) {
		t.Parallel()
		one, err := ParseFilter([]byte(`{"user_id":"ana","AND":[{"type":"fact"},{"version":{"gt":1,"lte":3}}]}`))
		if err != nil {
			t.Fatal(err)
		}
		other, err := ParseFilter([]byte(`{"AND":[{"type":"fact"},{"version":{"lte":3,"gt":1}}],"user_id":"ana"}`))
		if err != nil || fmt.Sprint(*one) != fmt.Sprint(*other) {
			t.Fatalf("%+v and %+v, %v", one, other, err)
		}
		if one.Op != FilterAll || len(one.Of) != 2 || one.Of[0].Op != FilterAll || one.Of[1].Field != FilterUser {
			t.Fatalf("%+v", one)
		}
	})
	t.Run("TimesAreInstants", func(t *testing.T) {
		t.Parallel()
		f, err := ParseFilter([]byte(`{"created_at":{"gte":"2026-01-01T09:00:00+09:00"}}`))
		if err != nil || !f.Values[0].Time.Equal(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) {
			t.Fatalf("%+v, %v", f, err)
		}
	})
	t.Run("APathNamesMetadata", func(t *testing.T) {
		t.Parallel()
		f, err := ParseFilter([]byte(`{"metadata.a.b":"x"}`))
		if err != nil || f.Field != FilterMetadata || !slices.Equal(f.Path, []string{"a", "b"}) || f.Values[0].JSON != `"x"` {
			t.Fatalf("%+v, %v", f, err)
		}
	})
	t.Run("UnequalIsTheNegationOfEqual", func(t *testing.T) {
		t.Parallel()
		f, err := ParseFilter([]byte(`{"type":{"ne":"fact"}}`))
		if err != nil || f.Op != FilterNone || f.Of[0].Op != FilterEqual {
			t.Fatalf("%+v, %v", f, err)
		}
	})
}

func TestParseFilterRefuses(t *testing.T) {
	t.Parallel()
	nested := func(n int) string {
		return strings.Repeat(`{"NOT":`, n-1) + `{"type":"fact"}` + strings.Repeat(`}`, n-1)
	}
	many := func(n int) string {
		return `{"OR":[` + strings.TrimSuffix(strings.Repeat(`{"type":"fact"},`, n), ",") + `]}`
	}
	list := func(n int) string {
		return `{"type":{"in":[` + strings.TrimSuffix(strings.Repeat(`"fact",`, n), ",") + `]}}`
	}
	for _, raw := range []string{nested(8), many(64), list(100), `{"memory":{"icontains":"` + strings.Repeat("é", 200) + `"}}`} {
		if f, err := ParseFilter([]byte(raw)); err != nil || f == nil {
			t.Errorf("%.60s: %v", raw, err)
		}
	}
	const secret = "canary"
	for _, c := range []struct{ raw, pointer string }{
		{`[]`, "/filters"},
		{`"canary"`, "/filters"},
		{`{"type":"a","type":"b"}`, "/filters"},
		{`{"type":"a"} x`, "/filters"},
		{`{"canary":1}`, "/filters"},
		{`{"AND":[{"type":"x"},{"canary":1}]}`, "/filters/AND/1"},
		{`{"AND":{"type":"x"}}`, "/filters/AND"},
		{`{"OR":[]}`, "/filters/OR"},
		{`{"OR":["canary"]}`, "/filters/OR/0"},
		{`{"NOT":[{}]}`, "/filters/NOT/0"},
		{`{"type":{"canary":1}}`, "/filters/type"},
		{`{"type":{"AND":[]}}`, "/filters/type"},
		{`{"type":{}}`, "/filters/type"},
		{`{"type":7}`, "/filters/type"},
		{`{"categories":7}`, "/filters/categories"},
		{`{"categories":["canary"]}`, "/filters/categories"},
		{`{"categories":{"gt":"canary"}}`, "/filters/categories/gt"},
		{`{"categories":{"contains":""}}`, "/filters/categories/contains"},
		{`{"categories":{"icontains":"canary"}}`, "/filters/categories/icontains"},
		{`{"type":{"gt":"canary"}}`, "/filters/type/gt"},
		{`{"type":["canary"]}`, "/filters/type"},
		{`{"type":{"in":[]}}`, "/filters/type/in"},
		{`{"type":{"in":"canary"}}`, "/filters/type/in"},
		{`{"type":{"in":["x",null]}}`, "/filters/type/in/1"},
		{`{"memory":{"contains":""}}`, "/filters/memory/contains"},
		{`{"created_at":{"contains":"canary"}}`, "/filters/created_at/contains"},
		{`{"created_at":"2026-01-01"}`, "/filters/created_at"},
		{`{"created_at":{"gt":"2026-01-01T00:00:00"}}`, "/filters/created_at/gt"},
		{`{"created_at":{"gt":null}}`, "/filters/created_at/gt"},
		{`{"created_at":{"gt":5}}`, "/filters/created_at/gt"},
		{`{"version":"1"}`, "/filters/version"},
		{`{"version":{"gt":1e999}}`, "/filters/version/gt"},
		{`{"metadata":{"canary":1}}`, "/filters"},
		{`{"metadata.":1}`, "/filters/metadata"},
		{`{"metadata.a..canary":1}`, "/filters/metadata"},
		{`{"metadata.a.b.c.d.e.f.g.h.i":1}`, "/filters/metadata"},
		{`{"metadata.canary":{"gt":"canary"}}`, "/filters/metadata/gt"},
		{`{"metadata.canary":{"gt":true}}`, "/filters/metadata/gt"},
		{`{"metadata.canary":{"icontains":5}}`, "/filters/metadata/icontains"},
		{`{"metadata.canary":{"contains":null}}`, "/filters/metadata/contains"},
		{`{"metadata.canary":[1]}`, "/filters/metadata"},
		{`{"type":"canary\u0000"}`, "/filters/type"},
		{`{"type":"` + strings.Repeat("x", 1001) + `"}`, "/filters/type"},
		{`{"memory":{"icontains":"` + strings.Repeat("x", 201) + `"}}`, "/filters/memory/icontains"},
		{nested(9), "/filters/NOT/NOT/NOT/NOT/NOT/NOT/NOT/NOT"},
		{many(65), "/filters/OR/64/type"},
		{list(101), "/filters/type/in"},
	} {
		f, err := ParseFilter([]byte(c.raw))
		refused, isFault := errors.AsType[*fault.Error](err)
		if f != nil || !isFault || refused.Code != fault.InvalidFilter || refused.Pointer != c.pointer {
			t.Errorf("%.60s: %+v, %v, want %s", c.raw, f, err, c.pointer)
			continue
		}
		if refused.Rule == "" || strings.Contains(err.Error(), secret) {
			t.Errorf("%.60s: %v", c.raw, err)
		}
	}
}

func FuzzParseFilter(f *testing.F) {
	for _, raw := range []string{
		`{}`, `{"AND":[{"type":"fact"},{"NOT":{"version":{"gt":1}}}]}`, `{"metadata.a.b":{"in":[1,"x",true]}}`,
		`{"created_at":{"gte":"2026-01-01T00:00:00Z"}}`, `{"memory":{"icontains":"É"}}`, `{"version":1e-999}`, "{\"type\":\"\xff\"}",
	} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		filter, err := ParseFilter(raw)
		if err != nil {
			refused, isFault := errors.AsType[*fault.Error](err)
			if filter != nil || !isFault || refused.Code != fault.InvalidFilter || !strings.HasPrefix(refused.Pointer, "/filters") {
				t.Fatalf("%v", err)
			}
			return
		}
		if filter != nil {
			if n := conditions(t, *filter, 1); n > 64 {
				t.Fatalf("%d conditions", n)
			}
		}
	})
}

// conditions counts comparisons and holds what the database relies on.
func conditions(t *testing.T, f Filter, depth int) int {
	if depth > 20 {
		t.Fatal("too deep")
	}
	switch f.Op {
	case FilterAll, FilterAny, FilterNone:
		if len(f.Of) == 0 {
			t.Fatal("an empty group")
		}
		n := 0
		for _, inner := range f.Of {
			n += conditions(t, inner, depth+1)
		}
		return n
	case FilterEqual, FilterIn, FilterGreater, FilterAtLeast, FilterLess, FilterAtMost, FilterContains, FilterContainsFolded:
	}
	if len(f.Values) == 0 || f.Op != FilterIn && len(f.Values) != 1 || (f.Field == FilterMetadata) != (len(f.Path) > 0) {
		t.Fatalf("%+v", f)
	}
	for _, v := range f.Values {
		if strings.ContainsRune(v.Text, 0) || v.Kind == "" || v.JSON == "" {
			t.Fatalf("%+v", f)
		}
	}
	return 1
}
