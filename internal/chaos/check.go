package chaos

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const tasksSQL = `
SELECT id, workspace_id, kind, status, outcome, generation, claims, erased,
       coalesce(extract(epoch FROM completed_at - accepted_at), -1)::float8
  FROM all_tasks`

// tasks reads every task.
func (w *world) tasks(ctx context.Context) (map[uuid.UUID]row, error) {
	rows, err := w.sql.Query(ctx, tasksSQL)
	if err != nil {
		return nil, fmt.Errorf("read tasks: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (row, error) {
		var x row
		var seconds float64
		err := r.Scan(&x.id, &x.space, &x.kind, &x.status, &x.outcome, &x.generation, &x.claims, &x.erased, &seconds)
		x.took = time.Duration(seconds * float64(time.Second))
		return x, err
	})
	if err != nil {
		return nil, fmt.Errorf("read tasks: %w", err)
	}
	found := make(map[uuid.UUID]row, len(list))
	for _, x := range list {
		found[x.id] = x
	}
	return found, nil
}

func (w *world) checkContradictions(_ context.Context, n *notes, r *report) error {
	for _, c := range n.contradictions {
		column := lost
		if c.check == "one key has two receipts" || c.check == "a taken key took another command" || c.check == "nonsense was accepted" {
			column = duplicated
		}
		r.find(column, c.check, "%s", c.detail)
	}
	return nil
}

const recordsSQL = `SELECT task_id, id, text FROM memories`

// record is a memory as the database has it.
type record struct {
	task uuid.UUID
	id   uuid.UUID
	text string
}

func (w *world) records(ctx context.Context) (map[uuid.UUID][]record, error) {
	rows, err := w.sql.Query(ctx, recordsSQL)
	if err != nil {
		return nil, fmt.Errorf("read records: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (record, error) {
		var x record
		err := r.Scan(&x.task, &x.id, &x.text)
		return x, err
	})
	found := map[uuid.UUID][]record{}
	for _, x := range list {
		found[x.task] = append(found[x.task], x)
	}
	if err != nil {
		return nil, fmt.Errorf("read records: %w", err)
	}
	return found, nil
}

// storySQL tells when the claims of a task began and ended, in seconds from its acceptance, and how.
const storySQL = `
SELECT coalesce(string_agg(format('%s %s-%s s', a.ending, round(extract(epoch FROM a.claimed_at - t.accepted_at), 1),
                                  round(extract(epoch FROM a.ended_at - t.accepted_at), 1)), ', ' ORDER BY a.claim), 'never claimed')
  FROM task_attempts a JOIN all_tasks t ON t.id = a.task_id WHERE a.task_id = $1`

// checkCommands holds every receipt against its task, every task against its records, and what the API says against both.
func (w *world) checkCommands(ctx context.Context, n *notes, r *report) error {
	tasks, err := w.tasks(ctx)
	if err != nil {
		return err
	}
	records, err := w.records(ctx)
	if err != nil {
		return err
	}
	r.tasks = len(tasks)
	reader := w.client("reader", n)
	byEvent := map[uuid.UUID]*command{}
	for _, c := range n.accepted() {
		r.accepted++
		if other := byEvent[c.event]; other != nil {
			r.find(duplicated, "one receipt for two commands", "%s", c.event)
		}
		byEvent[c.event] = c
		x, there := tasks[c.event]
		switch {
		case !there:
			r.find(lost, "no task of a receipt", "%s %s", c.kind, c.event)
			continue
		case x.space != c.space.id || x.kind != c.kind:
			r.find(lost, "a receipt of something else", "%s %s is a %s", c.kind, c.event, x.kind)
		case x.status != "succeeded" && x.status != "failed":
			r.find(stuck, "a receipt that doesn't end", "%s %s is %s", c.kind, c.event, x.status)
			continue
		}
		if x.generation == 1 && x.took > r.slowest.took {
			r.slowest = x
		}
		w.checkOutcome(c, x, records[c.event], r)
		view, status, err := reader.event(ctx, c.space, c.event)
		if err != nil {
			return err
		}
		if said := map[string]string{"SUCCEEDED": "succeeded", "FAILED": "failed"}[view.Status]; status != 200 || said != x.status {
			r.find(lost, "an event tells something else", "%s: %d %q, the task is %s", c.event, status, view.Status, x.status)
		}
		if x.status == "failed" && len(view.Results) > 0 {
			r.find(lost, "a failed event shows results", "%s", c.event)
		}
	}
	if err := w.sql.QueryRow(ctx, storySQL, r.slowest.id).Scan(&r.story); err != nil {
		return fmt.Errorf("read attempts: %w", err)
	}
	return w.checkRefused(ctx, n, r)
}

// checkOutcome holds a task's end against what the command must have done.
func (w *world) checkOutcome(c *command, x row, records []record, r *report) {
	switch {
	case x.status == "failed" && len(records) > 0:
		r.find(lost, "a failed command has records", "%s has %d", c.event, len(records))
	case c.cancelled && x.status == "succeeded" && x.generation == 1 && !c.retried:
		r.find(lost, "a cancelled command succeeded", "%s", c.event)
	case x.status != "succeeded" || c.late || (c.kind != kindInfer && c.kind != kindAdd):
	case c.erased || x.erased:
		if len(records) > 0 {
			r.find(leaked, "an erased command has records", "%s has %d", c.event, len(records))
		}
	case len(records) < len(c.facts):
		r.find(lost, "records are missing", "%s %s: %d of %d", c.kind, c.event, len(records), len(c.facts))
	case len(records) > len(c.facts):
		r.find(duplicated, "records are there twice", "%s %s: %d for %d", c.kind, c.event, len(records), len(c.facts))
	case c.kind == kindInfer && len(answersIn(records)) > 1:
		r.find(duplicated, "records of two answers", "%s: answers %v", c.event, answersIn(records))
	}
}

// answersIn returns which of the model's answers the records were made from.
func answersIn(records []record) []string {
	var answers []string
	for _, x := range records {
		_, answer, _ := strings.Cut(x.text, answerMark)
		answer, _, _ = strings.Cut(answer, " ")
		if !slices.Contains(answers, answer) {
			answers = append(answers, answer)
		}
	}
	return answers
}

const keysSQL = `SELECT count(*) FROM idempotency_keys WHERE workspace_id = $1 AND key_hash = $2`

// checkRefused holds that a refusal consumed no key.
func (w *world) checkRefused(ctx context.Context, n *notes, r *report) error {
	for _, c := range n.commands {
		if c.event != uuid.Nil || c.refusal == "" || !c.clean || c.tool {
			continue
		}
		var keys int
		if err := w.sql.QueryRow(ctx, keysSQL, c.space.id, keyHash(c.request.key)).Scan(&keys); err != nil {
			return fmt.Errorf("read keys: %w", err)
		}
		if keys > 0 {
			r.find(duplicated, "a refused command kept its key", "%s %s", c.kind, c.refusal)
		}
	}
	return nil
}
