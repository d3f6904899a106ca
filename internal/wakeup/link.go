package wakeup

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	natsconfig "github.com/holdfast-memory/holdfast/nats"
)

// Link says how the server and this process know each other. Files are read again at every connect, so that new ones
// count from the next one on. With CAFile or CertFile, as with a tls:// URL, nothing is ever sent in plain text.
type Link struct {
	NkeyFile string // the seed of a user's nkey; only its owner, and its group to read, may get at the file
	// Process is which user of natsconfig.Users the seed is of: answers come to its inbox. Needed with NkeyFile.
	Process  string
	CAFile   string // PEM of the authorities that may vouch for the server; empty are those of the system
	CertFile string // PEM of a client certificate; with KeyFile or not at all
	KeyFile  string
}

// PlainHosts are the hosts of a URL with which a connection may be in plain text. A nats:// server that offers TLS
// doesn't change that: whoever sits in between could hide the offer.
func (l Link) PlainHosts(natsURL string) []string {
	servers, err := parseServers(natsURL)
	if err != nil || l.secure(servers) {
		return nil
	}
	hosts := make([]string, len(servers))
	for i, s := range servers {
		hosts[i] = s.Hostname()
	}
	return hosts
}

// secure tells what nats.go does: one tls:// server makes it ask all of them for TLS.
func (l Link) secure(servers []*url.URL) bool {
	for _, s := range servers {
		if s.Scheme == "tls" || s.Scheme == "wss" {
			return true
		}
	}
	return l.CAFile != "" || l.CertFile != ""
}

var errServers = errors.New("the URL can't be read")

// parseServers reads a list as nats.go does. Its error quotes nothing.
func parseServers(list string) ([]*url.URL, error) {
	var servers []*url.URL
	for text := range strings.SplitSeq(list, ",") {
		text = strings.TrimSpace(text)
		if !strings.Contains(text, "://") {
			text = "nats://" + text
		}
		u, err := url.Parse(text)
		if err != nil || u.Hostname() == "" {
			return nil, errServers
		}
		servers = append(servers, u)
	}
	return servers, nil
}

// linkOptions checks the files once, so that a start with a wrong one says which.
func (c *Client) linkOptions() ([]nats.Option, error) {
	l := c.cfg.Link
	servers, err := parseServers(c.cfg.URL)
	if err != nil {
		return nil, err
	}
	if (l.CertFile == "") != (l.KeyFile == "") {
		return nil, errors.New("a client certificate needs both its file and its key's")
	}
	var options []nats.Option
	if l.secure(servers) {
		options = append(options, nats.Secure(&tls.Config{MinVersion: tls.VersionTLS12}))
	}
	if l.CAFile != "" {
		if err := checkAuthorities(l.CAFile); err != nil {
			return nil, err
		}
		options = append(options, nats.RootCAs(l.CAFile))
	}
	if l.CertFile != "" {
		if err := checkPrivate(l.KeyFile); err != nil {
			return nil, fmt.Errorf("key of the client certificate: %w", err)
		}
		if _, err := tls.LoadX509KeyPair(l.CertFile, l.KeyFile); err != nil {
			return nil, fmt.Errorf("client certificate %s: it and its key can't be used: %w", l.CertFile, err)
		}
		options = append(options, nats.ClientCert(l.CertFile, l.KeyFile))
	}
	if l.NkeyFile == "" {
		return options, nil
	}
	nkey, err := c.nkeyOptions(servers)
	return append(options, nkey...), err
}

func (c *Client) nkeyOptions(servers []*url.URL) ([]nats.Option, error) {
	if !slices.ContainsFunc(natsconfig.Users(), func(u natsconfig.User) bool { return u.Name == c.cfg.Link.Process }) {
		return nil, fmt.Errorf("there is no nkey user for the process %q: api, worker, repair and doctor have one", c.cfg.Link.Process)
	}
	for _, s := range servers {
		if s.User != nil { // nats.go would then leave the nkey out
			return nil, errors.New("the URL names a user and there is an nkey file: only one of them can be meant")
		}
	}
	var err error
	if c.seed, err = newSeed(c.cfg.Link.NkeyFile); err != nil {
		return nil, err
	}
	c.seed.unread = c.noSeed
	return []nats.Option{
		nats.Nkey(c.seed.user, c.seed.sign),
		nats.ReconnectToServer(c.seed.renew),
		nats.CustomInboxPrefix(natsconfig.Inbox(c.cfg.Link.Process)),
	}, nil
}

func checkAuthorities(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("certificates of authorities: %w", err)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(text) {
		return fmt.Errorf("certificates of authorities: there is none in %s", path)
	}
	return nil
}

// othersMayRead is what a secret's file may not allow: anything to others, and writing to its group. Service managers
// hand secrets over with read permission for a group that only the service is in.
const othersMayRead = 0o027

func checkPrivate(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&othersMayRead != 0 {
		return fmt.Errorf("%s has mode %04o, others can get at it: chmod 600 it", path, mode)
	}
	return nil
}

// CertificateEnds is until when the certificate of the connected server holds; zero without TLS or connection.
func (c *Client) CertificateEnds() time.Time {
	state, err := c.nc.TLSConnectionState()
	if err != nil || len(state.PeerCertificates) == 0 {
		return time.Time{}
	}
	return state.PeerCertificates[0].NotAfter
}
