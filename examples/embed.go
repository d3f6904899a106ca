// Package examples holds conversations in the common chat format, for the demo and for trying things out.
//
// It imports nothing of Holdfast.
package examples

import _ "embed"

//go:embed conversation.json
var conversation []byte

// Conversation returns the conversation that the demo uses when it gets no other one.
func Conversation() []byte { return append([]byte(nil), conversation...) }
