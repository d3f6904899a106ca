package postgres_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/holdfast-memory/holdfast/internal/testkit/property"
)

// modelCredits is so little that many commands are refused.
const modelCredits = 20

// shrinkable lets the helpers of world fail a history, so that rapid can look for a shorter one.
type shrinkable struct {
	testing.TB
	check *rapid.T
}

func (s shrinkable) Helper()                           {}
func (s shrinkable) Fatal(args ...any)                 { s.check.Fatal(args...) }
func (s shrinkable) Fatalf(format string, args ...any) { s.check.Fatalf(format, args...) }
func (s shrinkable) Error(args ...any)                 { s.check.Error(args...) }
func (s shrinkable) Errorf(format string, args ...any) { s.check.Errorf(format, args...) }

// machine runs one history: every action is done to the database and to the model, which must answer alike and agree
// about every row afterwards.
type machine struct {
	*world
	check  *rapid.T
	now    time.Time
	spaces []*modelSpace
	grips  []*grip // every lease that was ever given
	names  int
}

// TestModel drives the use cases against a model in memory, in orders that nobody thought of.
func TestModel(t *testing.T) {
	t.Parallel()
	asked := askedHistories()
	w := newWorld(t, 0)
	start, failing := time.Now(), false
	property.Check(t, func(check *rapid.T) {
		if asked == 0 && !failing && time.Since(start) > modelTime {
			return // a failure is made as short as it can be, however long that takes
		}
		failing = true
		m := newMachine(w, shrinkable{t, check}, check)
		check.Repeat(map[string]func(*rapid.T){
			"":           m.agree,
			"Accept":     m.doAccept,
			"AcceptMore": m.doAccept,
			"Write":      m.doWrite,
			"Claim":      m.doClaim,
			"ClaimMore":  m.doClaim,
			"Work":       m.doWork,
			"WorkMore":   m.doWork,
			"AnyStep":    m.doAnyStep,
			"TakeOver":   m.doTakeOver,
			"StaleStep":  m.doStaleStep,
			"Heartbeat":  m.doHeartbeat,
			"Wait":       m.doWait,
			"Rescue":     m.doRescue,
			"Cancel":     m.doCancel,
			"Retry":      m.doRetry,
			"Erase":      m.doErase,
			"BeginErase": m.doBeginErase,
			"EndErase":   m.doEndErase,
			"Grant":      m.doGrant,
		})
		m.check = check
		m.drain()
		failing = false
	})
}

// newMachine begins a history in workspaces of its own. The clock stands still unless the history moves it.
func newMachine(w *world, t testing.TB, check *rapid.T) *machine {
	own := *w
	own.t = t
	m := &machine{world: &own, check: check}
	for range 2 {
		m.spaces = append(m.spaces, newModelSpace(own.workspace(modelCredits), modelCredits))
	}
	m.setClock(one[time.Time](&own, `SELECT date_trunc('milliseconds', clock_timestamp())`))
	return m
}

func (m *machine) setClock(at time.Time) {
	m.now = at.UTC()
	m.clock.Store(&m.now)
	for _, s := range m.spaces {
		s.now = m.now
	}
}

// at makes the history's next action that of a workspace.
func (m *machine) at(check *rapid.T) *modelSpace {
	m.within(check)
	s := m.spaces[rapid.IntRange(0, len(m.spaces)-1).Draw(check, "workspace")]
	m.caller = s.caller
	return s
}

// within makes failures those of the present action.
func (m *machine) within(check *rapid.T) {
	m.check, m.t = check, shrinkable{m.t.(shrinkable).TB, check}
}

// aTask picks one of the workspace's tasks, three times in four one that is wanted if there is one; nil if there is none.
func (m *machine) aTask(s *modelSpace, wanted func(*modelTask) bool) *modelTask {
	if len(s.tasks) == 0 {
		return nil
	}
	of := s.tasks
	if rapid.IntRange(0, 3).Draw(m.check, "any task") > 0 {
		var fit []*modelTask
		for _, t := range s.tasks {
			if wanted(t) {
				fit = append(fit, t)
			}
		}
		if len(fit) > 0 {
			of = fit
		}
	}
	return of[rapid.IntRange(0, len(of)-1).Draw(m.check, "task")]
}

const modelRowsSQL = `
SELECT t.id, t.kind, t.status, t.stage, t.generation, t.claims, t.starts, t.crashes, t.head, coalesce(t.error_code, ''),
       coalesce(t.outcome, ''), t.command IS NOT NULL, t.erased,
       CASE WHEN t.status = 'succeeded' THEN 'SUCCEEDED' WHEN t.status = 'failed' THEN 'FAILED'
            WHEN t.status = 'running' AND t.lease_until > $2 THEN 'RUNNING'
            WHEN t.starts > 0 THEN 'RETRYING' ELSE 'PENDING' END, t.accepted_at
  FROM all_tasks t WHERE t.workspace_id = $1 AND t.kind <> 'scope_erase'`

const modelJournalSQL = `
SELECT coalesce(sum(e.amount) FILTER (WHERE e.type = 'grant'), 0), coalesce(sum(e.amount) FILTER (WHERE e.type = 'hold'), 0),
       coalesce(sum(e.amount) FILTER (WHERE e.type = 'settle'), 0), coalesce(sum(e.amount) FILTER (WHERE e.type = 'release'), 0),
       a.available, a.held
  FROM credit_accounts a LEFT JOIN credit_entries e ON e.workspace_id = a.workspace_id
 WHERE a.workspace_id = $1 GROUP BY a.available, a.held`

const modelRecordsSQL = `
SELECT coalesce(m.user_id, '') || '/' || coalesce(m.run_id, '') || ' ' || m.text || ' '
       || count(*) FILTER (WHERE m.accepted_at IS NOT NULL)
  FROM memories m WHERE m.workspace_id = $1 AND m.deleted_at IS NULL
 GROUP BY m.user_id, m.run_id, m.text ORDER BY 1`

// agree compares everything that is in the database with the model.
func (m *machine) agree(check *rapid.T) {
	m.within(check)
	for n, s := range m.spaces {
		rows := m.rows(s)
		if len(rows) != len(s.tasks) {
			check.Fatalf("workspace %d: %d tasks, want %d", n, len(rows), len(s.tasks))
		}
		for i, t := range s.tasks {
			want := t.taskRow
			want.Shown = s.shown(t)
			if rows[t.id] != want {
				check.Fatalf("workspace %d, task %d:\n got %+v\nwant %+v", n, i, rows[t.id], want)
			}
		}
		var books journal
		row := m.sql.QueryRow(m.t.Context(), modelJournalSQL, s.caller.Workspace.ID)
		if err := row.Scan(&books.Granted, &books.Held, &books.Settled, &books.Released, &books.Available, &books.Holding); err != nil {
			check.Fatal(err)
		}
		if books != s.books {
			check.Fatalf("workspace %d: books %+v, want %+v", n, books, s.books)
		}
		if got, want := m.stored(s), s.texts(); !slices.Equal(got, want) {
			check.Fatalf("workspace %d: records %q, want %q", n, got, want)
		}
		fences := one[int](m.world, `SELECT count(*) FROM erasures WHERE workspace_id = $1`, s.caller.Workspace.ID)
		if fences != len(s.fences) {
			check.Fatalf("workspace %d: %d fences, want %d", n, fences, len(s.fences))
		}
	}
}

func (m *machine) rows(s *modelSpace) map[uuid.UUID]taskRow {
	rows, err := m.sql.Query(m.t.Context(), modelRowsSQL, s.caller.Workspace.ID, m.now)
	if err != nil {
		m.check.Fatal(err)
	}
	found := map[uuid.UUID]taskRow{}
	var id uuid.UUID
	var r taskRow
	_, err = pgx.ForEachRow(rows, []any{
		&id, &r.Kind, &r.Status, &r.Stage, &r.Generation, &r.Claims, &r.Starts, &r.Crashes, &r.Head, &r.Code, &r.Outcome,
		&r.Input, &r.Erased, &r.Shown, &r.AcceptedAt,
	}, func() error {
		r.AcceptedAt = r.AcceptedAt.UTC()
		found[id] = r
		return nil
	})
	if err != nil {
		m.check.Fatal(err)
	}
	return found
}

func (m *machine) stored(s *modelSpace) []string {
	rows, err := m.sql.Query(m.t.Context(), modelRecordsSQL, s.caller.Workspace.ID)
	if err != nil {
		m.check.Fatal(err)
	}
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		m.check.Fatal(err)
	}
	slices.Sort(texts)
	return texts
}

// drain lets everything end: leases expire, erases and work go on. Nothing may be left open or held.
func (m *machine) drain() {
	for range 50 {
		m.setClock(m.now.Add(time.Hour))
		m.rescueAll()
		open := 0
		for _, s := range m.spaces {
			m.caller = s.caller
			for _, f := range slices.Clone(s.fences) {
				m.finishErase(s, f)
			}
			for _, t := range s.tasks {
				if !t.open() {
					continue
				}
				open++
				if g := m.take(s, t); g != nil {
					m.finish(s, g)
				}
			}
		}
		m.agree(m.check)
		if open == 0 {
			m.settled()
			return
		}
	}
	m.check.Fatal("the history doesn't drain")
}

// settled is what must be true once every command has ended.
func (m *machine) settled() {
	for n, s := range m.spaces {
		if s.books.Holding != 0 || s.books.Granted != s.books.Available+s.books.Settled {
			m.check.Fatalf("workspace %d: books at the end: %+v", n, s.books)
		}
		for _, t := range s.tasks {
			m.caller = s.caller
			if e := m.event(t.id); e.Status != s.shown(t) || e.Generation != t.Generation || e.ErrorCode != t.Code {
				m.check.Fatalf("workspace %d: the event is %s of generation %d, want %s of %d", n, e.Status, e.Generation,
					s.shown(t), t.Generation)
			}
		}
	}
	m.books()
}

// texts lists the records as modelRecordsSQL does.
func (s *modelSpace) texts() []string {
	count := map[string]int{}
	for _, r := range s.records {
		scope := modelScopes()[r.scope]
		count[scope.UserID+"/"+scope.RunID+" "+r.text]++
	}
	lines := make([]string, 0, len(count))
	for _, text := range slices.Sorted(maps.Keys(count)) {
		lines = append(lines, text+" "+string(rune('0'+count[text])))
	}
	slices.Sort(lines)
	return lines
}
