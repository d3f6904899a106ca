package credential

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	natsconfig "github.com/holdfast-memory/holdfast/nats"
)

const (
	// DefaultLife is a year and a month: renewed once a year, nothing expires.
	DefaultLife = 398 * 24 * time.Hour
	// configFile and usersFile are what a server reads.
	configFile = "nats.conf"
	usersFile  = "users.conf"

	directoryMode = 0o700
	clusterPort   = 6222
)

// Setup says what Write makes.
type Setup struct {
	Dir     string     // made if missing; later runs go on with what is in it
	Servers [][]string // for each server its hosts; the first one is its name and how the others reach it
	// Installed is where the directory of a server will be on the server; empty is where it is written.
	Installed string
	StoreDir  string // of JetStream; empty is /var/lib/nats
	Port      int    // of clients; 0 is 4222
	// ClientCertificates makes one for each user and lets the servers ask for it.
	ClientCertificates bool
	Life               time.Duration // of the certificates; 0 is DefaultLife
	Renew              []string      // users whose seeds are made anew
}

// host is what may stand in a certificate and, quoted, in a configuration.
var host = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.:-]*[A-Za-z0-9])?$`)

func (s *Setup) check() error {
	if s.Dir == "" {
		return errors.New("a directory is needed")
	}
	if n := len(s.Servers); n != 1 && n != 3 && n != 5 {
		return fmt.Errorf("%d servers: one, or a cluster of three or five", n)
	}
	var names []string
	for _, hosts := range s.Servers {
		for _, h := range hosts {
			if !host.MatchString(h) && net.ParseIP(h) == nil {
				return fmt.Errorf("%q is no host", h)
			}
		}
		if len(hosts) == 0 || slices.Contains(names, hosts[0]) {
			return errors.New("every server needs a host that no other one has")
		}
		names = append(names, hosts[0])
	}
	for _, name := range s.Renew {
		if !slices.ContainsFunc(natsconfig.Users(), func(u natsconfig.User) bool { return u.Name == name }) {
			return fmt.Errorf("there is no user %q", name)
		}
	}
	if s.StoreDir == "" {
		s.StoreDir = "/var/lib/nats"
	}
	if s.Port == 0 {
		s.Port = 4222
	}
	if s.Life == 0 {
		s.Life = DefaultLife
	}
	if s.Port < 1 || s.Port > 65535 {
		return fmt.Errorf("%d is no port", s.Port)
	}
	if strings.ContainsAny(s.Installed+s.StoreDir+s.Dir, "\"\\\n\r") {
		return errors.New("quotes, backslashes and line breaks in a directory's name don't fit into a configuration")
	}
	return nil
}

// Write makes what is missing of authority and users, new certificates, and the configuration of every server. It
// returns the directories of the servers, in their order.
func (s Setup) Write() ([]string, error) {
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("set up nats: %w", err)
	}
	people := filepath.Join(s.Dir, "users")
	if err := os.MkdirAll(people, directoryMode); err != nil {
		return nil, fmt.Errorf("set up nats: %w", err)
	}
	authority, err := OpenAuthority(s.Dir)
	if err != nil {
		return nil, fmt.Errorf("set up nats: %w", err)
	}
	renew := map[string]bool{}
	for _, name := range s.Renew {
		renew[name] = true
	}
	all, err := users(people, renew)
	if err != nil {
		return nil, fmt.Errorf("set up nats: %w", err)
	}
	if s.ClientCertificates {
		for _, u := range all {
			if err := authority.Client(people, u.Name, s.Life); err != nil {
				return nil, fmt.Errorf("set up nats: %w", err)
			}
		}
	}
	dirs := make([]string, len(s.Servers))
	for i, hosts := range s.Servers {
		if dirs[i], err = s.writeServer(authority, hosts, all); err != nil {
			return nil, fmt.Errorf("set up nats: server %s: %w", hosts[0], err)
		}
	}
	return dirs, nil
}

func (s Setup) writeServer(authority *Authority, hosts []string, all []user) (string, error) {
	name := hosts[0]
	dir := filepath.Join(s.Dir, "servers", name)
	if err := os.MkdirAll(dir, directoryMode); err != nil {
		return "", err
	}
	installed := s.Installed
	if installed == "" {
		var err error
		if installed, err = filepath.Abs(dir); err != nil {
			return "", err
		}
	}
	if err := write(filepath.Join(dir, authorityFile), authority.pem, publicMode); err != nil {
		return "", err
	}
	if err := authority.Server(dir, name, hosts, s.Life); err != nil {
		return "", err
	}
	var routes []string
	if len(s.Servers) > 1 {
		for _, other := range s.Servers {
			routes = append(routes, net.JoinHostPort(other[0], strconv.Itoa(clusterPort)))
		}
	}
	// The users first: a server that reads its configuration meanwhile doesn't find one that names a missing file.
	if err := fill(filepath.Join(dir, usersFile), natsconfig.UsersTemplate(), all); err != nil {
		return "", err
	}
	return dir, fill(filepath.Join(dir, configFile), natsconfig.ServerTemplate(), map[string]any{
		"Dir": installed, "File": configFile, "Name": name, "StoreDir": s.StoreDir, "Routes": routes,
		"Listen":        net.JoinHostPort("0.0.0.0", strconv.Itoa(s.Port)),
		"ClusterListen": net.JoinHostPort("0.0.0.0", strconv.Itoa(clusterPort)), "ClientCertificates": s.ClientCertificates,
	})
}

func fill(path, text string, with any) error {
	t, err := template.New(filepath.Base(path)).Option("missingkey=error").Parse(text)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, with); err != nil {
		return err
	}
	return write(path, out.Bytes(), publicMode)
}
