package command

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/gowebpki/jcs"

	"github.com/holdfast-memory/holdfast/internal/memory"
)

// FingerprintVersion names how fingerprints are made. It changes whenever the same request would get another
// fingerprint, and is stored beside each.
const FingerprintVersion = 1

// Fingerprint tells whether two requests are the same command. It is made of the caller's text: store it only
// keyed with a secret of the workspace.
type Fingerprint [sha256.Size]byte

// canonical is the typed command after defaults, every member present.
type canonical struct {
	Scope        memory.Scope    `json:"scope"`
	Infer        bool            `json:"infer"`
	Messages     []Message       `json:"messages"`
	Metadata     json.RawMessage `json:"metadata"`
	EventDate    *string         `json:"event_date"`
	ExpiresAt    *string         `json:"expires_at,omitempty"` // younger than the form's version
	Instructions string          `json:"instructions"`
	Ordered      bool            `json:"ordered"`
	// Younger than the form's version, like the time above: absent where there are none.
	Categories []memory.Category `json:"categories,omitempty"`
}

// Fingerprint returns SHA-256 over a version tag and the RFC 8785 form of the command. Member order, white
// space and spelled-out defaults of the request make no difference; text is compared code point by code point,
// without Unicode normalisation, and numbers by their exact value.
func (a Add) Fingerprint() (Fingerprint, error) {
	metadata, err := exactly(a.Metadata)
	if err != nil {
		return Fingerprint{}, err
	}
	form := canonical{
		Scope: a.Scope, Infer: a.Infer, Messages: a.Messages, Metadata: metadata,
		Instructions: a.Instructions, Ordered: a.Ordered, Categories: a.Categories,
	}
	form.EventDate, form.ExpiresAt = instant(a.EventDate), instant(a.ExpiresAt)
	return fingerprint("add/1", form)
}

func instant(t *time.Time) *string {
	if t == nil {
		return nil
	}
	text := t.UTC().Format(time.RFC3339Nano)
	return &text
}

// Fingerprint returns the fingerprint of the change, as that of an add.
func (c Change) Fingerprint() (Fingerprint, error) {
	var err error
	if c.Metadata, err = exactly(c.Metadata); err != nil {
		return Fingerprint{}, err
	}
	return fingerprint("change/1", c)
}

// Fingerprint returns the fingerprint of the batch, as that of an add.
func (b Batch) Fingerprint() (Fingerprint, error) {
	b.Changes = slices.Clone(b.Changes)
	for i, c := range b.Changes {
		var err error
		if b.Changes[i].Metadata, err = exactly(c.Metadata); err != nil {
			return Fingerprint{}, err
		}
	}
	return fingerprint("batch/1", b)
}

// Fingerprint returns the fingerprint of the erase, as that of an add.
func (e Erase) Fingerprint() (Fingerprint, error) { return fingerprint("erase/1", e) }

// fingerprint is SHA-256 over a tag, which keeps commands of different kinds apart, and the RFC 8785 form.
func fingerprint(tag string, form any) (Fingerprint, error) {
	plain, err := json.Marshal(form)
	if err != nil {
		return Fingerprint{}, fmt.Errorf("encode command: %w", err)
	}
	sorted, err := jcs.Transform(plain)
	if err != nil {
		return Fingerprint{}, fmt.Errorf("canonicalise command: %w", unquoted{err})
	}
	return sha256.Sum256(append([]byte(tag+"\n"), sorted...)), nil
}

// unquoted hides the text of an error that quotes its input.
type unquoted struct{ error }

func (unquoted) Error() string { return "the canonical form was refused" }

// RetryFingerprint returns the fingerprint of a manual retry of event.
func RetryFingerprint(event uuid.UUID) Fingerprint {
	return sha256.Sum256(append([]byte("retry/1\n"), event[:]...))
}
