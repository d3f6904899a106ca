package mem0

import (
	"context"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/httpapi"
)

type pong struct {
	Status    string `json:"status"`
	OrgID     string `json:"org_id"`
	ProjectID string `json:"project_id"`
	UserEmail string `json:"user_email"`
}

// ping tells a client who it is. Its ids are derived from the workspace; the address has no @, so that no client
// takes it for a person to be reported to somebody's analytics.
func (h handlers) ping(_ context.Context, call httpapi.GuestCall) (httpapi.GuestAnswer, error) {
	id := call.Caller.Workspace.ID
	return httpapi.GuestAnswer{Body: pong{
		Status: "ok", OrgID: orgID(id), ProjectID: projectID(id), UserEmail: userEmail(id),
	}}, nil
}

// orgID and projectID are the ids that a workspace has as an organisation and as its one project.
func orgID(workspace uuid.UUID) string {
	return "org_" + uuid.NewSHA1(workspace, []byte("org")).String()
}

func projectID(workspace uuid.UUID) string {
	return "proj_" + uuid.NewSHA1(workspace, []byte("project")).String()
}

// userEmail is what a workspace is called where the clients expect somebody's address.
func userEmail(workspace uuid.UUID) string { return "workspace-" + workspace.String() }
