package app

import (
	"net"
	"slices"
	"strings"

	"github.com/rs/zerolog"

	"github.com/holdfast-memory/holdfast/internal/postgres"
)

const (
	databasePlainAdvice = "Add sslmode=verify-full and sslrootcert=FILE to the URL: what callers say crosses the network."
	natsPlainAdvice     = "Use a tls:// URL or HOLDFAST_NATS_CA_FILE: whoever listens reads task and workspace ids, and a password in the URL."
)

// warnOfPlainText says at a start what may cross a network unencrypted. It is no error: the network may be a private one.
func warnOfPlainText(s Settings, log zerolog.Logger) {
	if hosts := s.plainDatabase(); len(hosts) > 0 {
		log.Warn().Strs("hosts", hosts).Msg("the database may be reached in plain text: use sslmode=verify-full")
	}
	if hosts := s.plainNATS(); len(hosts) > 0 {
		log.Warn().Strs("hosts", hosts).Msg("NATS may be reached in plain text: use a tls:// URL")
	}
}

// warnOfOpenAPI says that the API, which speaks plain HTTP, can be reached from elsewhere.
func warnOfOpenAPI(address net.Addr, log zerolog.Logger) {
	host, _, err := net.SplitHostPort(address.String())
	if err == nil && len(elsewhere([]string{host})) > 0 {
		log.Warn().Str("address", address.String()).
			Msg("the API takes plain HTTP from other machines: API keys cross the network unless a proxy ends TLS before it")
	}
}

// plainDatabase are the hosts that are not this machine and with which a connection to the database may be in plain text.
func (d Database) plainDatabase() []string {
	hosts := elsewhere(postgres.PlainHosts(d.DatabaseURL.Reveal()))
	for _, host := range elsewhere(postgres.PlainHosts(d.Direct().Reveal())) {
		if !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

func (n NATS) plainNATS() []string {
	return elsewhere(n.link("").PlainHosts(n.NATSURL.Reveal()))
}

// elsewhere leaves out the hosts that are this machine. A name is taken for another machine's, but for localhost: where
// it leads to can change.
func elsewhere(hosts []string) []string {
	return slices.DeleteFunc(hosts, func(host string) bool {
		if ip := net.ParseIP(host); ip != nil {
			return ip.IsLoopback()
		}
		return strings.EqualFold(strings.TrimSuffix(host, "."), "localhost")
	})
}

// examineLinks judges the ways to database and NATS by what the settings allow, not by what happens to be: whoever sits
// in between can make a connection that may be plain one that is.
func examineLinks(s Settings) []Finding {
	var found []Finding
	if hosts := s.plainDatabase(); len(hosts) > 0 {
		found = append(found, Finding{"database link", Warning, "may be in plain text to " + strings.Join(hosts, ", "), databasePlainAdvice})
	}
	if hosts := elsewhere(postgres.UnverifiedHosts(s.DatabaseURL.Reveal())); len(hosts) > 0 {
		found = append(found, Finding{
			"database link", Warning, "TLS without looking who answers, to " + strings.Join(hosts, ", "), databasePlainAdvice,
		})
	}
	if hosts := s.plainNATS(); len(hosts) > 0 {
		found = append(found, Finding{"nats link", Warning, "may be in plain text to " + strings.Join(hosts, ", "), natsPlainAdvice})
	}
	return found
}
