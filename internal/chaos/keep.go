package chaos

import (
	"context"
	"fmt"
	"net/http"
)

func (a *actor) account() string { return fmt.Sprintf("account-%d", a.number) }

func (a *actor) twin(ctx context.Context, route string, body any) (answer, error) {
	return a.client.send(ctx, a.space, request{
		method: http.MethodPost, path: "/v1/memory/" + route, account: a.account(), body: body,
	})
}

// keepItem sends a new item.
func (a *actor) keepItem(ctx context.Context, n int, _ choice) bool {
	it := &item{space: a.space, account: a.account(), id: fmt.Sprintf("item-%d", n), sure: true}
	a.items = append(a.items, it)
	a.notes.addItem(it)
	a.sendItem(ctx, it, n)
	return true
}

// editItem sends other content for an item, or the same again.
func (a *actor) editItem(ctx context.Context, n int, c choice) bool {
	it, found := pick(a.items, c.target)
	if found {
		a.sendItem(ctx, it, n)
	}
	return found
}

// sendItem sends a revision; a second send of the same words changes nothing.
func (a *actor) sendItem(ctx context.Context, it *item, n int) {
	word := a.cfg.canary(canaryFact, a.number, n, 0)
	it.texts = append(it.texts, word)
	body := map[string]any{"items": []map[string]any{{"id": it.id, "text": factMark + word + " is an item"}}}
	it.kept = false
	for range 2 {
		got, err := a.twin(ctx, "add", body)
		if err != nil || !got.sure {
			it.sure = false
		}
		if err == nil && got.ok() {
			it.kept, it.forgotten = true, false
		}
	}
}

func (a *actor) forgetItem(ctx context.Context, _ int, c choice) bool {
	it, found := pick(a.items, c.target)
	if !found {
		return false
	}
	got, err := a.twin(ctx, "forget", map[string]any{"ids": []string{it.id}})
	if err != nil || !got.sure {
		it.sure = false
	}
	if err == nil && got.ok() {
		it.forgotten = true
	}
	return true
}
