package app

import (
	"context"
	"encoding/hex"
	"errors"
	"net/url"
	"testing"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/holdfast-memory/holdfast/internal/audit"
	"github.com/holdfast-memory/holdfast/internal/localdev"
	"github.com/holdfast-memory/holdfast/internal/testkit"
)

// TestSightOfLogins holds that whoever looks at all workspaces never starts with a role from which their rows are hidden:
// it would say that there is nothing to do, and an audit that nothing is wrong. Nor does an API that could answer nobody.
func TestSightOfLogins(t *testing.T) {
	t.Parallel()
	owner := testkit.NewDatabase(t)
	api, workers := testkit.As(t, localdev.APILogin, owner), testkit.As(t, localdev.WorkerLogin, owner)
	granted := grantedLogin(t, owner)
	for _, c := range []struct {
		process, url string
		want         error
	}{
		{"api", api, nil},
		{"worker", api, errHidden},
		{"repair", api, errHidden},
		{"up", api, errHidden},
		{"api", workers, errNoAPI},
		{"worker", workers, nil},
		{"repair", workers, nil},
		{"api", owner, nil},
		{"worker", owner, nil},
		{"up", owner, nil},
		{"api", granted, errNoAPI},
		{"worker", granted, errHidden},
	} {
		if err := started(t, c.process, c.url); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %v instead of %v", c.process, err, c.want)
		}
	}
	for url, want := range map[string]error{api: errHidden, granted: errHidden, owner: nil} {
		_, err := Audit(t.Context(), Database{DatabaseURL: Secret(url), DatabaseDirectURL: Secret(testkit.Direct(url))}, "", audit.Options{})
		if !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("audit: %v instead of %v", err, want)
		}
	}
}

// started is how the start of a process of that name goes.
func started(t *testing.T, process, databaseURL string) error {
	t.Helper()
	s, _, err := parsed(t, "--database-url="+databaseURL, "--database-direct-url="+testkit.Direct(databaseURL))
	if err != nil {
		t.Fatal(err)
	}
	c, err := openCore(t.Context(), s, zerolog.Nop(), process)
	if err != nil {
		return err
	}
	if process == "api" {
		err = c.warnOfSlack(t.Context())
	}
	return errors.Join(err, c.close(t.Context()))
}

// grantedLogin is a role with every right on every table, as one had made it before there were policies.
func grantedLogin(t *testing.T, owner string) string {
	t.Helper()
	direct := testkit.Direct(owner)
	id := uuid.New()
	name := "granted_" + hex.EncodeToString(id[:])
	pool := testkit.Pool(t, direct)
	for _, sql := range []string{
		"CREATE ROLE " + name + " LOGIN PASSWORD 'granted'", "GRANT ALL ON ALL TABLES IN SCHEMA public TO " + name,
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if _, err := pool.Exec(context.Background(), "DROP OWNED BY "+name+"; DROP ROLE "+name); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(name, "granted")
	return u.String()
}
