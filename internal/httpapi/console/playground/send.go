package playground

import (
	"net/url"
	"strings"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/frame"
)

// send accepts the message under the key that the form was made with, and leads to its event. What is refused comes back
// with what was typed, so that it can be put right.
func (s section) send(v *frame.Visit) (frame.Answer, error) {
	form := v.Request.PostForm
	user, infer := form.Get("user"), form.Get("infer") != ""
	text := strings.ReplaceAll(form.Get("text"), "\r\n", "\n") // which is how forms write the end of a line
	event, err := s.accept(v, form.Get("key"), user, text, infer)
	if err == nil {
		to := url.Values{"user": {strings.TrimSpace(user)}, "event": {frame.EventID(event)}, "key": {form.Get("key")}}
		if !infer {
			to.Set("as", "is")
		}
		return frame.Answer{To: v.Link("/playground") + "?" + to.Encode()}, nil
	}
	told := httpapi.Refusal(v.Context(), err)
	if told.Code == fault.InternalError {
		return frame.Answer{}, err
	}
	p, err := s.page(v, user)
	if err != nil {
		return frame.Answer{}, err
	}
	p.Text, p.Infer, p.Problem = text, infer, frame.Told(told)
	if _, err := command.ParseKey([]string{form.Get("key")}); err == nil && told.Code != fault.IdempotencyConflict {
		p.Key = form.Get("key") // the same attempt: nobody knows of an acceptance whose answer was lost
	}
	answer := answerOf(p)
	answer.Status = httpapi.StatusOf(told.Code)
	return answer, nil
}

func (s section) accept(v *frame.Visit, keyText, user, text string, infer bool) (uuid.UUID, error) {
	key, err := command.ParseKey([]string{keyText})
	if err != nil {
		return uuid.Nil, err
	}
	add, err := command.NewAdd(command.AddInput{Content: &text, UserID: &user, Infer: &infer})
	if err != nil {
		return uuid.Nil, err
	}
	if !add.Infer {
		stored, err := s.deps.Writer.Write(v.Context(), v.Caller, key, add)
		return stored.EventID, err
	}
	receipt, err := s.deps.Accepter.Accept(v.Context(), v.Caller, *key, add)
	return receipt.EventID, err
}
