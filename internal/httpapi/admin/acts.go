package admin

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/operator"
)

const (
	defaultActs = 100
	maxActs     = 1_000 // what the store gives at a time
)

// act is one entry of the log as it is shown.
type act struct {
	ID        uuid.UUID       `json:"id"`
	At        time.Time       `json:"at"`
	Actor     string          `json:"actor"`
	Origin    string          `json:"origin"`
	RequestID string          `json:"request_id"`
	Workspace *string         `json:"workspace"`
	Act       string          `json:"act"`
	Subject   string          `json:"subject"`
	Details   json.RawMessage `json:"details"`
}

func (a *api) listActs(r *http.Request) (int, any, error) {
	query, err := a.actQuery(r)
	if err != nil {
		return 0, nil, err
	}
	page, err := a.deps.Acts.Acts(r.Context(), query)
	if err != nil {
		return 0, nil, err
	}
	shown := make([]act, len(page.Acts))
	for i, e := range page.Acts {
		shown[i] = act{e.ID, e.At, e.Actor, e.Origin, e.RequestID, nil, e.Act, e.Subject, e.Details}
		if e.Workspace != uuid.Nil {
			id := workspaceID(e.Workspace)
			shown[i].Workspace = &id
		}
	}
	var next *string
	if page.Next != nil {
		cursor := cursorOf(*page.Next)
		next = &cursor
	}
	return http.StatusOK, map[string]any{"acts": shown, "next_cursor": next}, nil
}

func (a *api) actQuery(r *http.Request) (operator.ActQuery, error) {
	given := r.URL.Query()
	query := operator.ActQuery{Act: given.Get("act"), Actor: given.Get("actor"), Limit: defaultActs}
	if text := given.Get("limit"); text != "" {
		limit, err := strconv.Atoi(text)
		if err != nil || limit < 1 || limit > maxActs {
			return query, fault.At(fault.InvalidRequest, "/limit", "1 to 1000")
		}
		query.Limit = limit
	}
	if text := given.Get("cursor"); text != "" {
		after, ok := placeOf(text)
		if !ok {
			return query, fault.New(fault.InvalidCursor)
		}
		query.After = &after
	}
	if name := given.Get("workspace"); name != "" {
		w, err := a.deps.Workspaces.Workspace(r.Context(), name)
		if err != nil {
			return query, err
		}
		query.Workspace = w.ID
	}
	return query, nil
}

// cursorOf is the place as a client hands it back: it holds nothing that the page didn't.
func cursorOf(p operator.ActPlace) string {
	return base64.RawURLEncoding.EncodeToString([]byte(p.At.UTC().Format(time.RFC3339Nano) + " " + p.ID.String()))
}

func placeOf(cursor string) (operator.ActPlace, bool) {
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return operator.ActPlace{}, false
	}
	moment, name, _ := strings.Cut(string(raw), " ")
	at, err := time.Parse(time.RFC3339Nano, moment)
	if err != nil {
		return operator.ActPlace{}, false
	}
	id, err := uuid.Parse(name)
	return operator.ActPlace{At: at, ID: id}, err == nil
}
