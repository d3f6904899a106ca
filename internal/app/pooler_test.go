package app

import (
	"strings"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/testkit"
)

// TestDoctorKnowsPoolers runs doctor's look at what answers at the database's URLs against a real PgBouncer.
func TestDoctorKnowsPoolers(t *testing.T) {
	t.Parallel()
	server := testkit.Direct(testkit.NewDatabase(t))
	through := testkit.NewPooler(t, server, 2).URL(server)
	for name, c := range map[string]struct {
		url, mode, direct string
		grade             Grade // of the one finding; empty when there is none
		says              string
	}{
		"NoneIsNothingToSay":                {server, "none", "", "", ""},
		"ItIsAsTheSettingsSay":              {through, "transaction", server, Good, "as the settings say"},
		"ItIsThereAndTheSettingsSayNothing": {through, "none", "", Danger, "HOLDFAST_DATABASE_POOLER is none"},
		"TheDirectWayIsMissing":             {through, "transaction", "", Danger, "HOLDFAST_DATABASE_DIRECT_URL is not set"},
		"TheDirectWayLeadsThroughIt":        {through, "transaction", through, Danger, "leads to a pooler"},
		"TheDirectWayLeadsElsewhere":        {through, "transaction", testkit.Direct(testkit.NewDatabase(t)), Danger, "different databases"},
		"ItIsSaidToBeThereAndIsNot":         {server, "transaction", server, Warning, "no pooler answers"},
		"ItRefusesAParameter":               {through + "&statement_timeout=5000", "transaction", server, Danger, protocolViolation},
		"TheServerTakesTheSameParameter":    {server + "&statement_timeout=5000", "none", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := examinePooler(t.Context(), Database{
				DatabaseURL: Secret(c.url), DatabasePooler: c.mode, DatabaseDirectURL: Secret(c.direct),
			})
			if c.grade == "" {
				if len(found) != 0 {
					t.Errorf("found %+v", found)
				}
				return
			}
			if len(found) != 1 || found[0].Check != "pooler" || found[0].Grade != c.grade || !strings.Contains(found[0].Found, c.says) {
				t.Fatalf("found %+v", found)
			}
			if (found[0].Advice == "") != (c.grade == Good) {
				t.Errorf("advice %q", found[0].Advice)
			}
		})
	}
}
