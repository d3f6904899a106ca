package operator

import (
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
)

// Workspace is one as its operator sees it, with what its account has.
type Workspace struct {
	ID          uuid.UUID
	Name        string
	Metered     bool
	SuspendedAt *time.Time
	// PausedAt is since when nothing of it is claimed, while what it asks for is accepted.
	PausedAt  *time.Time
	CreatedAt time.Time
	Available int64
	Held      int64
	// MaxPending, RateLimit and LeaseCap are limits of its own, 0 for the service's.
	MaxPending int
	RateLimit  int
	LeaseCap   int
	// Deletion is the event that deletes it, nil for a workspace that is not being deleted.
	Deletion *uuid.UUID
	// DeletedAt is when the deletion ended.
	DeletedAt *time.Time
}

// Status is active, paused, suspended, deleting or deleted.
func (w Workspace) Status() string {
	switch {
	case w.DeletedAt != nil:
		return "deleted"
	case w.Deletion != nil:
		return "deleting"
	case w.SuspendedAt != nil:
		return "suspended"
	case w.PausedAt != nil:
		return "paused"
	}
	return "active"
}

// Limits are limits of a workspace's own: nil leaves one as it is, 0 makes it the service's again.
type Limits struct {
	MaxPending *int
	RateLimit  *int
	LeaseCap   *int
}

// Key is what may be shown of an API key. Its secret is not kept.
type Key struct {
	ID string
	// Reference is what the key was asked for with, empty for one that was asked for without.
	Reference   string
	Name        string
	Permissions []access.Permission
	CreatedAt   time.Time
	ExpiresAt   *time.Time
	RevokedAt   *time.Time
	// RateLimit is how many requests a minute the key may make, 0 for no limit beside its workspace's.
	RateLimit int
}

// KeyAsk is what an operator wants of a new key.
type KeyAsk struct {
	// Reference makes one key however often it is asked for.
	Reference   string
	Name        string
	Permissions []access.Permission
	// ExpiresAt is when it ends by itself, nil for never.
	ExpiresAt *time.Time
}

// Operator is what may be shown of a token for the admin API.
type Operator struct {
	ID        string
	Name      string
	CreatedAt time.Time
	RevokedAt *time.Time
}
