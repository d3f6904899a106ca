package mcp_test

import (
	"strings"
	"testing"
)

// TestRefusalsQuoteNothing sends what the SDK refuses, with a word in what is wrong. No answer has the word, and each
// says what kind of error it is.
func TestRefusalsQuoteNothing(t *testing.T) {
	t.Parallel()
	w, _, address := setup(t)
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"canary","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	for name, c := range map[string]struct {
		message string
		header  []string
		want    string
	}{
		"a tool":             {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"canary"}}`, nil, `"code":-32602`},
		"a method":           {`{"jsonrpc":"2.0","id":1,"method":"canary"}`, nil, "Bad Request"},
		"a method of others": {`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"canary:"}}`, nil, `"message":"method not found: there are tools only"`},
		"parameters":         {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"canary"}`, nil, `"message":"invalid params: `},
		"a version of JSON":  {`{"jsonrpc":"canary","id":1,"method":"ping"}`, nil, "Bad Request"},
		"no JSON":            {`{"canary":`, nil, "Bad Request"},
		"a version":          {`{"jsonrpc":"2.0","id":1,"method":"ping"}`, []string{"Mcp-Protocol-Version", "canary"}, `"message":"invalid params: `},
		"a newer version":    {`{"jsonrpc":"2.0","id":1,"method":"ping","params":{` + meta + `}}`, []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "ping"}, `"message":"refused: `},
		"a media type":       {`{"jsonrpc":"2.0","id":1,"method":"ping"}`, []string{"Content-Type", "text/canary"}, "Content-Type must be"},
		"an argument":        {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_memory","arguments":{"canary":1}}}`, nil, "INVALID_REQUEST"},
		"no scope":           {hello, []string{"X-Holdfast-User-Id", strings.Repeat("canary", 200)}, "INVALID_REQUEST: "},
	} {
		said, err := w.ask(t.Context(), address, c.message, c.header...)
		if err != nil || strings.Contains(said, "canary") || !strings.Contains(said, c.want) {
			t.Errorf("%s: %s %v, want %s", name, said, err, c.want)
		}
	}
	if log := w.logText(); strings.Contains(log, "canary") {
		t.Errorf("log %s", log)
	}
}
