package worker

import (
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// commandOf reads what a task that is inferred was asked to remember: a conversation, or one revision of an item.
func commandOf(l Lease) (command.Add, error) {
	switch l.Kind {
	case task.Infer:
		return command.Decode(l.Format, l.Payload)
	case task.Item:
		return command.DecodeItem(l.Format, l.Payload)
	case task.Add, task.Update, task.Delete, task.BatchUpdate, task.BatchDelete, task.Erase, task.Export, task.Import, task.Webhook:
	}
	return command.Add{}, command.ErrUnreadable
}

// stored makes every fact of an item a record of its own, also one that repeats another item's: forgetting one item
// must not take what another one said.
func stored(plan memory.Plan, l Lease) memory.Plan {
	if l.Kind == task.Item {
		for i := range plan.Records {
			plan.Records[i].Verbatim = true
		}
	}
	return plan
}
