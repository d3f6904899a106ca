package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/endpoint"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/operator"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// asked calls a method for the workspace with ids of the filled one, and answers what it said.
type asked func(ctx context.Context, db *DB, workspace uuid.UUID) (any, error)

// said is what a method says that hands out rows one by one.
func said(rows int) string { return strings.Repeat("canary", rows) }

// readMethods are those by which the API reads. Each finds the filled workspace's row when it asks as that workspace.
func readMethods() map[string]asked {
	kinds := []task.Kind{task.Infer}
	id, scope := filledID, memory.Scope{UserID: "canary"}
	bulk := write.BulkChoice{Act: write.BulkRetry, Since: time.Now().Add(-time.Hour), Until: time.Now().Add(time.Hour)}
	return map[string]asked{
		"Memory": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) { return db.Memory(ctx, ws, id) },
		"Memories": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			return db.Memories(ctx, ws, recall.MemoryQuery{Scope: scope, Limit: 9})
		},
		"KeptMemory": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) { return db.KeptMemory(ctx, ws, id) },
		"BrowseMemories": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			return db.BrowseMemories(ctx, ws, recall.BrowseQuery{PageQuery: recall.PageQuery{Page: 1, Size: 9}, Scope: scope})
		},
		"BrowseEntities": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			return db.BrowseEntities(ctx, ws, recall.PageQuery{Page: 1, Size: 9})
		},
		"Entities": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			return db.Entities(ctx, ws, recall.EntityQuery{Type: recall.User, Limit: 9})
		},
		"Entity": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			return db.Entity(ctx, ws, recall.User, "canary")
		},
		"History": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			return db.History(ctx, ws, recall.HistoryQuery{Memory: id, Limit: 9})
		},
		"Searched": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			refs, err := db.Searched(ctx, ws, recall.Searched{Scope: scope, Limit: 9})
			return said(len(refs)), err
		},
		"Terms": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			rows := 0
			err := db.Terms(ctx, ws, []uuid.UUID{id}, func(recall.Ref, memory.Terms) { rows++ })
			return said(rows), err
		},
		"Vectors": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			rows := 0
			err := db.Vectors(ctx, ws, []uuid.UUID{id}, "canary", func(recall.Ref, model.Vector) { rows++ })
			return said(rows), err
		},
		"LiveRecords": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			return db.LiveRecords(ctx, ws, recall.Searched{Scope: scope, Limit: 9}, []uuid.UUID{id})
		},
		"Balance": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			b, err := db.Balance(ctx, ws)
			return said(int(b.Available) / 4711), err
		},
		"Entries": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) { return db.Entries(ctx, ws, nil, 9) },
		"Feed": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			page, err := db.Feed(ctx, ws, &task.FeedPlace{}, 9)
			return said(len(page.Entries)), err
		},
		"Items": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			return db.Items(ctx, ws, recall.ItemQuery{Account: "canary", Limit: 9})
		},
		"ItemsByKey": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			return db.ItemsByKey(ctx, ws, []command.ItemKey{command.ItemKey(sum("x"))})
		},
		"TaskOfItem": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			_, err := db.TaskOfItem(ctx, ws, "canary")
			return saidOf(err), nil
		},
		"ExportParts": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			n, err := db.ExportParts(ctx, ws, exportID)
			return said(n), err
		},
		"ExportPart": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			body, _, err := db.ExportPart(ctx, ws, exportID, 0)
			return string(body), err
		},
		"MemoryExport": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			filter, err := db.MemoryExport(ctx, ws, id)
			if filter != nil {
				return said(1), err
			}
			return nil, err
		},
		"Matching": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			filter, err := memory.ParseFilter([]byte(`{"user_id": "canary"}`))
			if err != nil {
				return nil, err
			}
			return db.Matching(ctx, ws, *filter, nil, 9)
		},
		"Life": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			life, err := db.Life(ctx, ws, id)
			return said(len(life.Attempts)), err
		},
		"Pulse": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			pulse, err := db.Pulse(ctx, ws)
			return said(pulse.Totals().Succeeded), err
		},
		"CalledWorkspace": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) { return db.CalledWorkspace(ctx, ws) },
		"BulkWorkspace": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			w, _, err := db.BulkWorkspace(ctx, ws)
			return w, err
		},
		"CountBulk": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			return db.CountBulk(ctx, ws, bulk, nil, 9)
		},
		"FindBulk": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			found, err := db.FindBulk(ctx, ws, bulk, nil, 9, 9)
			return said(len(found.Events)), err
		},
		"ListKeys":  func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) { return db.ListKeys(ctx, ws) },
		"Endpoint":  func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) { return db.Endpoint(ctx, ws, id) },
		"Endpoints": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) { return db.Endpoints(ctx, ws) },
		"Deliveries": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			page, err := db.Deliveries(ctx, ws, id, nil, 9)
			return said(len(page.Deliveries)), err
		},
		"Acts": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			return db.Acts(ctx, operator.ActQuery{Workspace: ws, Limit: 9})
		},
		"EventReader.Event": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			return db.EventReader(5).Event(ctx, ws, id)
		},
		"EventReader.EventByKey": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			event, _, err := db.EventReader(5).EventByKey(ctx, ws, [32]byte(sum("x")))
			return event, err
		},
		"EventReader.Events": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			return db.EventReader(5).Events(ctx, ws, recall.EventQuery{Kinds: kinds, Limit: 9})
		},
		"EventReader.FoundEvents": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			return db.EventReader(5).FoundEvents(ctx, ws, recall.EventFilter{Kinds: kinds, By: recall.User, Value: "canary", Limit: 9})
		},
		"EventReader.EventsByID": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			events, err := db.EventReader(5).EventsByID(ctx, ws, []uuid.UUID{id})
			return said(len(events)), err
		},
		"EventReader.BrowseEvents": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			return db.EventReader(5).BrowseEvents(ctx, ws, kinds, recall.PageQuery{Page: 1, Size: 9})
		},
		"EventReader.Feed": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			page, err := db.EventReader(5).Feed(ctx, ws, &task.FeedPlace{}, 9)
			return said(len(page.Entries)), err
		},
	}
}

func saidOf(err error) string {
	if err == nil {
		return said(1)
	}
	return ""
}

// changeMethods are those by which the API changes something. They are called for the other workspace alone.
func changeMethods() map[string]asked {
	id := filledID
	claim := write.Claim{KeyHash: [32]byte(sum("x")), Fingerprint: [32]byte(sum("y")), FingerprintVersion: 1}
	text, generation := "changed", 1
	plan := memory.Plan{Records: []memory.Planned{{ID: uuid.New(), Text: "own"}}}
	own := write.Acceptance{TaskID: uuid.New(), Kind: task.Infer, Claim: claim, Payload: []byte("x"), Format: 1, Priority: "bulk"}
	return map[string]asked{
		"Accept": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			own.WorkspaceID = ws
			return db.Accept(ctx, []write.Acceptance{own}), nil
		},
		"AcceptImport": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			item := own
			item.TaskID, item.WorkspaceID, item.Kind, item.Claim.KeyHash = uuid.New(), ws, task.Import, [32]byte(sum("import"))
			return db.AcceptImport(ctx, item, func(func([]byte) error) error { return nil }), nil
		},
		"WriteNow": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			own := claim
			own.KeyHash = [32]byte(sum("now"))
			answer, _, err := db.WriteNow(ctx, write.Written{TaskID: uuid.New(), WorkspaceID: ws, Claim: own, Plan: plan, Scope: memory.Scope{UserID: "canary"}, Policy: []byte("{}")})
			return len(answer.Results), err
		},
		"Change": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			own := claim
			own.KeyHash = [32]byte(sum("change"))
			answer, _, err := db.Change(ctx, write.Changing{TaskID: uuid.New(), WorkspaceID: ws, Claim: own, Change: command.Change{ID: id, Content: &text}})
			return answer, err
		},
		"Correct": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			own := claim
			own.KeyHash = [32]byte(sum("correct"))
			return db.Correct(ctx, write.Correction{TaskID: uuid.New(), WorkspaceID: ws, Account: "canary", Claim: own, Retracts: id})
		},
		"KeepItems": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			return db.KeepItems(ctx, write.ItemsAsk{WorkspaceID: ws, Account: "canary", Format: 1})
		},
		"ForgetItems": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			return db.ForgetItems(ctx, write.ForgetAsk{WorkspaceID: ws, Account: "canary", Keys: []command.ItemKey{command.ItemKey(sum("x"))}, Limit: 9})
		},
		"ForgetRest": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) { return nil, db.ForgetRest(ctx, ws, true) },
		"GiveFeedback": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			return db.GiveFeedback(ctx, ws, command.Feedback{Memory: id})
		},
		"DefineMemoryExport": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			filter, err := memory.ParseFilter([]byte(`{"user_id": "x"}`))
			if err != nil {
				return nil, err
			}
			return nil, db.DefineMemoryExport(ctx, ws, id, *filter)
		},
		"HasMemoryExport": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			return db.HasMemoryExport(ctx, ws, memory.Filter{})
		},
		"Cancel": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) { return db.Cancel(ctx, ws, id) },
		"Retry": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			_, _, err := db.Retry(ctx, write.RetryAsk{TaskID: id, WorkspaceID: ws, Generation: &generation, Prices: credit.DefaultPrices()})
			return nil, err
		},
		"BeginErase": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			own := claim
			own.KeyHash = [32]byte(sum("erase"))
			answer, _, err := db.BeginErase(ctx, write.Erasing{TaskID: uuid.New(), WorkspaceID: ws, Claim: own, Scope: memory.Scope{UserID: "canary"}})
			return answer, err
		},
		"ErasedSoFar": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) { return db.ErasedSoFar(ctx, ws, id) },
		"Claim": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			return db.Claim(ctx, worker.Claimant{
				Worker: "w", TTL: time.Minute, Kinds: []task.Kind{task.Infer, task.Erase}, Format: 9, MaxAttempts: 9,
			}, []worker.ClaimAsk{{TaskID: id, Token: uuid.New(), WorkspaceID: ws}}, true), nil
		},
		"Policy": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) { return db.Policy(ctx, ws) },
		"ChangePolicy": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			return db.ChangePolicy(ctx, ws, []byte(`{}`))
		},
		"Grant": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) { return db.Grant(ctx, ws, "own", 1) },
		"CreateKey": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			return db.CreateKey(ctx, ws, "own", access.Permissions(), nil)
		},
		"CreateKeyOnce": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			_, _, err := db.CreateKeyOnce(ctx, ws, operator.KeyAsk{Reference: "own", Name: "own", Permissions: access.Permissions()})
			return nil, err
		},
		"LimitKey": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			return nil, db.LimitKey(ctx, ws, "aaaaaaaaaaaa", 7)
		},
		"RevokeKey": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			return nil, db.RevokeKey(ctx, ws, "aaaaaaaaaaaa")
		},
		"CreateEndpoint": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			return db.CreateEndpoint(ctx, endpoint.Endpoint{ID: id, WorkspaceID: ws, URL: "https://own", Types: []endpoint.Type{endpoint.Succeeded}}, endpoint.Secret(sum("own")))
		},
		"ChangeEndpoint": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			return db.ChangeEndpoint(ctx, ws, id, endpoint.Change{Name: &text})
		},
		"RotateSecret": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			return db.RotateSecret(ctx, ws, id, endpoint.Secret(sum("own")))
		},
		"DeleteEndpoint": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			return nil, db.DeleteEndpoint(ctx, ws, id)
		},
		"Replay": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			return db.Replay(ctx, ws, id, endpoint.Selection{}, nil, 9)
		},
		"TestDelivery": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) { return db.TestDelivery(ctx, ws, id) },
		"EraseJob.Next": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			return db.EraseJob().Next(ctx, worker.Lease{TaskID: id, WorkspaceID: ws})
		},
		"Later": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			return db.Later(ctx, []worker.Later{{Lease: worker.Lease{TaskID: id, WorkspaceID: ws}}}), nil
		},
		"InTx": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			rows := 0
			return rows, db.InTx(ctx, ws, func(ctx context.Context, tx *Tx) error {
				b := &batch{}
				b.exec("change all", `UPDATE memories SET text = 'changed'`, nil, nil)
				return tx.send(ctx, b)
			})
		},
		"InTxAlone": func(ctx context.Context, db *DB, ws uuid.UUID) (any, error) {
			return nil, db.InTxAlone(ctx, ws, func(ctx context.Context, tx *Tx) error {
				b := &batch{}
				b.exec("end all", `DELETE FROM items`, nil, nil)
				return tx.send(ctx, b)
			})
		},
	}
}

// otherMethods are those that this walk leaves out, with the reason.
func otherMethods() map[string][]string {
	return map[string][]string{
		"workers and repair alone": {
			"Heartbeat", "Unprojected", "Commit", "Due", "Leases", "ExhaustAfter", "Fail", "Known", "Settle", "Rescue", "RescueAfter",
			"ExpireInput", "ArchiveEnded", "RetireArchived", "ForgetActs", "ForgetConsole", "ForgetExports", "Ledgers", "SumBooks", "SaveCheckpoint",
			"CheckWorkspace", "CheckRecent", "Rehint", "OpenReindex", "ReindexSources", "StaleSources", "Reproject", "MarkReindex",
			"DueDeliveries", "Parcel", "Delivered", "Undelivered", "Dispatch", "Pause", "Outage", "Healthy",
		},
		"jobs, whose methods are theirs":                    {"BatchJob", "EraseJob", "ExportJob", "ImportJob", "EventReader"},
		"who calls, and operators over workspaces":          {"Authenticate", "Operator", "OpenSession", "Session", "CloseSession", "WorkspaceOfKey", "Workspace", "WorkspaceByName", "ListWorkspaces", "CreateWorkspace", "SuspendWorkspace", "PauseWorkspace", "LimitWorkspace", "DeleteWorkspace", "PauseProvider", "ResumeProvider"},
		"the owner alone":                                   {"CreateOperator", "ListOperators", "RevokeOperator", "InSnapshot", "Scene"},
		"states and numbers of the whole service":           {"Facts", "Work", "AddMinute", "Minutes", "Standing", "KeepStanding", "Standings"},
		"sealing keys, wrapped, for start-up and operators": {"CheckKeys", "KeyStatus", "RotateKeys", "RetireDataKeys", "LostUnder", "AbandonTasks", "AbandonSecrets", "AbandonKeys"},
		"the pool itself":                                   {"Ping", "Close", "Role", "Shedding", "Shed", "Load"},
	}
}

// TestBeltMethods walks every method of the store by which the API does something, logged in as the API: for another
// workspace and with the filled one's ids it says nothing of the filled one and changes nothing there.
func TestBeltMethods(t *testing.T) {
	t.Parallel()
	w := newBeltWorld(t)
	_, err := w.owner.Exec(t.Context(), `INSERT INTO credit_accounts (workspace_id, available) VALUES ($1, 100)`, strangerID)
	require.NoError(t, err)
	_, err = w.owner.Exec(t.Context(), `
INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, priority, payload_format, error_class, accepted_at, updated_at, completed_at)
SELECT gen_random_uuid(), $1, 'memory_batch_delete', 'failed', 'accepted', now(), now(), 'bulk', 1, 'canary', now(), now(), now()`, filledID)
	require.NoError(t, err)
	db, err := Open(t.Context(), Config{URL: w.api.Config().ConnString()})
	require.NoError(t, err)
	t.Cleanup(db.Close)
	before := w.filled()
	for name, ask := range readMethods() {
		answer, err := ask(t.Context(), db, filledID)
		require.NoError(t, err, name)
		require.Contains(t, spelled(t, answer), "canary", "%s finds nothing in the workspace that has it", name)
		answer, err = ask(t.Context(), db, strangerID)
		require.NotContains(t, spelled(t, answer), "canary", name)
		require.NotEqual(t, "42501", stateOf(err), name)
	}
	for name, ask := range changeMethods() {
		answer, err := ask(t.Context(), db, strangerID)
		require.False(t, err != nil && stateOf(err) != "" && stateOf(err) != "42501", "%s: %v", name, err)
		require.NotContains(t, spelled(t, answer), "canary", name)
		require.Equal(t, before, w.filled(), name)
	}

	var walked []string
	for _, name := range slices.Concat(keysOf(readMethods()), keysOf(changeMethods())) {
		if !strings.Contains(name, ".") {
			walked = append(walked, name)
		}
	}
	for _, names := range otherMethods() {
		walked = append(walked, names...)
	}
	var all []string
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	method := regexp.MustCompile(`(?m)^func \(db \*DB\) ([A-Z]\w*)`)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, found := range method.FindAllStringSubmatch(string(text), -1) {
			all = append(all, found[1])
		}
	}
	require.ElementsMatch(t, all, walked, "a method is neither walked nor left out on purpose")
}

func keysOf(m map[string]asked) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	return names
}

func spelled(t *testing.T, said any) string {
	t.Helper()
	text, err := json.Marshal(said)
	require.NoError(t, err)
	return fmt.Sprintf("%s %+v", text, said)
}

// filled is everything of the filled workspace.
func (w *beltWorld) filled() string {
	w.t.Helper()
	var all strings.Builder
	for _, table := range w.names(beltedSQL) {
		key := "workspace_id"
		if table == "workspaces" {
			key = "id"
		}
		var rows string
		require.NoError(w.t, w.owner.QueryRow(w.t.Context(),
			fmt.Sprintf(`SELECT coalesce(string_agg(t::text, E'\n' ORDER BY t::text), '') FROM %s t WHERE t.%s = $1`, table, key), filledID).Scan(&rows))
		fmt.Fprintf(&all, "%s\n%s\n", table, rows)
	}
	return all.String()
}
