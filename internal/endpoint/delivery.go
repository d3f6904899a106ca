package endpoint

import (
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/task"
)

// Error says why an attempt failed, as a stable public code.
type Error string

// The errors of an attempt.
const (
	AddressRefused Error = "ADDRESS_REFUSED" // the name leads to an address that may not be called
	URLRefused     Error = "URL_REFUSED"     // the operator no longer allows this form of URL
	NotResolved    Error = "NAME_NOT_RESOLVED"
	NotConnected   Error = "NOT_CONNECTED"
	TLSFailed      Error = "TLS_FAILED"
	TimedOut       Error = "TIMED_OUT"
	Redirected     Error = "REDIRECTED" // 3xx: redirects are not followed
	Refused        Error = "REFUSED"    // any other status that isn't 2xx
	BadAnswer      Error = "BAD_ANSWER" // not HTTP, or a head that is too large
)

// Parcel is one message with what its delivery needs.
type Parcel struct {
	WebhookID uuid.UUID
	URL       string
	Message   uuid.UUID
	Body      []byte
	Secrets   []Secret // the present one first
	Active    bool
	// At is the database's time of this attempt: the clock of a worker may be off by more than receivers put up with.
	At time.Time
}

// Receipt is how an attempt ended. Status is 0 when there was no answer; Error is empty for a success.
type Receipt struct {
	Status     int
	Error      Error
	RetryAfter time.Duration
	At         time.Time
}

// Gone tells whether the receiver wants no more messages.
func (r Receipt) Gone() bool { return r.Status == goneStatus }

const goneStatus = 410

// Delivery is a message and what became of it.
type Delivery struct {
	Message       uuid.UUID
	TaskID        uuid.UUID
	Type          Type
	About         uuid.UUID // the zero id for a test
	Generation    int
	Status        task.EventStatus
	ErrorCode     task.ErrorCode
	Attempts      int
	CreatedAt     time.Time
	CompletedAt   *time.Time
	NextAttemptAt *time.Time
	LastAt        *time.Time
	LastStatus    *int
	LastError     Error
}

// Selection is what a replay sends again: the deliveries that were made in [Since, Until), all of them or those that
// failed, or the one of a message. Nil is no bound.
type Selection struct {
	Message    *uuid.UUID
	Since      *time.Time
	Until      *time.Time
	FailedOnly bool
}
