package mcp

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/holdfast-memory/holdfast/internal/fault"
)

// quiet holds the SDK's answer back until it is whole, which is when the SDK sends it anyway, and takes out of a refusal
// what it quotes of the request: names of tools and methods, versions, and parts of what could not be decoded.
type quiet struct {
	to     http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (q *quiet) Header() http.Header         { return q.to.Header() }
func (q *quiet) Write(p []byte) (int, error) { return q.body.Write(p) }

func (q *quiet) WriteHeader(status int) {
	if q.status == 0 {
		q.status = status
	}
}

// send sends the answer.
func (q *quiet) send() {
	body := q.body.Bytes()
	if strings.HasPrefix(q.Header().Get("Content-Type"), "application/json") {
		body = unquoted(body)
	} else if q.status >= http.StatusBadRequest {
		body = []byte(plainly(q.body.String(), q.status) + "\n")
	}
	q.Header().Del("Content-Length")
	if q.status != 0 {
		q.to.WriteHeader(q.status)
	}
	_, _ = q.to.Write(body) // a client that has gone misses it
}

// plainly is a refusal in plain text: those of the SDK that only say what the server takes, and else the status alone.
func plainly(text string, status int) string {
	text = strings.TrimSpace(text)
	fixed := []string{
		"Bad Request: Unsupported protocol version (supported versions: ", "Content-Type must be ", "Accept must contain ",
		"request body exceeds ", "POST requires a non-empty body",
	}
	if slices.ContainsFunc(fixed, func(begin string) bool { return strings.HasPrefix(text, begin) }) {
		return text
	}
	return http.StatusText(status)
}

// unquoted is an answer, with words of ours in its error if it is one.
func unquoted(body []byte) []byte {
	var answer struct {
		Version string           `json:"jsonrpc"`
		ID      json.RawMessage  `json:"id"`
		Error   *protocolProblem `json:"error,omitempty"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.Error == nil {
		return body
	}
	if !ours(answer.Error.Message) {
		answer.Error.Message = wordsOf(answer.Error.Code)
	}
	raw, err := json.Marshal(answer)
	if err != nil {
		return body // it has just been decoded: this can't be
	}
	return raw
}

// protocolProblem is an error of the protocol. Of its data only the versions that the server speaks are kept: the rest is
// the request's.
type protocolProblem struct {
	Code    int64  `json:"code"`
	Message string `json:"message"`
	Data    *struct {
		Supported []string `json:"supported,omitempty"`
	} `json:"data,omitempty"`
}

// ours tells whether a message is one of protocolError: it begins with a code of the catalogue.
func ours(message string) bool {
	code, _, found := strings.Cut(message, ": ")
	return found && slices.Contains(fault.Codes(), fault.Code(code))
}

// wordsOf is what is said of an error that the SDK has found.
func wordsOf(code int64) string {
	switch code {
	case jsonrpc.CodeParseError:
		return "parse error: not one JSON value"
	case jsonrpc.CodeInvalidRequest:
		return "invalid request: not a message of the protocol"
	case jsonrpc.CodeMethodNotFound:
		return "method not found: there are tools only"
	case jsonrpc.CodeInvalidParams:
		return "invalid params: initialize tells the versions, tools/list the tools and what they take"
	case jsonrpc.CodeInternalError:
		return "internal error"
	}
	return "refused: the headers and the message don't fit the protocol's version"
}
