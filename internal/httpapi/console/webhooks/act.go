package webhooks

import (
	"strconv"

	"github.com/holdfast-memory/holdfast/internal/endpoint"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/frame"
)

// activate enables or disables the webhook, as the button said.
func (s section) activate(v *frame.Visit) (frame.Answer, error) {
	h, err := s.read(v)
	if err != nil {
		return frame.Answer{}, err
	}
	done, active := "", false
	switch v.Request.PostForm.Get("active") {
	case "true":
		done, active = "enabled", true
	case "false":
		done = "disabled"
	default:
		return frame.Answer{}, fault.At(fault.InvalidRequest, "/active", "true or false")
	}
	if _, err := s.deps.Changer.Change(v.Context(), v.Caller, h.ID, endpoint.Change{Active: &active}); err != nil {
		return frame.Answer{}, err
	}
	return frame.Answer{To: h.Here + "?done=" + done}, nil
}

func (s section) test(v *frame.Visit) (frame.Answer, error) {
	h, err := s.read(v)
	if err != nil {
		return frame.Answer{}, err
	}
	if _, err := s.deps.Replayer.Test(v.Context(), v.Caller, h.ID); err != nil {
		return frame.Answer{}, err
	}
	return frame.Answer{To: h.Here + "?done=tested"}, nil
}

func (s section) askRotate(v *frame.Visit) (frame.Answer, error) {
	h, err := s.read(v)
	return frame.Answer{Title: "Rotate secret", Template: "webhook-rotate.html", Data: h}, err
}

// secret is what the answer to a rotation shows, and no other page.
type secret struct {
	hook
	Secret string
	// Old is for how long the secret before signs too.
	Old string
}

// rotate answers the new secret itself: a redirect would need a place to keep it until it is asked for.
func (s section) rotate(v *frame.Visit) (frame.Answer, error) {
	h, err := s.read(v)
	if err != nil {
		return frame.Answer{}, err
	}
	_, made, err := s.deps.Changer.Rotate(v.Context(), v.Caller, h.ID)
	if err != nil {
		return frame.Answer{}, err
	}
	return frame.Answer{
		Title: "New secret", Template: "webhook-secret.html", Data: secret{h, made.Reveal(), strconv.Itoa(int(endpoint.OldSecret.Hours())) + " hours"},
	}, nil
}
