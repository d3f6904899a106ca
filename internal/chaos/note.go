package chaos

import (
	"sync"

	"github.com/google/uuid"
)

// space is one workspace under test.
type space struct {
	id      uuid.UUID
	name    string
	key     string
	granted int64
}

// The kinds of command, as the database names them.
const (
	kindInfer       = "memory_infer"
	kindAdd         = "memory_add"
	kindUpdate      = "memory_update"
	kindDelete      = "memory_delete"
	kindBatchUpdate = "memory_batch_update"
	kindBatchDelete = "memory_batch_delete"
	kindErase       = "scope_erase"
	kindExport      = "export"
	kindImport      = "import"
	kindDelivery    = "webhook_delivery"
)

// price is what a success of a kind costs.
func price(kind string) int64 {
	switch kind {
	case kindInfer:
		return 2
	case kindAdd:
		return 1
	}
	return 0
}

// command is one keyed command and what was told of it. Its actor alone changes it while the traffic runs.
type command struct {
	space   *space
	kind    string
	user    string
	request request
	tool    bool // its key belongs to the connection's scope, and is not known by the name that the caller gave it

	facts []string // canaries that become parts of records
	raw   []string // canaries that never do

	event     uuid.UUID // the receipt; zero without one
	records   []string  // ids of records that a synchronous write answered
	refusal   string    // the code of the last 4xx
	clean     bool      // every refusal was the answer to the first try, so nothing older can still arrive
	late      bool      // its receipt came after an erase of its scope had begun
	erased    bool      // its scope was erased after its receipt
	cancelled bool      // a cancel was confirmed, and nothing has revived it since
	retried   bool
}

// contradiction is an answer that goes against an earlier one.
type contradiction struct{ check, detail string }

// notes is everything that the callers were told.
type notes struct {
	mu             sync.Mutex
	commands       []*command
	items          []*item
	opinions       []*opinion
	contradictions []contradiction
	done           map[string]int // operations by name
	skipped        int            // operations that had nothing to work on
	tries          int            // requests sent, repeats included
}

func newNotes() *notes { return &notes{done: map[string]int{}} }

func (n *notes) add(c *command) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.commands = append(n.commands, c)
}

func (n *notes) addItem(i *item) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.items = append(n.items, i)
}

func (n *notes) addOpinion(o *opinion) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.opinions = append(n.opinions, o)
}

func (n *notes) did(name string, worked bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.done[name]++
	if !worked {
		n.skipped++
	}
}

// sofar is how many operations are done, and how many requests were sent for them.
func (n *notes) sofar() (done, tries int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return sum(n.done), n.tries
}

func (n *notes) contradict(check, detail string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.contradictions = append(n.contradictions, contradiction{check, detail})
}

// accepted returns the commands with a receipt.
func (n *notes) accepted() []*command {
	var found []*command
	for _, c := range n.commands {
		if c.event != uuid.Nil {
			found = append(found, c)
		}
	}
	return found
}

// item is one item of the items dialect and what was told of it.
type item struct {
	space     *space
	account   string
	id        string
	texts     []string // the canary of each revision sent, oldest first
	sure      bool     // every send of it was answered at its first try
	kept      bool     // the last send was taken
	forgotten bool     // it was forgotten after that
}
