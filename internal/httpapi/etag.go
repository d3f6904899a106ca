package httpapi

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// maxWait is the longest wait of a long-poll: below the idle time-outs of common proxies.
const maxWait = 60 * time.Second

// etagOf returns the strong tag of a representation.
func etagOf(representation []byte) string {
	sum := sha256.Sum256(representation)
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}

// matches tells whether an If-None-Match value names the tag. The comparison is the weak one, as RFC 9110 asks.
func matches(ifNoneMatch *string, tag string) bool {
	if ifNoneMatch == nil {
		return false
	}
	// Our tags hold no comma, so cutting a foreign one in two can't make it ours.
	for candidate := range strings.SplitSeq(*ifNoneMatch, ",") {
		candidate = strings.TrimSpace(candidate)
		if candidate == "*" || strings.TrimPrefix(candidate, "W/") == tag {
			return true
		}
	}
	return false
}

// waitOf returns how long the caller wants to wait: the query parameter, else the preference, else not at all.
// The contract has bounded the parameter; a longer preference is cut.
func waitOf(query *int, prefer *string) (time.Duration, error) {
	if query != nil {
		return min(time.Duration(*query)*time.Second, maxWait), nil
	}
	if prefer == nil {
		return 0, nil
	}
	for preference := range strings.SplitSeq(*prefer, ",") {
		preference, _, _ = strings.Cut(preference, ";")
		name, value, _ := strings.Cut(preference, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "wait") {
			continue
		}
		value = strings.Trim(strings.TrimSpace(value), `"`)
		n, err := strconv.ParseUint(value, 10, 31)
		if err != nil {
			return 0, in("header", "/Prefer", "wait=N with N in seconds")
		}
		return min(time.Duration(n)*time.Second, maxWait), nil
	}
	return 0, nil
}
