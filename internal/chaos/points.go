package chaos

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// points returns the crash points of the product. Each process passes only some of them; arming another one does nothing.
func points() []string {
	return []string{
		"accept.in_tx", "accept.committed", "accept.before_hint", "write.in_tx", "write.committed", "change.in_tx",
		"change.committed", "cancel.in_tx", "retry.in_tx", "retry.committed", "erase.committed", "erase.in_tx",
		"erase.piece_committed", "items.in_tx", "items.committed", "items.before_hint", "forget.in_tx", "forget.committed",
		"forget.rest_committed", "claim.committed", "worker.after_claim", "worker.before_inference", "worker.after_inference",
		"commit.in_tx", "commit.committed", "worker.after_commit", "settle.in_tx", "settle.committed", "worker.after_settle",
		"fail.in_tx", "fail.committed", "later.committed", "batch.in_tx", "batch.committed", "worker.after_piece",
		"exhaust.in_tx", "correct.in_tx", "correct.committed", "deletion.in_tx", "deletion.committed", "dispatch.in_tx",
		"dispatch.committed", "worker.before_delivery", "worker.after_delivery", "delivered.in_tx", "delivered.committed",
		"export.in_tx", "export.committed", "import.accepted", "import.in_tx", "import.committed",
	}
}

// seams are the points between two steps of a task: whoever is frozen here comes back without its lease, and writes.
func seams() []string {
	return []string{
		"claim.committed", "worker.after_claim", "worker.before_inference", "worker.after_inference", "worker.after_commit",
		"worker.before_delivery", "worker.after_delivery",
	}
}

// newPoints arms one seam to freeze the process, or three in four of all points, each at one of its first visits: whatever
// the process comes by first ends, freezes or hangs it.
func newPoints(r *rand.Rand) string {
	seam, visit, one := seams()[r.IntN(len(seams()))], 1+r.IntN(5), r.Float64() < 0.4
	var armed []string
	for _, name := range points() {
		action := "kill"
		switch roll := r.Float64(); {
		case roll < 0.2:
			action = "stop"
		case roll < 0.25:
			action = "hang"
		}
		visit, chosen := 1+r.IntN(8), r.Float64() < 0.75
		if chosen {
			armed = append(armed, fmt.Sprintf("%s=%s@%d", name, action, visit))
		}
	}
	if one {
		return fmt.Sprintf("%s=stop@%d", seam, visit)
	}
	return strings.Join(armed, ",")
}
