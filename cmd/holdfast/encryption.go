package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/app"
	"github.com/holdfast-memory/holdfast/internal/postgres"
)

type encryptionCommands struct {
	Status encryptionStatus `cmd:"" help:"Show for each master key what needs it, and whether an old one can go."`
	Rotate encryptionRotate `cmd:"" help:"Wrap all data keys under the active master key; started again, it goes on where it stopped."`

	Abandon encryptionAbandon `cmd:"" help:"Give up what only a lost master key could open, so that everything else goes on."`
}

type sealedDatabase struct {
	app.Database
	app.Encryption
}

func (d sealedDatabase) open(s *session, do func(db *postgres.DB) error) error {
	located, err := d.Located()
	if err != nil {
		return err
	}
	db, err := app.OpenSealed(s.ctx, located, d.Encryption)
	if err != nil {
		return err
	}
	defer db.Close()
	return do(db)
}

type encryptionStatus struct{ sealedDatabase }

type shownMasterKey struct {
	ID         string     `json:"id"`
	Active     bool       `json:"active"`
	Configured bool       `json:"configured"`
	DataKeys   int64      `json:"data_keys"`
	Payloads   int64      `json:"payloads"`
	Oldest     *time.Time `json:"oldest,omitempty"`
	State      string     `json:"state"`
}

func shownKey(k postgres.MasterKey) shownMasterKey {
	shown := shownMasterKey{k.Name, k.Active, k.Configured, k.DataKeys, k.Payloads, k.Oldest, "needed"}
	switch {
	case !k.Configured:
		shown.State = "missing"
	case !k.Opens:
		shown.State = "wrong"
	case k.Active:
		shown.State = "active"
	case k.DataKeys == 0:
		shown.State = "can go"
	}
	return shown
}

// Run ends with 1 when a key is missing or wrong.
func (c *encryptionStatus) Run(s *session) error {
	return c.open(s, func(db *postgres.DB) error {
		keys, err := db.KeyStatus(s.ctx)
		if err != nil {
			return err
		}
		bad := false
		shown, rows := make([]shownMasterKey, len(keys)), make([]string, len(keys))
		for i, k := range keys {
			shown[i] = shownKey(k)
			bad = bad || k.Err() != nil
			oldest := "-"
			if k.Oldest != nil {
				oldest = k.Oldest.Format(time.DateOnly)
			}
			rows[i] = fmt.Sprintf("%s\t%s\t%d\t%d\t%s", k.Name, shown[i].State, k.DataKeys, k.Payloads, oldest)
		}
		if s.json {
			err = s.encode(shown)
		} else {
			err = s.table("master key\tstate\tdata keys\tpayloads\toldest", rows)
		}
		if err == nil && bad {
			return &exitError{code: app.ExitFailed}
		}
		return err
	})
}

type encryptionRotate struct{ sealedDatabase }

// rotatePage is how many data keys one transaction rewraps: a few milliseconds.
const rotatePage = 200

// Run shows on standard error how far it is. What was done stays done when it is stopped or fails.
func (c *encryptionRotate) Run(s *session) error {
	return c.open(s, func(db *postgres.DB) error {
		var total postgres.Rotation
		after := uuid.Nil
		shown := time.Now()
		for more := true; more; {
			page, err := db.RotateKeys(s.ctx, after, rotatePage)
			if errors.Is(err, postgres.ErrSealsNothing) {
				return exitf(app.ExitUsage, "set HOLDFAST_ENCRYPTION_KEYS: the first key is the one that is rotated to")
			}
			if err != nil {
				return exitf(app.ExitFailed, "stopped after %d data keys; the same command goes on there: %v", total.Done, err)
			}
			after, more = page.After, page.More
			total.Master, total.Done, total.Failed = page.Master, total.Done+page.Done, total.Failed+page.Failed
			if total.Reason == nil {
				total.Reason = page.Reason
			}
			if now := time.Now(); more && now.Sub(shown) >= progressEvery {
				shown = now
				fmt.Fprintf(s.err, "%d data keys\n", total.Done)
			}
		}
		if total.Failed > 0 {
			return exitf(app.ExitFailed, "%d data keys are under %q now, %d can't be opened: %v", total.Done, total.Master, total.Failed, total.Reason)
		}
		return s.show(map[string]any{"master_key": total.Master, "data_keys": total.Done},
			"%d data keys are under %q now. `holdfast encryption status` tells which old key can go.\n", total.Done, total.Master)
	})
}
