package stubmodel

import (
	"context"
	"slices"
	"strings"
	"sync"
)

// Behavior decides the answer to a call.
type Behavior func(Call) Answer

// rule is one line of the script.
type rule struct {
	match    Match
	behavior Behavior
}

// Queue adds behaviours that are used once each, in this order, by the next calls that match.
func (s *Server) Queue(match Match, behaviors ...Behavior) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, behavior := range behaviors {
		s.queue = append(s.queue, rule{match, behavior})
	}
}

// Always sets the behaviour of every call that matches and that the queue has nothing for. A later rule comes
// before an earlier one; a nil behaviour brings back the default.
func (s *Server) Always(match Match, behavior Behavior) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.always = append([]rule{{match, behavior}}, s.always...)
}

// RefuseTexts answers 400 to every embedding call with a text that contains marker.
func (s *Server) RefuseTexts(marker string) {
	s.Always(Match{Endpoint: Embeddings, Marker: marker}, Reply(BadRequest("input cannot be embedded")))
}

// take returns the behaviour of call, nil for the default. The caller holds the lock.
func (s *Server) take(call Call) Behavior {
	for i, r := range s.queue {
		if r.match.fits(call) {
			s.queue = append(s.queue[:i:i], s.queue[i+1:]...)
			return r.behavior
		}
	}
	for _, r := range s.always {
		if r.match.fits(call) {
			return r.behavior
		}
	}
	return nil
}

// Hold stalls calls until it is released. What they are then answered is the script's business.
type Hold struct {
	match    Match
	all      bool
	used     bool // guarded by the server's lock
	arrived  chan struct{}
	left     chan struct{}
	released chan struct{}
	once     struct{ arrived, left, released sync.Once }
}

// Hold stalls the next call that matches, and no other.
func (s *Server) Hold(match Match) *Hold { return s.hold(match, false) }

// HoldAll stalls every call that matches until it is released; later calls pass.
func (s *Server) HoldAll(match Match) *Hold { return s.hold(match, true) }

func (s *Server) hold(match Match, all bool) *Hold {
	h := &Hold{
		match: match, all: all, arrived: make(chan struct{}), left: make(chan struct{}), released: make(chan struct{}),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds = append(s.holds, h)
	return h
}

// holding returns the holds that stall call. The caller holds the lock.
func (s *Server) holding(call Call) []*Hold {
	var found []*Hold
	for _, h := range s.holds {
		if (h.all || !h.used) && h.match.fits(call) {
			h.used = true
			found = append(found, h)
		}
	}
	return found
}

// Arrived is closed when the first call stalls.
func (h *Hold) Arrived() <-chan struct{} { return h.arrived }

// Left is closed when a stalled client has gone: it gave up, or its process died.
func (h *Hold) Left() <-chan struct{} { return h.left }

// Release lets the stalled calls and all later ones pass. It may be called twice.
func (h *Hold) Release() { h.once.released.Do(func() { close(h.released) }) }

// wait stalls the caller and tells whether the call may be answered.
func (h *Hold) wait(ctx context.Context, ended <-chan struct{}) bool {
	h.once.arrived.Do(func() { close(h.arrived) })
	select {
	case <-h.released:
		return true
	case <-ctx.Done():
		h.once.left.Do(func() { close(h.left) })
		return false
	case <-ended:
		return false
	}
}

// FactLines answers one fact for each line of a user's turn that begins with "FACT: ". A line that goes on with
// " REPLACES: " and a text makes the fact supersede the newest known statement that contains the text, if there is
// one. It is the default.
func FactLines(call Call) Answer {
	facts := []Fact{}
	for _, turn := range call.Conversation {
		if turn.Role != "user" {
			continue
		}
		for line := range strings.Lines(turn.Content) {
			rest, ok := strings.CutPrefix(strings.TrimSpace(line), "FACT: ")
			if !ok {
				continue
			}
			text, outdated, replaces := strings.Cut(rest, " REPLACES: ")
			fact := Fact{Text: text}
			if number := call.knows(outdated); replaces && number != 0 {
				fact.Supersedes = number
			}
			facts = append(facts, fact)
		}
	}
	return FactList(facts)
}

// knows returns the number of the newest known statement that contains text, 0 if there is none.
func (c Call) knows(text string) int {
	for _, k := range slices.Backward(c.Known) {
		if strings.Contains(k.Text, text) {
			return k.Number
		}
	}
	return 0
}
