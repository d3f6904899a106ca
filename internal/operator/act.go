package operator

import (
	"time"

	"github.com/google/uuid"
)

// The acts.
const (
	CreateWorkspace   = "workspace.create"
	SuspendWorkspace  = "workspace.suspend"
	ResumeWorkspace   = "workspace.resume"
	PauseWorkspace    = "workspace.pause"
	UnpauseWorkspace  = "workspace.unpause"
	PauseProvider     = "provider.pause"
	ResumeProvider    = "provider.resume"
	LimitWorkspace    = "workspace.limit"
	DeleteWorkspace   = "workspace.delete"
	ChangePolicy      = "policy.change"
	CreateKey         = "key.create"
	LimitKey          = "key.limit"
	RevokeKey         = "key.revoke"
	Grant             = "credits.grant"
	Retry             = "event.retry"
	Cancel            = "event.cancel"
	Erase             = "scope.erase"
	ForgetItems       = "items.forget"
	Export            = "workspace.export"
	Import            = "workspace.import"
	CreateWebhook     = "webhook.create"
	ChangeWebhook     = "webhook.change"
	DeleteWebhook     = "webhook.delete"
	RotateWebhook     = "webhook.rotate"
	ReplayWebhook     = "webhook.replay"
	CreateOperator    = "operator.create"
	RevokeOperator    = "operator.revoke"
	RotateEncryption  = "encryption.rotate"
	AbandonEncryption = "encryption.abandon"
)

// MinActRetention is how long acts are kept at least: the database refuses to remove them before.
const MinActRetention = 30 * 24 * time.Hour

// Act is one thing that was done.
type Act struct {
	ID        uuid.UUID
	At        time.Time
	Actor     string
	Origin    string
	RequestID string
	// Workspace is the zero id for what is about no workspace.
	Workspace uuid.UUID
	Act       string
	// Subject is what it was done to: the id of a workspace, key, event, webhook or operator, or a grant's reference.
	Subject string
	// Details is a JSON object of numbers, codes and names.
	Details []byte
}

// ActPlace is behind which act a page begins.
type ActPlace struct {
	At time.Time
	ID uuid.UUID
}

// ActQuery chooses acts, newest first. Zero members choose all.
type ActQuery struct {
	Workspace uuid.UUID
	Act       string
	Actor     string
	After     *ActPlace
	// Limit is how many acts the page may have, 1 to 1000.
	Limit int
}

// ActPage is a page of acts; Next is nil on the last one.
type ActPage struct {
	Acts []Act
	Next *ActPlace
}
