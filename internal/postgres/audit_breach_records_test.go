package postgres_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// memoryOf is the id of a memory by its text.
func memoryOf(text string) string {
	return fmt.Sprintf(`(SELECT id FROM memories WHERE text = '%s' AND workspace_id = e('workspace'))`, text)
}

// recordBreaches are about what commits have written.
func recordBreaches() []breach {
	rain := memoryOf("rain")
	return []breach{
		{"NoPlan", `DELETE FROM plans WHERE task_id = e('stored')`, `e('stored')`, 1, []string{"plans: a commit has no plan"}},
		{
			"APlanOfNobody", `INSERT INTO plans (task_id, workspace_id, generation, created_at) VALUES (e('nobody'), e('workspace'), 1, now())`, `e('nobody')`, 1,
			[]string{"plans: a plan is of an event that there is not"},
		},
		{"APlanOfAnotherRun", `UPDATE plans SET generation = 2 WHERE task_id = e('stored')`, `e('stored')`, 1, []string{"plans: a plan was not committed by the last run of its event"}},
		{
			"APlanThatWasNotDone", `UPDATE plans SET body = convert_to(replace(convert_from(body, 'UTF8'), ` + memoryOf("planned") + `::text, e('nobody')::text), 'UTF8')
 WHERE task_id = e('committed')`, `e('committed')`, 1, []string{"plans: a commit did not do what its plan says"},
		},
		{
			"APlanThatWasDoneInPart", `UPDATE plans SET body = convert_to(jsonb_set(convert_from(body, 'UTF8')::jsonb, '{records,2}', '{"id": "x"}', true)::text, 'UTF8')
 WHERE task_id = e('committed')`, `e('committed')`, 1, []string{"plans: a commit did not do what its plan says"},
		},

		{
			"AResultOfNobody", `INSERT INTO task_results (task_id, ordinal, workspace_id, record_id, event) VALUES (e('nobody'), 0, e('workspace'), e('nobody'), 'NONE')`,
			`e('nobody')`, 1,
			[]string{"results: a result is of an event that there is not"},
		},
		{
			"AResultWithoutHistory", `DELETE FROM memory_history WHERE memory_id = ` + rain, `e('stored')`, 1,
			[]string{"results: a result has no history that says the same", "history: a memory has not one history row for each version"},
		},
		{
			"HistoryThatSaysOtherwise", `UPDATE memory_history SET event = 'UPDATE' WHERE memory_id = ` + rain, `e('stored')`, 1,
			[]string{"results: a result has no history that says the same"},
		},
		{
			"HistoryWithoutAResult", `DELETE FROM task_results WHERE task_id = e('removed')`, `e('removed')`, 1,
			[]string{"results: history is of no result of its event", "outcomes: the outcome of an event is not that of its results"},
		},
		{
			"AGapInTheResults", `UPDATE task_results SET ordinal = 7 WHERE task_id = e('stored') AND ordinal = 1;
UPDATE memory_history SET ordinal = 7 WHERE task_id = e('stored') AND ordinal = 1`, `e('stored')`, 1, []string{"results: the results of an event have a gap"},
		},
		{
			"ABatchThatEndedEarly", `UPDATE tasks SET counts = counts || '{"total": 9}' WHERE id = e('batch')`, `e('batch')`, 1,
			[]string{"results: a batch has not one result for each change"},
		},

		{
			"AMemoryOfNoResult", `UPDATE task_results SET event = 'NONE' WHERE task_id = e('written') AND ordinal = 2`, memoryOf("tres 0"), 1,
			[]string{"records: a memory is of no result of its event", "results: history is of no result of its event"},
		},
		{"AMemoryInAnotherLane", `UPDATE memories SET lane = sha256('x') WHERE id = ` + rain, rain, 1, []string{"records: a memory has not the lane or the time of its event"}},
		{"AMemoryOfAnotherTime", `UPDATE memories SET accepted_at = now() WHERE id = ` + rain, rain, 1, []string{"records: a memory has not the lane or the time of its event"}},
		{"AMemoryOfSomebodyElse", `UPDATE memories SET user_id = 'u2' WHERE id = ` + rain, rain, 1, []string{"records: a memory has not the scope of its event"}},

		{"AVersionWithoutHistory", `UPDATE memories SET version = version + 1 WHERE id = ` + rain, rain, 1, []string{"history: a memory has not one history row for each version"}},
		{"AnEditWithoutHistory", `UPDATE memories SET text = 'sun' WHERE id = ` + rain, rain, 1, []string{"history: a memory is not what its history says"}},
		{
			"AnEndThatDidNotHappen", `UPDATE memories SET deleted_at = NULL WHERE id = ` + memoryOf("two"), `e('removed')`, 1,
			[]string{
				"history: a memory is not what its history says", "terms: a live memory has no terms of its text",
				"vectors: a live memory has no vector of its text and waits for none",
			},
		},

		{"AnotherOutcome", `UPDATE tasks SET outcome = 'UNCHANGED' WHERE id = e('stored')`, `e('stored')`, 1, []string{"outcomes: the outcome of an event is not that of its results"}},

		{"NoTerms", `DELETE FROM memory_terms WHERE memory_id = ` + rain, rain, 1, []string{"terms: a live memory has no terms of its text"}},
		{"TermsOfAnotherText", `UPDATE memory_terms SET content_key = sha256('x') WHERE memory_id = ` + rain, rain, 1, []string{"terms: a live memory has no terms of its text"}},
		{"TermsOfTheFuture", `UPDATE memory_terms SET version = 9 WHERE memory_id = ` + rain, rain, 1, []string{"terms: terms are newer than their memory"}},
		{
			"TermsOfAMemoryThatIsGone", `INSERT INTO memory_terms (memory_id, workspace_id, version, content_key, terms, counts, length)
VALUES (e('nobody'), e('workspace'), 1, sha256('x'), '{}', '{}', 0)`, `e('nobody')`, 1, []string{"terms: terms are of a memory that is gone"},
		},
		{"NoVector", `DELETE FROM memory_vectors WHERE memory_id = ` + rain, rain, 1, []string{"vectors: a live memory has no vector of its text and waits for none"}},
		{"AVectorOfAnotherText", `UPDATE memory_vectors SET content_key = sha256('x') WHERE memory_id = ` + rain, rain, 1, []string{"vectors: a live memory has no vector of its text and waits for none"}},
		{"AVectorOfTheFuture", `UPDATE memory_vectors SET version = 9 WHERE memory_id = ` + rain, rain, 1, []string{"vectors: a vector is newer than its memory"}},
		{
			"AVectorOfAMemoryThatIsGone", `INSERT INTO memory_vectors (memory_id, workspace_id, version, content_key, model, vector, made_at)
VALUES (e('nobody'), e('workspace'), 1, sha256('x'), 'm', 'x', now())`, `e('nobody')`, 1, []string{"vectors: a vector is of a memory that is gone"},
		},
		{"ASkippedVector", `UPDATE memory_vectors SET skipped = true WHERE memory_id = ` + rain, rain, 1, []string{"vectors: a vector is missing and not skipped, or the other way round"}},

		{"AMemoryOfAFailure", ghost("failed"), `e('failed')`, 1, append([]string{"failed: an event without a commit has a memory"}, ghostFinds()...)},
		{
			"HistoryOfAFailure", `INSERT INTO memory_history (id, workspace_id, memory_id, task_id, ordinal, event, version, at)
VALUES (e('nobody'), e('workspace'), e('nobody'), e('failed'), 0, 'ADD', 1, now())`, `e('failed')`, 1,
			[]string{"failed: an event without a commit has history", "results: history is of no result of its event"},
		},
		{
			"AResultOfAFailure", `INSERT INTO task_results (task_id, ordinal, workspace_id, record_id, event) VALUES (e('failed'), 0, e('workspace'), e('nobody'), 'NONE')`,
			`e('failed')`, 1,
			[]string{"failed: an event without a commit has results"},
		},

		{"SupersededByWhatWasSaidBefore", `UPDATE memories SET said_at = valid_to WHERE id = ` + memoryOf("tea"), `e('replacing')`, 1, []string{"supersede: a memory was superseded by what was not said later"}},
		{"SupersededByNothing", `UPDATE memories SET valid_to = now() WHERE id = ` + rain, rain, 1, []string{"supersede: a memory is superseded by nothing, or valid beside what superseded it"}},
	}
}

// edgeBreaches are about what rows say of rows of other tables.
func edgeBreaches() []breach {
	rain := memoryOf("rain")
	moved := func(table, where string) string {
		return `UPDATE ` + table + ` SET workspace_id = e('other workspace') WHERE ` + where
	}
	const differ = " are of different workspaces"
	return []breach{
		{"AKeyOfAnotherWorkspace", moved("idempotency_keys", `task_id = e('stored')`), `e('stored')`, 1, []string{"tenancy: a key and its event" + differ, "keys: an event has no key"}},
		{"ARunOfAnotherWorkspace", moved("task_runs", `task_id = e('stored')`), `e('stored')`, 1, []string{"tenancy: a run and its event" + differ, "tenancy: a closing and its run" + differ}},
		{"AClosingOfAnotherWorkspace", moved("credit_closings", `task_id = e('failed')`), `e('failed')`, 1, []string{"tenancy: a closing and its run" + differ}},
		{"APlanOfAnotherWorkspace", moved("plans", `task_id = e('stored')`), `e('stored')`, 1, []string{"tenancy: a plan and its event" + differ}},
		{
			"AResultOfAnotherWorkspace", moved("task_results", `task_id = e('removed')`), `e('removed')`, 1,
			[]string{"tenancy: a result and its event" + differ, "results: a result has no history that says the same"},
		},
		{"AnAttemptOfAnotherWorkspace", moved("task_attempts", `task_id = e('stored')`), `e('stored')`, 1, []string{"tenancy: an attempt and its event" + differ}},
		{"APartOfAnotherWorkspace", moved("task_parts", `part = 0 AND task_id = e('export')`), `e('export')`, 1, []string{"tenancy: a part and its event" + differ}},
		{
			"AMemoryOfAnotherWorkspace", moved("memories", `id = `+rain), `e('stored')`, 1,
			[]string{
				"tenancy: a memory and its event" + differ, "tenancy: terms and their memory" + differ, "tenancy: a vector and its memory" + differ,
				"history: a memory has not one history row for each version", "leftovers: history says what a memory said that is gone",
			},
		},
		{
			"HistoryOfAnotherWorkspace", moved("memory_history", `memory_id = `+rain), `e('stored')`, 1,
			[]string{
				"tenancy: history and its event" + differ, "results: a result has no history that says the same",
				"history: a memory has not one history row for each version", "leftovers: history says what a memory said that is gone",
			},
		},
		{"TermsOfAnotherWorkspace", moved("memory_terms", `memory_id = `+rain), rain, 1, []string{"tenancy: terms and their memory" + differ}},
		{"AVectorOfAnotherWorkspace", moved("memory_vectors", `memory_id = `+rain), rain, 1, []string{"tenancy: a vector and its memory" + differ}},
		{"FeedbackOfAnotherWorkspace", moved("memory_feedback", `workspace_id = e('workspace')`), memoryOf("uno"), 1, []string{"tenancy: feedback and its memory" + differ}},
		{"AnItemOfAnotherWorkspace", moved("items", `task_id = e('landed')`), `e('landed')`, 1, []string{"tenancy: an item and its event" + differ}},
		{"AFenceOfAnotherWorkspace", moved("erasures", `task_id = e('fence')`), `e('fence')`, 1, []string{"tenancy: a fence and its erase" + differ}},
		{
			"ADeliveryOfAnotherWorkspace", moved("webhook_deliveries", `true`), `e('delivery')`, 1,
			[]string{"tenancy: a delivery and its event" + differ, "tenancy: a delivery and its webhook" + differ},
		},
		{"AWebhookOfAnotherWorkspace", moved("webhooks", `true`), `e('delivery')`, 1, []string{"tenancy: a delivery and its webhook" + differ}},

		{"ADeliveryWithoutEvent", `UPDATE webhook_deliveries SET task_id = e('nobody')`, `e('nobody')`, 1, []string{"webhooks: a delivery has no event"}},
		{"ADeliveryWithoutWebhook", `UPDATE webhook_deliveries SET webhook_id = e('nobody')`, `e('delivery')`, 1, []string{"webhooks: a delivery has no webhook"}},
		{"AWebhookOfTheFuture", `UPDATE webhooks SET feed_xid = '9000000000000'::xid8`, `e('workspace')`, 1, []string{"webhooks: a webhook is ahead of what has happened"}},

		{"ARevisionOfTheFuture", `UPDATE items SET landed_revision = 9 WHERE task_id = e('landed')`, `e('landed')`, 1, []string{"items: an item landed a revision that it has not reached"}},
		{"AnotherRevision", `UPDATE items SET revision = 5 WHERE task_id = e('landed')`, `e('landed')`, 1, []string{"items: an item points to an event that is not of its revision"}},
		{"AnOldRevisionThatWaits", `UPDATE items SET task_id = e('nobody') WHERE task_id = e('queued')`, `e('queued')`, 1, []string{"items: an event of an item waits to which its item does not point"}},
		{"AMemoryOfAnotherItem", `UPDATE memories SET item_id = 'z' WHERE id = ` + memoryOf("edited fact"), memoryOf("edited fact"), 1, []string{"items: a memory is of an item with another id or account"}},
	}
}

// waysToBeWrong reads from the source which findings the checks can have, as "check: words".
func waysToBeWrong(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("audit_*.go")
	if err != nil {
		t.Fatal(err)
	}
	query := regexp.MustCompile(`^const audit([A-Z][a-z]+)SQL = `)
	words := regexp.MustCompile(`'([a-z]+(?: [a-z,]+){3,})'`)
	var all []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		check := ""
		for line := range strings.Lines(string(source)) {
			if found := query.FindStringSubmatch(line); found != nil {
				check = strings.ToLower(found[1])
			}
			for _, found := range words.FindAllStringSubmatch(line, -1) {
				if !strings.HasPrefix(line, "//") {
					all = append(all, check+": "+found[1])
				}
			}
		}
	}
	if len(all) < 80 { // the source is written otherwise than is read here
		t.Fatalf("only %d ways: %v", len(all), all)
	}
	return all
}
