// Package access is who may do what: the form of API keys, their permissions, and the caller that a key
// stands for. It is pure: no clock, no I/O.
//
// Rules it guards: a key is checked by its checksum before any database work; only the SHA-256 of its secret
// is stored; the workspace comes only from the key (I12). It may import fault and uuid.
package access

import (
	"slices"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
)

// Permission is what a key may be used for (API.md calls it a key's scope).
type Permission string

// The permissions.
const (
	MemoryRead      Permission = "memory:read"
	MemoryWrite     Permission = "memory:write"
	OperationsRead  Permission = "operations:read"
	OperationsRetry Permission = "operations:retry"
	CreditsRead     Permission = "credits:read"
	Admin           Permission = "admin"
)

// Permissions returns all of them, in a fixed order.
func Permissions() []Permission {
	return []Permission{MemoryRead, MemoryWrite, OperationsRead, OperationsRetry, CreditsRead, Admin}
}

// ForApplications returns those that an application needs: all but Admin.
func ForApplications() []Permission {
	return slices.DeleteFunc(Permissions(), func(p Permission) bool { return p == Admin })
}

// ParsePermission returns the permission that text names, false if it names none.
func ParsePermission(text string) (Permission, bool) {
	p := Permission(text)
	return p, slices.Contains(Permissions(), p)
}

// Workspace is what a request needs to know of the workspace its key belongs to. FingerprintKey keys the
// fingerprints of its commands and must never leave the process.
type Workspace struct {
	ID             uuid.UUID
	Name           string
	Metered        bool
	Suspended      bool
	FingerprintKey []byte
	// RateLimit is how many requests a minute all keys together may make, 0 for the service's default.
	RateLimit int
	// Extraction is what the workspace adds to how its conversations are read, as JSON.
	Extraction []byte
}

// Caller is an authenticated key.
type Caller struct {
	KeyID       string
	Workspace   Workspace
	Permissions []Permission
	// RateLimit is how many requests a minute this key may make, 0 for no limit beside the workspace's.
	RateLimit int
}

// Require returns a fault INSUFFICIENT_PERMISSION unless the caller's key has p.
func (c Caller) Require(p Permission) error {
	if slices.Contains(c.Permissions, p) {
		return nil
	}
	return fault.New(fault.InsufficientPermission)
}

// Writable returns a fault INSUFFICIENT_PERMISSION while the caller's workspace is suspended.
func (c Caller) Writable() error {
	if c.Workspace.Suspended {
		return fault.New(fault.InsufficientPermission)
	}
	return nil
}
