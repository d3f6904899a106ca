package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// cancelAnswer is how long the server may take to end a statement that nobody waits for any more; after it the
	// connection is given up.
	cancelAnswer = time.Second
	// cancelBound is how long a request to cancel may take to be passed on, beside everything else.
	cancelBound = 15 * time.Second
	// cancelSettles is for the signal that the request sends to reach its process, so that it doesn't end the next
	// statement.
	cancelSettles = 100 * time.Millisecond
)

// pooledCancel cancels statements behind a pooler. pgx's own handler hangs up on its request as soon as the statement
// has ended; PgBouncer, 1.18 for one, ends itself over a request whose client has gone while it was passed on
// (pgbouncer/pgbouncer#801). This one always waits for its answer.
type pooledCancel struct {
	conn     *pgconn.PgConn
	answered chan struct{}
	deadline time.Time
}

// HandleCancel is called when the context of a statement has ended.
func (h *pooledCancel) HandleCancel(ended context.Context) {
	h.answered, h.deadline = make(chan struct{}), time.Now().Add(cancelAnswer)
	_ = h.conn.Conn().SetDeadline(h.deadline) // of a closed connection only
	go h.request(context.WithoutCancel(ended), h.answered)
}

// request passes the wish to cancel on and waits for its answer.
func (h *pooledCancel) request(ctx context.Context, answered chan<- struct{}) {
	defer close(answered)
	ctx, cancel := context.WithTimeout(ctx, cancelBound)
	defer cancel()
	_ = h.conn.CancelRequest(ctx) // the deadline holds without it
	time.Sleep(cancelSettles)
}

// HandleUnwatchAfterCancel is called when the statement has ended. A connection whose request is still under way keeps
// the deadline that has passed, so that nobody uses it again.
func (h *pooledCancel) HandleUnwatchAfterCancel() {
	late := time.NewTimer(time.Until(h.deadline))
	defer late.Stop()
	select {
	case <-h.answered:
		_ = h.conn.Conn().SetDeadline(time.Time{})
	case <-late.C:
	}
}
