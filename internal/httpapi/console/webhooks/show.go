package webhooks

import (
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/endpoint"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/frame"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

const (
	perPage = 50
	// renewed is how often the first page of deliveries asks again.
	renewed = 3 * time.Second
	// uuidLength is that of an id without its prefix.
	uuidLength = 36
)

// hook is a webhook as it is shown. There is no secret in it.
type hook struct {
	endpoint.Endpoint
	Public string
	Here   string
	// State, Tone and Why are how it is.
	State, Tone, Why string
	About            string
}

func hookOf(v *frame.Visit, e endpoint.Endpoint) hook {
	h := hook{Endpoint: e, Public: endpoint.PublicID(e.ID), State: "enabled", Tone: "good"}
	h.Here = v.Link("/webhooks/" + h.Public)
	switch {
	case !e.Active:
		h.State, h.Tone, h.Why = "disabled", "bad", why(e.Reason)
		if e.Reason == endpoint.ByCaller {
			h.Tone = "calm"
		}
	case e.FailingSince != nil:
		h.State, h.Tone = "failing", "warn"
	}
	types := make([]string, len(e.Types))
	for i, t := range e.Types {
		types[i] = string(t)
	}
	h.About = strings.Join(types, ", ")
	if len(e.Kinds) > 0 {
		kinds := make([]string, len(e.Kinds))
		for i, k := range e.Kinds {
			kinds[i] = strings.ReplaceAll(string(k), "_", " ")
		}
		h.About += " of " + strings.Join(kinds, ", ")
	}
	return h
}

// why says in words why a webhook is disabled.
func why(r endpoint.Reason) string {
	switch r {
	case endpoint.Gone:
		return "the receiver answered 410: it wants no more messages"
	case endpoint.Failing:
		return "no delivery has succeeded for " + strconv.Itoa(int(endpoint.FailingFor.Hours())/24) + " days"
	case endpoint.ByCaller:
		return "somebody has disabled it"
	case endpoint.SecretLost:
		return "the encryption key of its secret was given up: rotate the secret"
	}
	return string(r)
}

func (s section) list(v *frame.Visit) (frame.Answer, error) {
	all, err := s.deps.Reader.List(v.Context(), v.Workspace())
	hooks := make([]hook, len(all))
	for i, e := range all {
		hooks[i] = hookOf(v, e)
	}
	return frame.Answer{Title: "Webhooks", Template: "webhooks.html", Data: hooks}, err
}

// delivery is one message of the list.
type delivery struct {
	endpoint.Delivery
	Message string
	// About leads to the event that it tells of, Task to its own life; both empty for who may not see events.
	About, Task string
	Replay      string
}

// shown is the page of one webhook.
type shown struct {
	hook
	Deliveries  []delivery
	Next, First string
	Done        string
}

// read answers the webhook that the path names.
func (s section) read(v *frame.Visit) (hook, error) {
	id, ok := idIn(v, "id", "whk_")
	if !ok {
		return hook{}, fault.New(fault.WebhookNotFound)
	}
	e, err := s.deps.Reader.Get(v.Context(), v.Workspace(), id)
	if err != nil {
		return hook{}, err
	}
	return hookOf(v, e), nil
}

func idIn(v *frame.Visit, name, prefix string) (uuid.UUID, bool) {
	text := strings.TrimPrefix(v.Request.PathValue(name), prefix)
	id, err := uuid.Parse(text)
	return id, err == nil && len(text) == uuidLength
}

func (s section) show(v *frame.Visit) (frame.Answer, error) {
	h, err := s.read(v)
	if err != nil {
		return frame.Answer{}, err
	}
	page := shown{hook: h, Done: doneText(v.Query("done"))}
	var cursor *string
	if text := v.Query("cursor"); text != "" {
		cursor = &text
	}
	const list = "console deliveries"
	after, err := httpapi.OpenPlace(v.Caller.Workspace, list, h.ID, cursor)
	if err != nil {
		return frame.Answer{}, err
	}
	found, err := s.deps.Reader.Deliveries(v.Context(), v.Workspace(), h.ID, after, perPage)
	if err != nil {
		return frame.Answer{}, err
	}
	next, err := httpapi.SealPlace(v.Caller.Workspace, list, h.ID, found.Next)
	if err != nil {
		return frame.Answer{}, err
	}
	page.fill(v, found)
	if next != nil {
		page.Next = h.Here + "?cursor=" + *next
	}
	answer := frame.Answer{Title: "Webhook " + h.Public, Template: "webhook.html"}
	if cursor != nil {
		page.First = h.Here
	} else {
		answer.Every = renewed
	}
	answer.Data = page
	return answer, nil
}

func (p *shown) fill(v *frame.Visit, found recall.DeliveryPage) {
	p.Deliveries = make([]delivery, len(found.Deliveries))
	for i, d := range found.Deliveries {
		message := endpoint.MessageID(d.Message)
		shown := delivery{Delivery: d, Message: message, Replay: p.Here + "/deliveries/" + message + "/replay"}
		if v.May(access.OperationsRead) {
			shown.Task = v.Link("/events/" + frame.EventID(d.TaskID))
			if d.About != uuid.Nil {
				shown.About = v.Link("/events/" + frame.EventID(d.About))
			}
		}
		p.Deliveries[i] = shown
	}
}

func doneText(done string) string {
	switch done {
	case "enabled":
		return "The webhook is enabled."
	case "disabled":
		return "The webhook is disabled: what ends from now on is not told to it."
	case "tested":
		return "A test message is on its way."
	case "replayed":
		return "The delivery is made again, under the same message id."
	}
	return ""
}
