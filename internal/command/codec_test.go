package command

import (
	"encoding/hex"
	"errors"
	"testing"
)

func mustPrint(t *testing.T, add Add) Fingerprint {
	t.Helper()
	print, err := add.Fingerprint()
	if err != nil {
		t.Fatal("a valid command must have a fingerprint")
	}
	return print
}

func fmtHex(print Fingerprint) string { return hex.EncodeToString(print[:]) }

func isUnreadable(err error) bool { return errors.Is(err, ErrUnreadable) }
