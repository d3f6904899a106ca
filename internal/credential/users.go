package credential

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nats-io/nkeys"

	natsconfig "github.com/holdfast-memory/holdfast/nats"
)

// user is a row of the servers' configuration.
type user struct {
	natsconfig.User
	Nkey string // public
}

// users returns the public keys of all users and makes the seeds that are missing or to be made anew.
func users(dir string, renew map[string]bool) ([]user, error) {
	var found []user
	for _, u := range natsconfig.Users() {
		path := filepath.Join(dir, u.Name+".seed")
		public, err := readSeed(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && renew[u.Name] {
			public, err = newSeed(path)
		}
		if err != nil {
			return nil, fmt.Errorf("seed of %s: %w", u.Name, err)
		}
		found = append(found, user{u, public})
	}
	return found, nil
}

func readSeed(path string) (public string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	defer clear(text)
	pair, err := nkeys.FromSeed(bytes.TrimSpace(text))
	if err != nil { // not wrapped: nothing of a seed is shown
		return "", fmt.Errorf("%s holds no seed", path)
	}
	defer pair.Wipe()
	public, err = pair.PublicKey()
	if err == nil && !nkeys.IsValidPublicUserKey(public) {
		return "", fmt.Errorf("%s is not a user's", path)
	}
	return public, err
}

func newSeed(path string) (public string, err error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return "", err
	}
	defer pair.Wipe()
	text, err := pair.Seed()
	if err != nil {
		return "", err
	}
	defer clear(text)
	if err := write(path, append(text, '\n'), privateMode); err != nil {
		return "", err
	}
	return pair.PublicKey()
}
