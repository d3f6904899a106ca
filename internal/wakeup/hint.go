package wakeup

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
)

// The classes of hints. Each has a subject and a durable consumer of its own, so that bulk work can't stand in front of
// somebody who waits.
const (
	Interactive = "interactive"
	Bulk        = "bulk"
)

const (
	subjectPrefix  = "wake."
	maxHintBytes   = 512 // four times what a hint takes
	maxTraceValue  = 512 // what W3C trace context allows a tracestate to need at least
	traceParentKey = "traceparent"
	traceStateKey  = "tracestate"
)

// Hint says that a task may be claimed. Trace is W3C trace context under the lower-case keys "traceparent" and
// "tracestate"; other keys, and values over 512 bytes, are left out.
type Hint struct {
	TaskID      uuid.UUID
	WorkspaceID uuid.UUID
	HintSeq     int64
	Class       string
	Trace       map[string]string
}

// ID is what JetStream recognises a hint by within the duplicate window.
func (h Hint) ID() string { return h.TaskID.String() + ":" + strconv.FormatInt(h.HintSeq, 10) }

// wireHint is the message body. Ids are text, because uuid.UUID's own decoding takes several spellings.
type wireHint struct {
	Task      string `json:"task"`
	Workspace string `json:"workspace"`
	Seq       int64  `json:"seq"`
}

var errHint = errors.New("malformed hint")

// encode is the message of a hint. Its error wraps errHint: the caller made a hint that nobody could read.
func (h Hint) encode() (*nats.Msg, error) {
	if !isClass(h.Class) || h.HintSeq < 1 || h.TaskID == uuid.Nil || h.WorkspaceID == uuid.Nil {
		return nil, errHint
	}
	body, err := json.Marshal(wireHint{Task: h.TaskID.String(), Workspace: h.WorkspaceID.String(), Seq: h.HintSeq})
	if err != nil {
		return nil, fmt.Errorf("encode hint: %w", err)
	}
	msg := nats.NewMsg(subjectPrefix + h.Class)
	msg.Data = body
	for _, key := range []string{traceParentKey, traceStateKey} {
		if v := h.Trace[key]; goodTrace(v) {
			msg.Header[key] = []string{v} // as written: header names keep their case in NATS
		}
	}
	return msg, nil
}

// decodeHint reads a message strictly: the two subjects, one JSON object with the three known members once each, ids in
// their one usual spelling. Its error wraps errHint and quotes nothing.
func decodeHint(subject string, header nats.Header, body []byte) (Hint, error) {
	class, ok := cutSubject(subject)
	if !ok || len(body) > maxHintBytes {
		return Hint{}, errHint
	}
	var w wireHint
	if err := json.Unmarshal(body, &w, json.RejectUnknownMembers(true)); err != nil {
		return Hint{}, errHint
	}
	task, okTask := parseID(w.Task)
	workspace, okWorkspace := parseID(w.Workspace)
	if !okTask || !okWorkspace || w.Seq < 1 {
		return Hint{}, errHint
	}
	h := Hint{TaskID: task, WorkspaceID: workspace, HintSeq: w.Seq, Class: class}
	for _, key := range []string{traceParentKey, traceStateKey} {
		if v := header[key]; len(v) == 1 && goodTrace(v[0]) {
			if h.Trace == nil {
				h.Trace = map[string]string{}
			}
			h.Trace[key] = v[0]
		}
	}
	return h, nil
}

func isClass(s string) bool { return s == Interactive || s == Bulk }

func cutSubject(subject string) (string, bool) {
	if len(subject) < len(subjectPrefix) || subject[:len(subjectPrefix)] != subjectPrefix {
		return "", false
	}
	class := subject[len(subjectPrefix):]
	return class, isClass(class)
}

// parseID takes the 36 characters with hyphens in lower case and no other spelling.
func parseID(s string) (uuid.UUID, bool) {
	id, err := uuid.Parse(s)
	return id, err == nil && id != uuid.Nil && id.String() == s
}

// goodTrace is true for printable ASCII of a bounded length: a header can't carry a line break.
func goodTrace(v string) bool {
	if v == "" || len(v) > maxTraceValue {
		return false
	}
	for i := range len(v) {
		if v[i] < 0x20 || v[i] > 0x7e {
			return false
		}
	}
	return true
}
