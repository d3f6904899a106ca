package natsconfig

import "slices"

// User is what one kind of process may do at a server that asks who somebody is. Subjects are NATS's, with its wildcards.
type User struct {
	Name      string // of the process: "api" runs as the user api
	Publish   []string
	Subscribe []string
}

const (
	api      = "$JS.API."
	creation = api + "CONSUMER.CREATE.WAKE."
	next     = api + "CONSUMER.MSG.NEXT.WAKE."
	notices  = "done.*.*"
)

// Inbox is the prefix of the subjects on which a process gets its answers. Each kind of process has its own, so that
// nobody can listen to another one's.
func Inbox(process string) string { return "_INBOX_" + process }

// Users are the least rights with which everything works, sorted by name. Only repair makes what is missing of the
// stream; nobody but the operator can change or remove it. Doctor looks and does nothing.
func Users() []User {
	hints := []string{"wake.bulk", "wake.interactive"}
	look := []string{
		api + "STREAM.INFO.WAKE", api + "CONSUMER.INFO.WAKE.bulk", api + "CONSUMER.INFO.WAKE.interactive",
	}
	creates := []string{
		api + "STREAM.CREATE.WAKE", creation + "bulk.wake.bulk", creation + "interactive.wake.interactive",
	}
	pull := []string{
		next + "bulk", next + "interactive", "$JS.ACK.WAKE.bulk.>", "$JS.ACK.WAKE.interactive.>",
	}
	answers := func(process string) string { return Inbox(process) + ".>" }
	return []User{
		{Name: "api", Publish: slices.Concat(hints, look, []string{notices}), Subscribe: []string{answers("api"), notices}},
		{Name: "doctor", Publish: look, Subscribe: []string{answers("doctor")}},
		{
			Name: "operator", Publish: []string{api + ">", "$JS.ACK.>"}, // hints and notices are not for people to send
			Subscribe: []string{"_INBOX.>", "$JS.EVENT.>", notices},
		},
		{Name: "repair", Publish: slices.Concat(hints, look, creates, []string{notices}), Subscribe: []string{answers("repair")}},
		{Name: "worker", Publish: slices.Concat(hints, look, pull, []string{notices}), Subscribe: []string{answers("worker")}},
	}
}
