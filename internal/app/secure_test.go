package app

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-memory/holdfast/internal/credential"
	"github.com/holdfast-memory/holdfast/internal/testkit"
)

// TestDatabaseOverTLS is about a real server that takes nothing else.
func TestDatabaseOverTLS(t *testing.T) {
	t.Parallel()
	pg := testkit.NewSecurePostgres(t, time.Hour)
	strangers := t.TempDir()
	if _, err := credential.OpenAuthority(strangers); err != nil {
		t.Fatal(err)
	}
	stranger := filepath.Join(strangers, "ca.crt")

	t.Run("EverythingWorksWithTheServerLookedAt", func(t *testing.T) {
		t.Parallel()
		url := pg.Over(t, "verify-full", pg.Authority)
		if _, err := Migrate(t.Context(), Database{DatabaseURL: Secret(url)}); err != nil {
			t.Fatal(err)
		}
		s, _, err := parsed(t, "--database-url="+url)
		if err != nil {
			t.Fatal(err)
		}
		c, err := openCore(t.Context(), s, zerolog.Nop(), "test")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		var secure bool
		if err := testkit.Pool(t, url).QueryRow(t.Context(),
			"SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE usename IS NOT NULL AND client_port > 0").Scan(&secure); err != nil || !secure {
			t.Errorf("all connections are over TLS: %v, %v", secure, err)
		}
		if err := c.close(t.Context()); err != nil {
			t.Fatal(err)
		}
		found, err := Doctor(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		checks := map[string]Grade{}
		for _, f := range found {
			checks[f.Check] = f.Grade
		}
		if checks["migrations"] != Good || checks["database link"] != "" {
			t.Errorf("found %+v", found)
		}
	})

	expired := testkit.NewSecurePostgres(t, -time.Minute)
	for name, c := range map[string]struct{ url, says string }{
		"AuthorityOfSomebodyElse": {pg.Over(t, "verify-full", stranger), "of no authority in sslrootcert"},
		"CertificateForOtherName": {strings.Replace(pg.Over(t, "verify-full", pg.Authority), "127.0.0.1", "localhost", 1), "for another name"},
		"ExpiredCertificate":      {expired.Over(t, "verify-full", expired.Authority), "has expired"},
		"ServerThatWantsTLS":      {pg.Over(t, "disable", ""), "28000"},
	} {
		t.Run(name+"IsRefusedWithoutTheURL", func(t *testing.T) {
			t.Parallel()
			s, _, err := parsed(t, "--database-url="+c.url)
			if err != nil {
				t.Fatal(err)
			}
			_, err = openCore(t.Context(), s, zerolog.Nop(), "test")
			if err == nil {
				t.Fatal("it was taken")
			}
			found, derr := Doctor(t.Context(), s)
			if derr != nil {
				t.Fatal(derr)
			}
			said := err.Error()
			for _, f := range found {
				if f.Check == "database" {
					said += "\n" + f.Found
					if f.Grade != Danger {
						t.Errorf("found %+v", f)
					}
				}
			}
			password := strings.Split(strings.Split(c.url, ":")[2], "@")[0]
			if strings.Contains(said, password) || strings.Contains(said, "://") || strings.Contains(said, "sslmode") || strings.Count(said, c.says) != 2 {
				t.Errorf("said is %s", said)
			}
		})
	}
}

// TestDoctorKnowsWhyNATSIsAway names what an operator can put right.
func TestDoctorKnowsWhyNATSIsAway(t *testing.T) {
	t.Parallel()
	n := testkit.NewSecureNATS(t, nil)
	soon := testkit.NewSecureNATS(t, func(s *credential.Setup) { s.Life = 24 * time.Hour })
	stranger := testkit.NewSecureNATS(t, nil)
	for name, c := range map[string]struct {
		server   *testkit.SecureNATS
		ca, seed string
		check    string
		grade    Grade
		says     string
	}{
		"ItIsThere":            {n, n.CA(), n.Seed("doctor"), "nats", Good, "connected"},
		"CertificateIsShown":   {n, n.CA(), n.Seed("doctor"), "nats certificate", Good, "valid until"},
		"CertificateEndsSoon":  {soon, soon.CA(), soon.Seed("doctor"), "nats certificate", Warning, "valid until"},
		"NkeyOfSomebodyElse":   {n, n.CA(), stranger.Seed("doctor"), "nats", Danger, "refuses this user"},
		"AuthorityOfOthers":    {n, stranger.CA(), n.Seed("doctor"), "nats", Danger, "of no authority"},
		"SeedThatIsNotThere":   {n, n.CA(), filepath.Join(t.TempDir(), "none"), "nats", Danger, "no such file"},
		"StreamIsStillMissing": {n, n.CA(), n.Seed("doctor"), "nats topology", Warning, "stream not found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _, err := parsed(t, "--nats-url="+c.server.URL(), "--nats-ca-file="+c.ca, "--nats-nkey-file="+c.seed)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range examineNATS(t.Context(), s) {
				if f.Check == c.check {
					if f.Grade != c.grade || !strings.Contains(f.Found, c.says) || (f.Advice == "") != (c.grade == Good) {
						t.Errorf("found %+v", f)
					}
					return
				}
			}
			t.Errorf("nothing is said of %s", c.check)
		})
	}
}
