package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"
)

// addTool adds as an agent does: over MCP, and often waiting for what becomes of it.
func (a *actor) addTool(ctx context.Context, n int, c choice) bool {
	body, facts, raw := a.conversation(n, c)
	arguments := map[string]any{"messages": body["messages"], "idempotency_key": a.cfg.key(a.number, n)}
	if c.extra%3 > 0 {
		arguments["wait"] = c.extra % 3 // below what a try may take
	}
	cmd := &command{
		space: a.space, kind: kindInfer, user: a.user(c), facts: facts, raw: raw, tool: true,
		request: request{
			method: http.MethodPost, path: "/mcp", user: a.user(c), body: map[string]any{
				"jsonrpc": "2.0", "id": 1, "method": "tools/call",
				"params": map[string]any{"name": "add_memory", "arguments": arguments},
			},
		},
	}
	a.adds = append(a.adds, cmd)
	a.issue(ctx, cmd)
	return true
}

// unpacked turns the answer of a tool into what the same request of the API would be answered with.
func unpacked(got answer) (answer, error) {
	var message struct {
		Result *struct {
			IsError bool            `json:"isError"`
			Said    json.RawMessage `json:"structuredContent"`
		} `json:"result"`
	}
	if err := json.Unmarshal(got.body, &message); err != nil || message.Result == nil {
		return answer{}, errors.Join(errors.New("a tool's answer is no result"), err)
	}
	got.body = message.Result.Said
	if !message.Result.IsError {
		return got, nil
	}
	var said struct {
		Error struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	if err := json.Unmarshal(got.body, &said); err != nil {
		return answer{}, fmt.Errorf("read a tool's refusal: %w", err)
	}
	got.status = http.StatusBadRequest
	switch said.Error.Code {
	case "UNAVAILABLE", "ACCEPTANCE_UNKNOWN", "INTERNAL", "RATE_LIMITED", "TOO_MANY_PENDING", "IDEMPOTENCY_IN_PROGRESS":
		got.status = http.StatusServiceUnavailable
	}
	body, err := json.Marshal(map[string]string{"code": said.Error.Code})
	got.body = body
	return got, err
}

// opinion is what an actor has said of a record last.
type opinion struct {
	space   *space
	record  string
	verdict string // empty: taken back
	sure    bool   // nothing that was said before can still arrive
}

// judge says something of a record, or takes it back.
func (a *actor) judge(ctx context.Context, _ int, c choice) bool {
	of, id, found := a.record(c)
	if !found {
		return false
	}
	o := a.opinions[id]
	if o == nil {
		o = &opinion{space: of.space, record: id, sure: true}
		a.opinions[id] = o
		a.notes.addOpinion(o)
	}
	verdicts := []string{"POSITIVE", "NEGATIVE", "VERY_NEGATIVE", ""}
	verdict := verdicts[c.facts%len(verdicts)]
	body := map[string]any{"feedback": verdict}
	if verdict == "" {
		body["feedback"] = nil
	}
	got, err := a.client.send(ctx, a.space, request{method: http.MethodPut, path: "/v1/memories/" + id + "/feedback", body: body})
	switch {
	case err != nil || !got.sure:
		o.sure = false
	case got.ok():
		o.verdict = verdict
	case got.code() != "MEMORY_NOT_FOUND":
		a.notes.contradict("feedback was refused", fmt.Sprintf("%s: %d %s", id, got.status, got.code()))
	}
	return true
}

const feedbackSQL = `
SELECT m.id, coalesce(f.feedback, '')
  FROM memories m
  LEFT JOIN memory_feedback f ON f.memory_id = m.id
 WHERE m.deleted_at IS NULL`

// checkOpinions holds that the last word on every record that is still there is what is kept.
func (w *world) checkOpinions(ctx context.Context, n *notes, r *report) error {
	rows, err := w.sql.Query(ctx, feedbackSQL)
	if err != nil {
		return fmt.Errorf("read feedback: %w", err)
	}
	defer rows.Close()
	kept := map[string]string{}
	for rows.Next() {
		var id uuid.UUID
		var verdict string
		if err := rows.Scan(&id, &verdict); err != nil {
			return fmt.Errorf("read feedback: %w", err)
		}
		kept[id.String()] = verdict
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read feedback: %w", err)
	}
	for _, o := range n.opinions {
		verdict, there := kept[strings.TrimPrefix(o.record, "mem_")]
		if o.sure && there && verdict != o.verdict {
			r.find(lost, "the last word on a memory is not kept", "%s: %q, not %q", o.record, verdict, o.verdict)
		}
	}
	return nil
}
