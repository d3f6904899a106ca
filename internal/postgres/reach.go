package postgres

import "github.com/google/uuid"

// reach is whose rows a statement is to see and change. It travels with the statement as settings of its transaction,
// by which the policies of the database hold the API to it, whatever the statement says.
type reach string

const (
	// everyone is declared by the few statements of the API that are about no one workspace: who is it that calls, what
	// an operator lists. It opens the tables that they need, for reading, and no other.
	everyone reach = "everyone"
	// unbound sends no setting. It is for tables and views without row-level security, and for statements that workers
	// and repair alone run: their policies show them all rows. To the API it shows none.
	unbound reach = ""
)

// of is the reach of one workspace.
func of(workspace uuid.UUID) reach { return reach(workspace.String()) }

// reachSQL sets what the policies look at until the transaction ends. Both settings are sent, so that neither is left to
// what else could have set it.
const reachSQL = `SELECT set_config('holdfast.workspace', $1, true), set_config('holdfast.reach', $2, true)`

// settings are the values of holdfast.workspace and holdfast.reach.
func (r reach) settings() (workspace, wide string) {
	if r == everyone {
		return "", string(r)
	}
	return string(r), ""
}
