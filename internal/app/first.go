package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/postgres"
)

const (
	// DefaultWorkspace is what `holdfast up` makes on its first start.
	DefaultWorkspace = "default"
	// firstCredits are enough for some hundred conversations, and few enough that a visitor sees them move.
	firstCredits credit.Amount = 1_000
	// firstReference makes the grant happen once, however often the first start is broken off.
	firstReference = "holdfast-up-first-start"
	firstKeyName   = "holdfast up"
)

// firstStart makes what a visitor needs, or finds it: the default workspace, its credits, and a key that is kept in
// the state directory so that every start prints the same one.
func firstStart(ctx context.Context, db *postgres.DB, dir string) (access.Key, error) {
	workspace, err := db.WorkspaceByName(ctx, DefaultWorkspace)
	if errors.Is(err, postgres.ErrNoWorkspace) {
		workspace, err = db.CreateWorkspace(ctx, DefaultWorkspace, true)
		if errors.Is(err, postgres.ErrWorkspaceExists) { // another process was first
			workspace, err = db.WorkspaceByName(ctx, DefaultWorkspace)
		}
	}
	if err != nil {
		return access.Key{}, fmt.Errorf("make the first workspace: %w", err)
	}
	if _, err := db.Grant(ctx, workspace.ID, firstReference, firstCredits); err != nil {
		return access.Key{}, fmt.Errorf("grant the first credits: %w", err)
	}
	key, err := keptKey(dir)
	if err != nil {
		return access.Key{}, err
	}
	if key != nil {
		caller, err := db.Authenticate(ctx, *key)
		switch {
		case err == nil && caller.Workspace.ID == workspace.ID:
			return *key, nil
		case err != nil && !fault.Is(err, fault.InvalidAPIKey) && !fault.Is(err, fault.APIKeyExpired):
			return access.Key{}, fmt.Errorf("check the kept key: %w", err)
		}
	}
	made, err := db.CreateKey(ctx, workspace.ID, firstKeyName, access.Permissions(), nil)
	if err != nil {
		return access.Key{}, fmt.Errorf("make the first key: %w", err)
	}
	return made, writePrivate(dir, keyFile, []byte(made.Reveal()+"\n"))
}

// keptKey reads the key of an earlier start, nil if there is none that can be read.
func keptKey(dir string) (*access.Key, error) {
	text, err := os.ReadFile(filepath.Join(dir, keyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the kept key: %w", err)
	}
	key, err := access.ParseKey(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, nil //nolint:nilerr // a file that holds no key is replaced
	}
	return &key, nil
}
