package testkit

import (
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/credential"
	"github.com/holdfast-memory/holdfast/internal/localdev"
)

// SecurePostgres is a server for one test alone that takes nothing but TLS, with its database migrated. Authority is
// the file of the authority that vouches for it.
type SecurePostgres struct {
	*localdev.Postgres
	Authority string
}

// NewSecurePostgres is such a server; its certificate is for 127.0.0.1 and valid for life from now on.
func NewSecurePostgres(t testing.TB, life time.Duration) *SecurePostgres {
	t.Helper()
	pg := PrivatePostgres(t, false)
	dir := t.TempDir()
	authority, err := credential.OpenAuthority(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := authority.Server(dir, "server", []string{"127.0.0.1"}, life); err != nil {
		t.Fatal(err)
	}
	owner, err := os.Stat(pg.DataDir())
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"pg_hba.conf": []byte("hostssl all all 127.0.0.1/32 scram-sha-256\n")}
	for _, name := range []string{"server.crt", "server.key"} {
		if files[name], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := pgx.Connect(t.Context(), pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "ALTER SYSTEM SET ssl = on"); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(pg.DataDir(), name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if stat, ok := owner.Sys().(*syscall.Stat_t); ok { // PostgreSQL runs as another user when we are root
			if err := os.Chown(path, int(stat.Uid), int(stat.Gid)); err != nil {
				t.Fatal(err)
			}
		}
	}
	RestartPostgres(t, pg, false)
	return &SecurePostgres{Postgres: pg, Authority: filepath.Join(dir, "ca.crt")}
}

// Over is its URL with an sslmode; with verify-full and verify-ca the server has to be vouched for by authority.
func (p *SecurePostgres) Over(t testing.TB, mode, authority string) string {
	t.Helper()
	u, err := url.Parse(p.URL())
	if err != nil {
		t.Fatal(err)
	}
	query := url.Values{"sslmode": {mode}}
	if authority != "" {
		query.Set("sslrootcert", authority)
	}
	u.RawQuery = query.Encode()
	return u.String()
}
