package admin

import (
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/operator"
)

// key is an API key as it is shown.
type key struct {
	ID          string     `json:"id"`
	Reference   *string    `json:"reference"`
	Name        string     `json:"name"`
	Permissions []string   `json:"permissions"`
	RateLimit   int        `json:"rate_limit"`
	CreatedAt   time.Time  `json:"created_at"`
	ExpiresAt   *time.Time `json:"expires_at"`
	RevokedAt   *time.Time `json:"revoked_at"`
}

func keyOf(k operator.Key) key {
	shown := key{
		ID: k.ID, Name: k.Name, RateLimit: k.RateLimit, CreatedAt: k.CreatedAt, ExpiresAt: k.ExpiresAt, RevokedAt: k.RevokedAt,
		Permissions: make([]string, len(k.Permissions)),
	}
	if k.Reference != "" {
		shown.Reference = &k.Reference
	}
	for i, p := range k.Permissions {
		shown.Permissions[i] = string(p)
	}
	return shown
}

func (a *api) listKeys(r *http.Request) (int, any, error) {
	w, err := a.deps.Workspaces.Workspace(r.Context(), r.PathValue("workspace"))
	if err != nil {
		return 0, nil, err
	}
	found, err := a.deps.Keys.ListKeys(r.Context(), w.ID)
	if err != nil {
		return 0, nil, err
	}
	shown := make([]key, len(found))
	for i, k := range found {
		shown[i] = keyOf(k)
	}
	return http.StatusOK, map[string]any{"keys": shown}, nil
}

// createKey shows the secret to whoever made the key, and to nobody who asks again.
func (a *api) createKey(r *http.Request) (int, any, error) {
	ask, err := keyAsk(r)
	if err != nil {
		return 0, nil, err
	}
	w, err := a.deps.Workspaces.Workspace(r.Context(), r.PathValue("workspace"))
	if err != nil {
		return 0, nil, err
	}
	made, secret, err := a.deps.Keys.CreateKeyOnce(r.Context(), w.ID, ask)
	if err != nil {
		return 0, nil, err
	}
	answer := struct {
		key
		Secret *string `json:"secret"`
	}{key: keyOf(made)}
	if secret == nil {
		return http.StatusOK, answer, nil
	}
	text := secret.Reveal()
	answer.Secret = &text
	return http.StatusCreated, answer, nil
}

// keyAsk reads what key is wanted: without permissions, one for an application.
func keyAsk(r *http.Request) (operator.KeyAsk, error) {
	var body struct {
		Reference   string     `json:"reference"`
		Name        string     `json:"name"`
		Permissions []string   `json:"permissions"`
		ExpiresAt   *time.Time `json:"expires_at"`
	}
	if err := read(r, &body); err != nil {
		return operator.KeyAsk{}, err
	}
	ask := operator.KeyAsk{Reference: body.Reference, Name: body.Name, ExpiresAt: body.ExpiresAt}
	for _, name := range body.Permissions {
		ask.Permissions = append(ask.Permissions, access.Permission(name))
	}
	if body.Permissions == nil {
		ask.Permissions = access.ForApplications()
	}
	if at := body.ExpiresAt; at != nil && (at.Year() < 2000 || at.Year() > 9999) { // what the database and JSON can say
		return operator.KeyAsk{}, fault.At(fault.InvalidRequest, "/expires_at", "a time of this millennium")
	}
	return ask, nil
}

func (a *api) revokeKey(r *http.Request) (int, any, error) {
	w, err := a.deps.Workspaces.Workspace(r.Context(), r.PathValue("workspace"))
	if err != nil {
		return 0, nil, err
	}
	id := strings.TrimPrefix(r.PathValue("key"), "hfk_")
	if err := a.deps.Keys.RevokeKey(r.Context(), w.ID, id); err != nil {
		return 0, nil, err
	}
	return http.StatusOK, map[string]string{"id": id, "state": "revoked"}, nil
}
