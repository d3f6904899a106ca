package mem0

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// waitBound is how long a call waits for the end of its work before it answers a receipt: the longest that the native
// long-poll waits, and less than any of the clients do.
const waitBound = 25 * time.Second

const (
	messagePending = "Memory processing has been queued. The event tells what becomes of it."
	messageEnded   = "This was accepted before and has ended. The event tells how."
	messageDone    = "Memories were processed."
	messageStored  = "Memories were stored."
)

// receipt is the answer to a write that goes on.
type receipt struct {
	Message string  `json:"message"`
	Status  string  `json:"status"`
	EventID string  `json:"event_id"`
	Error   *string `json:"error,omitempty"`
}

// outcome is the answer to a write that has ended. Its outcome tells nothing to keep from all of it known.
type outcome struct {
	receipt
	Outcome *string  `json:"outcome"`
	Results []result `json:"results"`
}

type result struct {
	ID     string     `json:"id"`
	Event  string     `json:"event"`
	Memory *string    `json:"memory"`
	Data   resultData `json:"data"`
	Error  *string    `json:"error,omitempty"`
}

type resultData struct {
	Memory *string `json:"memory"`
}

func resultsOf(results []memory.Result) []result {
	shown := make([]result, len(results))
	for i, r := range results {
		shown[i] = result{ID: r.RecordID.String(), Event: string(r.Change), Memory: r.Text, Data: resultData{r.Text}}
		if r.Error != "" {
			shown[i].Error = &r.Error
		}
	}
	return shown
}

// added is what became of an add: its receipt, and its results once it has finished well. Ended tells that the answer
// is no receipt for work that may still go on.
type added struct {
	receipt
	outcome  task.Outcome
	results  []memory.Result
	finished bool
	ended    bool
	replayed bool
}

// addV3 answers a receipt, or with infer false the results.
func (h handlers) addV3(ctx context.Context, call httpapi.GuestCall) (httpapi.GuestAnswer, error) {
	done, _, err := h.add(ctx, call)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	if !done.finished {
		return done.answer(done.receipt), nil
	}
	return done.answer(outcome{done.receipt, present(string(done.outcome)), resultsOf(done.results)}), nil
}

// addV1 answers a list, of one receipt or of the results; a body with output_format v1.1 has it within an object.
func (h handlers) addV1(ctx context.Context, call httpapi.GuestCall) (httpapi.GuestAnswer, error) {
	done, b, err := h.add(ctx, call)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	var list any = []receipt{done.receipt}
	if done.finished {
		list = resultsOf(done.results)
	}
	return done.answer(enveloped(b, list)), nil
}

// enveloped answers a list as it is, or within an object for output_format v1.1.
func enveloped(b body, list any) any {
	if format, err := b.text("output_format"); err != nil || format == nil || *format != "v1.1" {
		return list
	}
	return struct {
		Results   any   `json:"results"`
		Relations []any `json:"relations"`
	}{list, []any{}}
}

func (a added) answer(shape any) httpapi.GuestAnswer {
	reply := httpapi.GuestAnswer{Body: shape, Header: map[string]string{}}
	if !a.ended {
		reply.Status = http.StatusAccepted
	}
	if a.replayed {
		reply.Header["Idempotent-Replayed"] = "true"
	}
	return reply
}

func (h handlers) add(ctx context.Context, call httpapi.GuestCall) (added, body, error) {
	b, err := bodyOf(call)
	if err != nil {
		return added{}, nil, err
	}
	key, err := keyOf(call, b)
	if err != nil {
		return added{}, nil, err
	}
	async, err := b.flag("async_mode", true)
	if err != nil {
		return added{}, nil, err
	}
	cmd, err := commandOf(b)
	if err != nil {
		return added{}, nil, renamed(err)
	}
	if !cmd.Infer {
		stored, err := h.deps.Writer.Write(ctx, call.Caller, key, cmd)
		return added{
			receipt: receipt{Message: messageStored, Status: string(task.EventSucceeded), EventID: stored.EventID.String()},
			outcome: outcomeOf(stored.Results), results: stored.Results,
			finished: true, ended: true, replayed: stored.Replayed,
		}, b, err
	}
	if key == nil {
		random := command.RandomKey()
		key = &random
	}
	accepted, err := h.deps.Accepter.Accept(ctx, call.Caller, *key, cmd)
	if err != nil {
		return added{}, nil, err
	}
	done := added{receipt: receipt{
		Message: messagePending, Status: statusOf(accepted.Status), EventID: accepted.EventID.String(),
	}, replayed: accepted.Replayed}
	if accepted.Status.Terminal() {
		done.Message = messageEnded
	}
	if async {
		return done, b, nil
	}
	// The command is accepted: whatever the wait meets, the receipt is true.
	if event, err := call.Wait(ctx, accepted.EventID, waitBound); err == nil {
		done.settle(event)
	}
	return done, b, nil
}

// settle takes over how the event is.
func (a *added) settle(event recall.Event) {
	a.Status = statusOf(event.Status)
	switch event.Status {
	case task.EventSucceeded:
		a.Message, a.outcome, a.results, a.finished, a.ended = messageDone, event.Outcome, event.Results, true, true
	case task.EventFailed:
		said := task.Explain(event.ErrorCode).Message
		a.Message, a.Error, a.ended = said, &said, true
	case task.EventPending, task.EventRunning, task.EventRetrying:
	}
}

// outcomeOf is the outcome of a write with those results.
func outcomeOf(results []memory.Result) task.Outcome {
	for _, r := range results {
		if r.Change != memory.None {
			return task.Stored
		}
	}
	return task.Unchanged
}

// statusOf is an event's status in the words that the clients know.
func statusOf(status task.EventStatus) string {
	if status == task.EventRetrying {
		return string(task.EventRunning)
	}
	return string(status)
}

// commandOf reads an add.
func commandOf(b body) (command.Add, error) {
	if err := b.refuse("immutable", "structured_data_schema", "prompt_profile_id"); err != nil {
		return command.Add{}, err
	}
	messages, err := messagesOf(b["messages"])
	if err != nil {
		return command.Add{}, err
	}
	given := ids{}
	if err := given.take("", b); err != nil {
		return command.Add{}, err
	}
	if err := given.takeFilters(b["filters"]); err != nil {
		return command.Add{}, err
	}
	infer, err := b.flag("infer", true)
	if err != nil {
		return command.Add{}, err
	}
	ordered, err := b.flag("ordered", true)
	if err != nil {
		return command.Add{}, err
	}
	input := command.AddInput{
		Messages: messages, UserID: given[memory.FilterUser], AgentID: given[memory.FilterAgent],
		RunID: given[memory.FilterRun], AppID: given[memory.FilterApp], Infer: &infer, Ordered: &ordered, Metadata: b["metadata"],
	}
	if input.Instructions, err = instructionsOf(b); err != nil {
		return command.Add{}, err
	}
	if input.Categories, err = categoriesOf(b["custom_categories"]); err != nil {
		return command.Add{}, err
	}
	if input.EventDate, err = saidAt("", b, "timestamp", "observation_datetime", "observation_date"); err != nil {
		return command.Add{}, err
	}
	if input.ExpiresAt, err = expiryOf(b); err != nil {
		return command.Add{}, err
	}
	return command.NewAdd(input)
}

// takeFilters adds the ids of an add's filters, which hold nothing else.
func (s ids) takeFilters(raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	members, err := object("/filters", raw)
	if err != nil {
		return err
	}
	for name := range members {
		if _, known := scopeName(name); !known {
			return badFilter("user_id, agent_id, app_id and run_id only")
		}
	}
	return s.take("/filters", members)
}

// instructionsOf puts what is asked of the extraction into one text.
func instructionsOf(b body) (*string, error) {
	var lines []string
	for _, part := range []struct{ name, before string }{
		{"custom_instructions", ""},
		{"agent_custom_instructions", "About what the assistant says: "},
		{"includes", "Remember only: "},
		{"excludes", "Never remember: "},
	} {
		said, err := b.texts(part.name)
		if err != nil {
			return nil, err
		}
		if wish := strings.Join(said, ", "); !command.Blank(wish) {
			lines = append(lines, part.before+wish)
		}
	}
	if len(lines) == 0 {
		return nil, nil
	}
	wishes := strings.Join(lines, "\n")
	return &wishes, nil
}

// categoriesOf reads categories: a list of names, or of objects whose members are names with descriptions.
func categoriesOf(raw json.RawMessage) ([]memory.Category, error) {
	const pointer, rule = "/custom_categories", "a list of names, or of objects of a name and a description"
	if raw == nil {
		return nil, nil
	}
	var items []any
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, bad(pointer, rule)
	}
	var categories []memory.Category
	for _, item := range items {
		switch item := item.(type) {
		case string:
			categories = append(categories, memory.Category{Name: item})
		case map[string]any:
			for _, name := range sorted(item) {
				description, isText := item[name].(string)
				if !isText {
					return nil, bad(pointer, rule)
				}
				categories = append(categories, memory.Category{Name: name, Description: description})
			}
		default:
			return nil, bad(pointer, rule)
		}
	}
	return categories, nil
}

// saidAt answers when something was said, by the first of those members that says so.
func saidAt(pointer string, b body, names ...string) (*string, error) {
	for _, name := range names {
		if b[name] == nil {
			continue
		}
		at, ok := momentOf(plain(b[name]))
		if !ok {
			return nil, bad(pointer+"/"+name, momentRule)
		}
		return text(at.at), nil
	}
	return nil, nil
}

// renamed gives a fault of the command the name that the member has here.
func renamed(err error) error { return renamedIn("", err) }

// renamedIn does so for members of the object at pointer.
func renamedIn(pointer string, err error) error {
	f, isFault := errors.AsType[*fault.Error](err)
	if !isFault {
		return err
	}
	for _, member := range []struct{ there, here string }{
		{"/instructions", "/custom_instructions"},
		{"/event_date", "/timestamp"},
		{"/expires_at", "/expiration_date"},
		{"/categories", "/custom_categories"},
		{"/content", "/text"},
		{"/reason", "/feedback_reason"},
	} {
		if rest, ok := strings.CutPrefix(f.Pointer, pointer+member.there); ok {
			at := fault.At(f.Code, pointer+member.here+rest, f.Rule)
			at.Details = f.Details
			return at
		}
	}
	return err
}
