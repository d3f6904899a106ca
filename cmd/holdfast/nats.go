package main

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-memory/holdfast/internal/app"
	"github.com/holdfast-memory/holdfast/internal/credential"
)

type natsSetupCommand struct {
	Dir          string        `arg:"" help:"Where the files are made. Keep it: a later run goes on with its authority and its users."`
	Server       []string      `env:"-" sep:"none" required:"" placeholder:"HOST[,HOST]" help:"A server's hosts: what processes call it, the name that other servers use first. Once for each server: one, three or five."`
	Installed    string        `env:"-" default:"/etc/holdfast-nats" help:"Where a server's directory will be on the server."`
	Store        string        `env:"-" default:"/var/lib/nats" help:"Where a server keeps its streams."`
	Port         int           `env:"-" default:"4222" help:"Where servers listen for clients."`
	Certificates bool          `env:"-" name:"client-certificates" help:"Make a certificate for each user, and let servers ask for it beside the nkey."`
	Valid        time.Duration `env:"-" default:"9552h" help:"How long certificates are valid."`
	Renew        []string      `env:"-" placeholder:"USER" help:"Make the seed of a user anew."`
}

// Run makes files only; bringing them to where they belong is the operator's.
func (c *natsSetupCommand) Run(s *session) error {
	setup := credential.Setup{
		Dir: c.Dir, Installed: c.Installed, StoreDir: c.Store, Port: c.Port,
		ClientCertificates: c.Certificates, Life: c.Valid, Renew: c.Renew,
	}
	for _, hosts := range c.Server {
		setup.Servers = append(setup.Servers, strings.Split(hosts, ","))
	}
	if c.Valid < time.Hour {
		return exitf(app.ExitUsage, "certificates must be valid for an hour or longer")
	}
	made, err := setup.Write()
	if err != nil {
		return err
	}
	users := filepath.Join(c.Dir, "users")
	if s.json {
		return s.encode(map[string]any{"authority": filepath.Join(c.Dir, "ca.crt"), "users": users, "servers": made})
	}
	for i, dir := range made {
		if err := s.show(nil, "%s: copy %s to %s, readable by the server only\n", setup.Servers[i][0], dir, c.Installed); err != nil {
			return err
		}
	}
	return s.show(nil, "processes: ca.crt is their HOLDFAST_NATS_CA_FILE, and each one's seed in %s its HOLDFAST_NATS_NKEY_FILE\n"+
		"ca.key: keep it where none of them runs\n", users)
}
