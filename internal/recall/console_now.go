package recall

import "time"

// Pulse is what happens in a workspace now and happened in its last hour. Its counts are of the newest events.
type Pulse struct {
	Pending, Running, Retrying int
	// OldestDue is how long the event that is due for longest has been due.
	OldestDue time.Duration
	// Minutes are the last sixty, the oldest first.
	Minutes []PulseMinute
	// DoneP50 and DoneP99 are the times from acceptance to success of what was accepted and succeeded in the hour.
	DoneP50, DoneP99 time.Duration
	// More tells that there were more events than were looked at.
	More bool
}

// PulseMinute counts the events that were accepted in a minute, and what became of them so far.
type PulseMinute struct {
	Accepted, Succeeded, Failed int
}

// Totals adds up the hour.
func (p Pulse) Totals() (sum PulseMinute) {
	for _, m := range p.Minutes {
		sum.Accepted, sum.Succeeded, sum.Failed = sum.Accepted+m.Accepted, sum.Succeeded+m.Succeeded, sum.Failed+m.Failed
	}
	return sum
}
