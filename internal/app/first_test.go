package app

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/wakeup"
)

func openTestDB(t *testing.T) (*postgres.DB, Secret) {
	t.Helper()
	url := Secret(testkit.NewDatabase(t))
	db, err := OpenDB(t.Context(), Database{DatabaseURL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db, url
}

func TestFirstStart(t *testing.T) {
	t.Parallel()

	t.Run("HappensOnceHoweverOftenItStarts", func(t *testing.T) {
		t.Parallel()
		db, _ := openTestDB(t)
		dir := t.TempDir()
		first, err := firstStart(t.Context(), db, dir)
		if err != nil {
			t.Fatal(err)
		}
		again, err := firstStart(t.Context(), db, dir)
		if err != nil || again != first {
			t.Fatalf("the same key again: %v, %v", again == first, err)
		}
		found, err := db.ListWorkspaces(t.Context())
		if err != nil || len(found) != 1 || found[0].Available != firstCredits {
			t.Fatalf("one workspace with %d credits, not %+v, %v", firstCredits, found, err)
		}
	})

	t.Run("KeyThatTheDatabaseDoesNotKnowIsReplaced", func(t *testing.T) {
		t.Parallel()
		one, _ := openTestDB(t)
		other, _ := openTestDB(t)
		dir := t.TempDir()
		old, err := firstStart(t.Context(), one, dir)
		if err != nil {
			t.Fatal(err)
		}
		made, err := firstStart(t.Context(), other, dir)
		if err != nil || made == old {
			t.Fatalf("a key of its own: %v, %v", made != old, err)
		}
		kept, err := os.ReadFile(filepath.Join(dir, keyFile))
		if err != nil || strings.TrimSpace(string(kept)) != made.Reveal() {
			t.Fatalf("the new key is kept: %v", err)
		}
	})

	t.Run("FileWithoutAKeyIsReplaced", func(t *testing.T) {
		t.Parallel()
		db, _ := openTestDB(t)
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, keyFile), []byte("rubbish"), 0o600); err != nil {
			t.Fatal(err)
		}
		key, err := firstStart(t.Context(), db, dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Authenticate(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	})
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	grade := func(found []Finding, check string) Finding {
		for _, f := range found {
			if f.Check == check {
				return f
			}
		}
		t.Fatalf("nothing about %s in %+v", check, found)
		return Finding{}
	}

	t.Run("DatabaseOutOfReachIsADangerWithoutItsPassword", func(t *testing.T) {
		t.Parallel()
		s, _, err := parsed(t, "--database-url=postgres://u:canary@127.0.0.1:1/d", "--nats-url=nats://127.0.0.1:1")
		if err != nil {
			t.Fatal(err)
		}
		found, err := Doctor(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if f := grade(found, "database"); f.Grade != Danger || f.Advice == "" || strings.Contains(f.Found, "canary") {
			t.Fatalf("got %+v", f)
		}
		if f := grade(found, "nats"); f.Grade != Danger || f.Advice == "" {
			t.Fatalf("got %+v", f)
		}
	})

	t.Run("UnmigratedDatabaseAndMissingStreamAreNamed", func(t *testing.T) {
		t.Parallel()
		pool := testkit.Postgres(t)
		if _, err := pool.Exec(t.Context(), "DROP SCHEMA public CASCADE; CREATE SCHEMA public"); err != nil {
			t.Fatal(err)
		}
		s, _, err := parsed(t, "--nats-url="+testkit.NewNATS(t).URL(), "--database-url="+pool.Config().ConnString())
		if err != nil {
			t.Fatal(err)
		}
		found, err := Doctor(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if f := grade(found, "migrations"); f.Grade != Danger || !strings.Contains(f.Advice, "holdfast migrate") {
			t.Fatalf("got %+v", f)
		}
		if f := grade(found, "nats consumer interactive"); f.Grade != Warning {
			t.Fatalf("got %+v", f)
		}
	})

	t.Run("TopologyThatWorksAgainstUsIsNamedWithItsFix", func(t *testing.T) {
		t.Parallel()
		server := testkit.NewNATS(t)
		s, _, err := parsed(t, "--nats-url="+server.URL(), "--lease-ttl=2m")
		if err != nil {
			t.Fatal(err)
		}
		client, err := wakeup.Connect(t.Context(), wakeup.Config{URL: server.URL(), AckWait: 75 * time.Second, Log: zerolog.Nop()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Stop(context.Background()) })
		if _, err := client.EnsureTopology(t.Context()); err != nil {
			t.Fatal(err)
		}
		if f := grade(examineNATS(t.Context(), s), "nats consumer bulk"); f.Grade != Warning ||
			f.Advice != "Run `nats consumer edit WAKE bulk --wait 2m15s`." {
			t.Fatalf("got %+v", f)
		}
		s.LeaseTTL = time.Minute
		if f := grade(examineNATS(t.Context(), s), "nats topology"); f.Grade != Good {
			t.Fatalf("got %+v", f)
		}
	})

	t.Run("EachDangerousSettingIsOne", func(t *testing.T) {
		t.Parallel()
		safe := map[string]string{
			"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", "log_statement": "none",
			"log_min_duration_statement": "-1", "log_min_duration_sample": "-1", "log_transaction_sample_rate": "0",
			"log_parameter_max_length": "0", "log_parameter_max_length_on_error": "0", "log_min_error_statement": "panic",
			"log_error_verbosity": "terse", "jit": "off",
		}
		examine := func(settings map[string]string) []Finding {
			return append(append(examineDurability(settings), examineCompiling(settings)), examineLogging(settings)...)
		}
		for _, f := range examine(safe) {
			if f.Grade != Good {
				t.Errorf("nothing is wrong here: %+v", f)
			}
		}
		for name, bad := range map[string]struct {
			with  map[string]string
			grade Grade
		}{
			"postgres fsync":                             {map[string]string{"fsync": "off"}, Danger},
			"postgres full_page_writes":                  {map[string]string{"full_page_writes": "off"}, Danger},
			"postgres synchronous_commit":                {map[string]string{"synchronous_commit": "off"}, Danger},
			"postgres log_parameter_max_length":          {map[string]string{"log_parameter_max_length": "-1", "log_statement": "all"}, Danger},
			"postgres log_parameter_max_length_on_error": {map[string]string{"log_parameter_max_length_on_error": "-1"}, Danger},
			"postgres log_statement":                     {map[string]string{"log_statement": "mod"}, Warning},
			"postgres log_min_duration_statement":        {map[string]string{"log_min_duration_statement": "0"}, Warning},
			"postgres log_min_error_statement":           {map[string]string{"log_min_error_statement": "error"}, Warning},
			"postgres log_error_verbosity":               {map[string]string{"log_error_verbosity": "default"}, Warning},
			"postgres jit":                               {map[string]string{"jit": "on"}, Warning},
		} {
			settings := map[string]string{}
			for k, v := range safe {
				settings[k] = v
			}
			for k, v := range bad.with {
				settings[k] = v
			}
			if f := grade(examine(settings), name); f.Grade != bad.grade || f.Advice == "" {
				t.Errorf("%v: %+v", bad.with, f)
			}
		}
	})
}
