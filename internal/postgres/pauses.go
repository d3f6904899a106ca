package postgres

import (
	"context"
	"maps"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/operator"
)

// stopLookSQL is how long a claim that meets a stopped provider is given back for: long enough that it costs nothing,
// short enough that work goes on soon after the stop.
const stopLookSQL = `interval '15 seconds'`

const pauseWorkspaceSQL = `
UPDATE workspaces
   SET paused_at = CASE WHEN @paused THEN coalesce(paused_at, (SELECT coalesce(@now::timestamptz, clock_timestamp()))) END
 WHERE id = @id AND deletion IS NULL
RETURNING id`

// PauseWorkspace stops the workspace's work from being claimed, or lets it go on. Its writes are accepted as ever, up to
// what it may have waiting; what runs goes on to its end. Doing it twice changes nothing. ErrNoWorkspace for an unknown
// id or name, and for a workspace that is being deleted.
func (db *DB) PauseWorkspace(ctx context.Context, idOrName string, paused bool) (Workspace, error) {
	found, err := db.Workspace(ctx, idOrName)
	if err != nil {
		return Workspace{}, err
	}
	name := operator.UnpauseWorkspace
	if paused {
		name = operator.PauseWorkspace
	}
	args := pgx.NamedArgs{"id": found.ID, "paused": paused, "now": db.now()}
	if err := db.changeWorkspace(ctx, act{found.ID, name, found.ID.String(), nil}, "pause workspace", pauseWorkspaceSQL, args); err != nil {
		return Workspace{}, err
	}
	return db.Workspace(ctx, found.ID.String())
}

// stopProviderSQL keeps what the workers know of the provider. A second stop keeps the first one's time.
const stopProviderSQL = `
INSERT INTO provider_pauses AS p (provider, paused_until, class, updated_at, stopped_at, reason)
SELECT @provider, now.at, '', now.at, now.at, @reason
  FROM (SELECT coalesce(@now::timestamptz, clock_timestamp()) AS at) now
ON CONFLICT (provider) DO UPDATE
   SET stopped_at = coalesce(p.stopped_at, excluded.stopped_at), reason = excluded.reason
RETURNING provider`

// startProviderSQL lets what has waited come back little by little, as after a pause that ended by itself.
const startProviderSQL = `
UPDATE provider_pauses AS p
   SET paused_until = greatest(p.paused_until, now.at), updated_at = least(p.updated_at, p.stopped_at),
       stopped_at = NULL, reason = ''
  FROM (SELECT coalesce(@now::timestamptz, clock_timestamp()) AS at) now
 WHERE p.provider = @provider AND p.stopped_at IS NOT NULL
RETURNING p.provider`

const (
	// maxProvider is above the longest name of a provider: its kind, address and model.
	maxProvider = 500
	// maxReason is what fits two lines of a terminal.
	maxReason = 200
)

// PauseProvider keeps the provider from being called until ResumeProvider, whoever works. What is being asked of it at
// this moment is answered. Doing it twice changes the reason only. Fault INVALID_REQUEST for a name or a reason that is none.
func (db *DB) PauseProvider(ctx context.Context, provider, reason string) error {
	if !visible(provider, 1, maxProvider) {
		return fault.At(fault.InvalidRequest, "/provider", "1 to 500 visible characters")
	}
	if !visible(reason, 0, maxReason) {
		return fault.At(fault.InvalidRequest, "/reason", "up to 200 visible characters")
	}
	return db.changeProvider(ctx, operator.PauseProvider, stopProviderSQL, pgx.NamedArgs{"provider": provider, "reason": reason})
}

// ResumeProvider lets the provider be called again. One that no operator has stopped stays as it is: a pause that the
// workers made ends by itself.
func (db *DB) ResumeProvider(ctx context.Context, provider string) error {
	return db.changeProvider(ctx, operator.ResumeProvider, startProviderSQL, pgx.NamedArgs{"provider": provider})
}

// changeProvider is about no workspace, so its record needs the reach of an operator.
func (db *DB) changeProvider(ctx context.Context, name, sql string, args pgx.NamedArgs) error {
	all := act{uuid.Nil, name, args["provider"].(string), nil}.args(ctx, db.now())
	maps.Copy(all, args)
	return db.alone(ctx, everyone, "change provider", recordedSQL(sql), all, noRows)
}

func visible(text string, least, most int) bool {
	n := utf8.RuneCountInString(text)
	return n >= least && n <= most && utf8.ValidString(text) && strings.TrimSpace(text) == text && !strings.ContainsFunc(text, unicode.IsControl)
}
