package operator

import "time"

// Work is what is accepted and has not ended, over all workspaces. Its counts are of the first Looked events.
type Work struct {
	// Waiting events are to be claimed some time, Due ones of them now. Deliveries are those of them that tell webhooks.
	Waiting    int
	Due        int
	Deliveries int
	Running    int
	Looked     int
	// More tells that there are more events than were looked at.
	More bool
	// Pauses are the providers that are left alone now.
	Pauses []Pause
}

// Pause is a provider of a model that is left alone for a while.
type Pause struct {
	Provider string
	// Class is the class of failure that it is left alone for, and Until when that ends. Both are nothing for a pause that
	// is an operator's alone.
	Class string
	Until *time.Time
	// StoppedAt is since when an operator has it left alone, for Reason, until an operator lets it go on.
	StoppedAt *time.Time
	Reason    string
}
