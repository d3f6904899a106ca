package access

import "time"

// SessionLife is how long somebody stays signed in at the console: a working day, not a week on a borrowed machine.
const SessionLife = 12 * time.Hour

// Holder is whose session of the console it is: an API key's or an operator's, by its public id.
type Holder struct {
	Operator bool
	ID       string
}

// Visitor is who uses the console: an operator, or the caller that an API key stands for.
type Visitor struct {
	// Operator is the operator's name, empty for a key.
	Operator string
	Caller   Caller
}

// Actor is what the log of acts calls the visitor.
func (v Visitor) Actor() string {
	if v.Operator != "" {
		return "operator:" + v.Operator
	}
	return "key:" + v.Caller.KeyID
}
