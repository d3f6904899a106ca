package memory

import (
	"crypto/sha256"
	"encoding/binary"
)

// Scope says whose memory it is. Empty fields are absent. As a filter, an absent field matches everything; as
// a lane, all four fields count.
type Scope struct {
	UserID  string `json:"user_id,omitempty"`
	AgentID string `json:"agent_id,omitempty"`
	RunID   string `json:"run_id,omitempty"`
	AppID   string `json:"app_id,omitempty"`
}

// Empty tells whether no field is set.
func (s Scope) Empty() bool { return s == Scope{} }

// Lane identifies one scope's ordered queue inside a workspace: the SHA-256 of the exact tuple.
type Lane [sha256.Size]byte

// Lane returns the lane of the exact tuple. Each field is preceded by its length, so that no two tuples share
// an encoding.
func (s Scope) Lane() Lane {
	h := sha256.New()
	h.Write([]byte("lane/1"))
	for _, field := range []string{s.UserID, s.AgentID, s.RunID, s.AppID} {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(field)))
		h.Write(size[:])
		h.Write([]byte(field))
	}
	return Lane(h.Sum(nil))
}
