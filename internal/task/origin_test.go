package task

import (
	"strings"
	"testing"
)

func TestOrigin(t *testing.T) {
	t.Parallel()
	const header = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

	t.Run("IsTheSameAsHeaderAndInARow", func(t *testing.T) {
		t.Parallel()
		o := ParseOrigin(header)
		if o.IsZero() || o.Parent() != header {
			t.Fatalf("%q became %q", header, o.Parent())
		}
		if row := o.Bytes(); len(row) != 25 || OriginFrom(row) != o {
			t.Fatalf("the row %x became %q", row, OriginFrom(row).Parent())
		}
		if got := OriginOf(WithOrigin(t.Context(), o)); got != o {
			t.Fatalf("the context says %q", got.Parent())
		}
	})

	t.Run("NoneIsNothingEverywhere", func(t *testing.T) {
		t.Parallel()
		if (Origin{}).Bytes() != nil || (Origin{}).Parent() != "" || !OriginFrom(nil).IsZero() || !OriginOf(t.Context()).IsZero() {
			t.Fatal("none is something")
		}
	})

	t.Run("TakesLaterVersionsAndOnlyTheFlagItKnows", func(t *testing.T) {
		t.Parallel()
		later := ParseOrigin("01" + header[2:53] + "ff-and-more")
		if later.Parent() != header {
			t.Fatalf("got %q", later.Parent())
		}
	})

	t.Run("RefusesEverythingElse", func(t *testing.T) {
		t.Parallel()
		for _, bad := range []string{
			"", "00", header + "-x", header + "0", "ff" + header[2:], strings.ToUpper(header), header[:54],
			strings.Replace(header, "0af7651916cd43dd8448eb211c80319c", strings.Repeat("0", 32), 1),
			strings.Replace(header, "b7ad6b7169203331", strings.Repeat("0", 16), 1),
			strings.Replace(header, "b7ad", "b7aé", 1)[:55], strings.ReplaceAll(header, "-", "_"), "0g" + header[2:],
		} {
			if got := ParseOrigin(bad); !got.IsZero() {
				t.Errorf("%q was taken as %q", bad, got.Parent())
			}
		}
	})
}
