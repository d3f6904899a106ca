package wakeup

import (
	"bytes"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// maxSeedFile is far more than a seed with some words about it takes.
const maxSeedFile = 4096

// seed is the nkey of this process's user. It is read from its file for each connection and not kept.
type seed struct {
	path string
	user string // public key at the time of the first connection
	conn atomic.Pointer[nats.Conn]
	// unread is told when the file can't be read for a later connection.
	unread func(error)
}

// newSeed refuses a file that others can get at, or that holds no seed of a user. Its error quotes nothing of it.
func newSeed(path string) (*seed, error) {
	s := &seed{path: path}
	err := s.with(func(pair nkeys.KeyPair) (err error) {
		s.user, err = pair.PublicKey()
		return err
	})
	if err != nil {
		return nil, err
	}
	if !nkeys.IsValidPublicUserKey(s.user) {
		return nil, fmt.Errorf("nkey file %s: the seed is not a user's", path)
	}
	return s, nil
}

func (s *seed) with(use func(nkeys.KeyPair) error) error {
	if err := checkPrivate(s.path); err != nil {
		return fmt.Errorf("nkey file: %w", err)
	}
	text, err := os.ReadFile(s.path)
	if err != nil {
		return fmt.Errorf("nkey file: %w", err)
	}
	defer clear(text)
	if len(text) > maxSeedFile {
		return fmt.Errorf("nkey file %s: %d bytes are no seed", s.path, len(text))
	}
	pair, err := nkeys.ParseDecoratedNKey(bytes.TrimSpace(text))
	if err != nil { // not wrapped: what the library says of a seed is not ours to show
		return fmt.Errorf("nkey file %s: there is no seed in it", s.path)
	}
	defer pair.Wipe()
	return use(pair)
}

func (s *seed) sign(nonce []byte) (signature []byte, err error) {
	err = s.with(func(pair nkeys.KeyPair) (err error) {
		signature, err = pair.Sign(nonce)
		return err
	})
	return signature, err
}

// follow lets renew reach the connection. A nil seed has nothing to follow.
func (s *seed) follow(nc *nats.Conn) {
	if s != nil {
		s.conn.Store(nc)
	}
}

// renew makes the file's present seed the one of the next attempt. nats.go calls it before each attempt while it holds
// the lock under which it reads the option, and has no other way to change a user; what it returns leaves the choice of
// the server to nats.go. While the file can't be read the attempt is told of, and fails.
func (s *seed) renew([]nats.Server, nats.ServerInfo) (*nats.Server, time.Duration) {
	nc := s.conn.Load()
	if nc == nil {
		return nil, 0
	}
	err := s.with(func(pair nkeys.KeyPair) error {
		user, err := pair.PublicKey()
		if err == nil {
			nc.Opts.Nkey = user
		}
		return err
	})
	if err != nil {
		s.unread(err)
	}
	return nil, 0
}
