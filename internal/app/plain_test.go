package app

import (
	"bytes"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

// TestPlainText is about what a start and doctor say of ways that may be in plain text.
func TestPlainText(t *testing.T) {
	t.Parallel()

	t.Run("IsSpokenOfExactlyWhereItCanHappen", func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct {
			database, nats string
			want           []string // the beginnings of what doctor finds
		}{
			{"postgres://u:canary@127.0.0.1/d", "nats://127.0.0.1:4222", nil},
			{"postgres://u:canary@localhost/d?sslmode=disable", "nats://u:canary@localhost", nil},
			{"postgres://u:canary@[::1]/d", "", nil},
			{"postgres:///d?host=/run/postgresql", "", nil},
			{"postgres://u:canary@db/d", "", []string{"database link: may be in plain text to db"}},
			{"postgres://u:canary@db/d?sslmode=disable", "", []string{"database link: may be in plain text to db"}},
			{"postgres://u:canary@db,127.0.0.1,other/d?sslmode=prefer", "", []string{"database link: may be in plain text to db, other"}},
			{"postgres://u:canary@db/d?sslmode=require", "", []string{"database link: TLS without looking who answers, to db"}},
			{"postgres://u:canary@db/d?sslmode=verify-full", "tls://nats.example:4222", nil},
			{"postgres://u:canary@db/d?sslmode=verify-full", "nats://u:canary@nats.example:4222", []string{"nats link: may be in plain text to nats.example"}},
			{"postgres://u:canary@10.0.0.1/d?sslmode=allow", "a,127.0.0.1", []string{"database link: may be in plain text to 10.0.0.1", "nats link: may be in plain text to a"}},
		} {
			s, _, err := parsed(t, "--database-url="+c.database, "--nats-url="+c.nats)
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			for _, f := range examineLinks(s) {
				if f.Grade != Warning || f.Advice == "" {
					t.Errorf("%s: got %+v", c.database, f)
				}
				found = append(found, f.Check+": "+f.Found)
			}
			if !slices.Equal(found, c.want) {
				t.Errorf("%s and %s: found %q, want %q", c.database, c.nats, found, c.want)
			}
			var log bytes.Buffer
			warnOfPlainText(s, zerolog.New(&log))
			plain := strings.Count(strings.Join(c.want, "\n"), "plain text")
			if said := log.String(); strings.Count(said, "plain text") != plain || strings.Contains(said, "canary") {
				t.Errorf("%s and %s: logged %q", c.database, c.nats, said)
			}
		}
	})

	t.Run("WayPastThePoolerCountsToo", func(t *testing.T) {
		t.Parallel()
		s, _, err := parsed(t, "--database-url=postgres://u@127.0.0.1/d", "--database-direct-url=postgres://u@db/d")
		if err != nil {
			t.Fatal(err)
		}
		if found := examineLinks(s); len(found) != 1 || !strings.Contains(found[0].Found, "db") {
			t.Errorf("found %+v", found)
		}
	})

	t.Run("AuthorityOfNATSDemandsTLS", func(t *testing.T) {
		t.Parallel()
		s, _, err := parsed(t, "--nats-url=nats://nats.example", "--nats-ca-file=ca.crt")
		if err != nil {
			t.Fatal(err)
		}
		if found := examineLinks(s); len(found) != 0 {
			t.Errorf("found %+v", found)
		}
	})

	t.Run("APIThatOthersReachIsWarnedOf", func(t *testing.T) {
		t.Parallel()
		for address, warned := range map[string]bool{
			"127.0.0.1:80": false, "[::1]:80": false, "0.0.0.0:80": true, "[::]:80": true, "10.0.0.1:80": true,
		} {
			at, err := net.ResolveTCPAddr("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			warnOfOpenAPI(at, zerolog.New(&log))
			if said := log.Len() > 0; said != warned {
				t.Errorf("%s: warned is %v", address, said)
			}
		}
	})
}
