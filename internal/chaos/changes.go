package chaos

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/google/uuid"
)

func (a *actor) verbatim(ctx context.Context, n int, c choice) bool {
	facts, _ := a.words(n, 1+c.facts, 0)
	messages := make([]map[string]string, len(facts))
	for i, word := range facts {
		messages[i] = map[string]string{"role": "user", "content": "as it is, " + word}
	}
	cmd := &command{
		space: a.space, kind: kindAdd, user: a.user(c), facts: facts,
		request: request{
			method: http.MethodPost, path: "/v1/memories", key: a.cfg.key(a.number, n),
			body: map[string]any{"user_id": a.user(c), "messages": messages, "infer": false},
		},
	}
	a.verbatims = append(a.verbatims, cmd)
	a.issue(ctx, cmd)
	return true
}

// record picks a record that a verbatim add of this actor stored.
func (a *actor) record(c choice) (*command, string, bool) {
	cmd, found := pick(a.verbatims, c.target)
	if !found || len(cmd.records) == 0 {
		return nil, "", false
	}
	return cmd, cmd.records[c.extra%len(cmd.records)], true
}

func (a *actor) put(ctx context.Context, n int, c choice) bool {
	of, id, found := a.record(c)
	if !found {
		return false
	}
	facts, _ := a.words(n, 1, 0)
	a.issue(ctx, &command{
		space: a.space, kind: kindUpdate, user: of.user, facts: facts,
		request: request{
			method: http.MethodPut, path: "/v1/memories/" + id, key: a.cfg.key(a.number, n),
			body: map[string]any{"content": "put right, " + facts[0]},
		},
	})
	return true
}

func (a *actor) remove(ctx context.Context, n int, c choice) bool {
	of, id, found := a.record(c)
	if found {
		a.issue(ctx, &command{
			space: a.space, kind: kindDelete, user: of.user,
			request: request{method: http.MethodDelete, path: "/v1/memories/" + id, key: a.cfg.key(a.number, n)},
		})
	}
	return found
}

func (a *actor) batchPut(ctx context.Context, n int, c choice) bool {
	of, _, found := a.record(c)
	if !found {
		return false
	}
	facts, _ := a.words(n, len(of.records), 0)
	changes := make([]map[string]any, len(of.records))
	for i, id := range of.records {
		changes[i] = map[string]any{"id": id, "content": "one of many, " + facts[i]}
	}
	a.issue(ctx, &command{
		space: a.space, kind: kindBatchUpdate, user: of.user, facts: facts,
		request: request{
			method: http.MethodPut, path: "/v1/memories/batch", key: a.cfg.key(a.number, n),
			body: map[string]any{"memories": changes},
		},
	})
	return true
}

func (a *actor) batchDelete(ctx context.Context, n int, c choice) bool {
	of, _, found := a.record(c)
	if found {
		a.issue(ctx, &command{
			space: a.space, kind: kindBatchDelete, user: of.user,
			request: request{
				method: http.MethodDelete, path: "/v1/memories/batch", key: a.cfg.key(a.number, n),
				body: map[string]any{"ids": of.records},
			},
		})
	}
	return found
}

// cancel cancels one of the last adds, which may still be under way.
func (a *actor) cancel(ctx context.Context, _ int, c choice) bool {
	cmd, found := pick(a.adds[max(0, len(a.adds)-3):], c.target)
	if !found || cmd.event == uuid.Nil {
		return false
	}
	got, err := a.client.send(ctx, a.space, request{method: http.MethodPost, path: "/v1/events/" + cmd.event.String() + "/cancel"})
	switch {
	case err != nil:
		return true
	case got.ok():
		cmd.cancelled = true
	case got.code() != "NOT_CANCELLABLE":
		a.notes.contradict("a cancel was refused", fmt.Sprintf("%s: %d %s", cmd.event, got.status, got.code()))
	}
	return true
}

// retry looks for an add that has failed, from a place of the plan on, and authorises it anew.
func (a *actor) retry(ctx context.Context, n int, c choice) bool {
	const looks = 6 // enough to find one of those that the model declined
	for i := range min(looks, len(a.adds)) {
		cmd := a.adds[(c.target+i)%len(a.adds)]
		if cmd.event == uuid.Nil || cmd.erased {
			continue
		}
		view, _, err := a.client.event(ctx, a.space, cmd.event)
		if err != nil || view.Status != "FAILED" {
			continue
		}
		again := request{method: http.MethodPost, path: "/v1/events/" + cmd.event.String() + "/retry"}
		if c.extra%2 == 0 {
			again.key = a.cfg.key(a.number, n)
		} else {
			again.body = map[string]any{"generation": view.Generation}
		}
		for range 1 + c.extra%3 { // the same authorisation again is the same run
			cmd.cancelled = false // whatever the answer, the run may have begun
			got, err := a.client.send(ctx, a.space, again)
			if err == nil && got.ok() {
				cmd.retried = true
			}
		}
		return true
	}
	return false
}

// burst sends adds that will be under way when what follows comes by.
func (a *actor) burst(ctx context.Context, n int, c choice) {
	const adds = 3 // as many as there are workers
	for i := range adds {
		fact, raw := a.cfg.canary(canaryFact, a.number, n, i), a.cfg.canary(canaryRaw, a.number, n, i)
		cmd := &command{
			space: a.space, kind: kindInfer, user: a.user(c), facts: []string{fact}, raw: []string{raw},
			request: request{
				method: http.MethodPost, path: "/v1/memories", key: fmt.Sprintf("%s-%d", a.cfg.key(a.number, n), i),
				body: map[string]any{
					"user_id": a.user(c), "ordered": i%2 == 0, "content": raw + " by the way\n" + factMark + fact + " is so",
				},
			},
		}
		a.adds = append(a.adds, cmd)
		a.issue(ctx, cmd)
	}
}

// erase removes everything of a user. Whatever has its receipt by now must be nowhere afterwards.
func (a *actor) erase(ctx context.Context, n int, c choice) bool {
	user := a.user(c)
	a.burst(ctx, n, c)
	var covered []*command
	for _, cmd := range a.all {
		if cmd.user == user && cmd.event != uuid.Nil {
			covered = append(covered, cmd)
		} else if cmd.user == user {
			cmd.late = true
		}
	}
	cmd := &command{
		space: a.space, kind: kindErase, user: user,
		request: request{
			method: http.MethodDelete, path: "/v1/memories?user_id=" + url.QueryEscape(user), key: a.cfg.key(a.number, n),
		},
	}
	a.issue(ctx, cmd)
	if cmd.event == uuid.Nil {
		return true // it may still take effect: nothing is known of what it covers
	}
	for _, one := range covered {
		one.erased = one.erased || !one.late
	}
	return true
}
