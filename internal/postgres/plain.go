package postgres

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
)

// PlainHosts are the hosts of a database URL with which a connection may be in plain text, by its sslmode: prefer, which
// is what a URL without one means, tries TLS and does without. Sockets of the machine are paths and not among them. A
// URL that can't be read has none.
func PlainHosts(url string) []string {
	plain, _ := linkHosts(url)
	return plain
}

// UnverifiedHosts are the hosts with which there is TLS always, and maybe without looking who answers: sslmode=require
// without a certificate of an authority.
func UnverifiedHosts(url string) []string {
	plain, unverified := linkHosts(url)
	return slices.DeleteFunc(unverified, func(host string) bool { return slices.Contains(plain, host) })
}

func linkHosts(url string) (plain, unverified []string) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, nil
	}
	look := func(host string, secured *tls.Config) {
		if host == "" || host[0] == '/' {
			return
		}
		switch {
		case secured == nil && !slices.Contains(plain, host):
			plain = append(plain, host)
		case secured != nil && !verifies(secured) && !slices.Contains(unverified, host):
			unverified = append(unverified, host)
		}
	}
	look(cfg.Host, cfg.TLSConfig)
	for _, next := range cfg.Fallbacks {
		look(next.Host, next.TLSConfig)
	}
	return plain, unverified
}

// verifies is true for verify-full and verify-ca: the latter skips the check that includes the name and makes its own.
func verifies(c *tls.Config) bool { return !c.InsecureSkipVerify || c.VerifyPeerCertificate != nil }

// distrust is why the server's certificate was not taken, empty for other errors.
func distrust(err error) string {
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return "the server's certificate has expired or is not valid yet"
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "the server's certificate is of no authority in sslrootcert"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "the server's certificate is for another name than the URL's"
	}
	return ""
}
