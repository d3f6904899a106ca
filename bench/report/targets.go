package report

// Target is one row of the target table. A row is a ratio of two measurements of one run, or a count per task.
type Target struct {
	Name    string
	Measure string
	Fail    float64 // the worst that is accepted
	Target  float64
	Stretch float64
	Lower   bool // less is better
}

// Targets is the table, in the order in which it is printed.
func Targets() []Target {
	return []Target{
		{"accept_db", "accept in the database, 16 callers ÷ I", 0.40, 0.50, 0.65, false},
		{"accept_grouped", "accept in the database, 64 callers ÷ I", 0.8, 1.2, 1.7, false},
		{"accept_http", "accept over HTTP, 64 connections ÷ I", 0.30, 0.50, 0.80, false},
		{"accept_hot", "hot workspace ÷ a thousand, 64 callers", 0.5, 0.9, 1.0, false},
		{"accept_flushes", "WAL flushes per accept, 64 callers", 0.30, 0.10, 0.05, true},
		{"river_16", "completed tasks ÷ River, 16 in flight", 1.2, 1.8, 2.0, false},
		{"river_64", "completed tasks ÷ River, 64 in flight", 1.6, 3.5, 4.5, false},
		{"river_256", "completed tasks ÷ River, 256 in flight", 2.0, 5, 7, false},
		{"dbos_64", "completed tasks ÷ DBOS Go, 64 in flight", 2, 5, 8, false},
		{"task_flushes", "WAL flushes per completed task, 64 in flight", 1.5, 0.6, 0.4, true},
		{"task_wal", "WAL bytes per task, 1 kB command", 14_000, 9_000, 7_000, true},
		{"latency_river", "accept → succeeded p50 at 1,000 a second ÷ River's", 1, 0.5, 0.33, true},
		{"latency_solo", "the same, one at a time ÷ the sum of its solo commits", 3, 2, 1.5, true},
		{"tail", "p99 ÷ p50, 64 in flight", 4, 2.5, 1.8, true},
		{"flood", "completed ÷ accepted during an accept flood", 0.5, 0.95, 1, false},
		{"growth", "claim and accept cost with 1 M waiting and 10 M finished tasks ÷ with 1,000", 2, 1.3, 1.1, true},
		{"fresh", "fresh database ÷ a filled one", 0.6, 0.85, 0.95, false},
		{"snapshot", "claim p99 with a snapshot held under load ÷ without", 20, 5, 3, true},
		{"rehint", "API accept p99 while repair re-hints a million due tasks ÷ idle", 5, 2, 1.5, true},
		{"search_scope", "search p50 over 10,000 records of a scope ÷ 100", 20, 8, 4, true},
		{"search_others", "search p50 with 1 M records in other scopes ÷ none", 2, 1.2, 1.05, true},
		{"mem0", "add through the mem0 client, 16 at once ÷ mem0's own engine, same stub model", 3, 10, 20, false},
	}
}

// Verdict says how far a value got.
func (t Target) Verdict(value float64) string {
	reached := func(line float64) bool {
		if t.Lower {
			return value <= line
		}
		return value >= line
	}
	switch {
	case reached(t.Stretch):
		return "stretch"
	case reached(t.Target):
		return "target"
	case reached(t.Fail):
		return "passes"
	}
	return "MISSED"
}
