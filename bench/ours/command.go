package ours

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/memory"
)

// CommandBytes is about how long a command is; the target table speaks of 1 kB.
const CommandBytes = 1000

// users is how many users a workspace has: so many that most commands are the first of their lane.
const users = 1_000_000

// Words make the two turns of a conversation: what the user says holds one fact, the answer none.
func Words() (user, assistant string) {
	user = fmt.Sprintf("My favourite number is %d.", rand.Int64N(1<<40))
	const filler = "I see, let us go on with what we spoke about then. "
	return user, strings.Repeat(filler, (CommandBytes-len(user)-100)/len(filler))
}

// User names one of the users.
func User() string { return fmt.Sprintf("user-%d", rand.IntN(users)) }

// Body is the body of POST /v1/memories.
func Body() ([]byte, error) {
	said, answer := Words()
	return json.Marshal(map[string]any{
		"user_id":  User(),
		"messages": []map[string]string{{"role": "user", "content": said}, {"role": "assistant", "content": answer}},
	})
}

// add is the same command as the store takes it.
func add() command.Add {
	said, answer := Words()
	return command.Add{
		Scope: memory.Scope{UserID: User()}, Infer: true, Ordered: true,
		Messages: []command.Message{{Role: "user", Content: said}, {Role: "assistant", Content: answer}},
	}
}
