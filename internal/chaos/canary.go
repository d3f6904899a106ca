package chaos

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
)

// Canary words stand for content. Each is used by one command alone, so that finding one tells whose content is where.
const (
	canaryFact    = 'f' // becomes part of a record
	canaryRaw     = 'r' // is said, and never part of a record
	canaryRefused = 'x' // is sent in requests that must be refused
)

// canaryPattern is the form of every canary: nothing else on the machine looks like it.
func canaryPattern() *regexp.Regexp { return regexp.MustCompile(`cny[frx][0-9a-f]{14}9`) }

// canary is the word of one place in the plan; equal seeds give equal words.
func (c Config) canary(kind byte, actor, command, place int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d/%d/%d/%d", c.Seed, actor, command, place))
	return "cny" + string(rune(kind)) + hex.EncodeToString(sum[:7]) + "9"
}

// key is the idempotency key of one place in the plan.
func (c Config) key(actor, command int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "key/%d/%d/%d", c.Seed, actor, command))
	return "chaos-" + hex.EncodeToString(sum[:12])
}
