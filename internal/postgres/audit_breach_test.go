package postgres_test

// taskBreaches are about events and their lanes.
func taskBreaches() []breach {
	age := `UPDATE tasks SET claimed_at = claimed_at - interval '1 day', completed_at = completed_at - interval '1 day';
UPDATE tasks SET run_after = now() - interval '1 hour' WHERE id = e('due');`
	crashed := func(n string) string {
		return `INSERT INTO task_attempts (task_id, claim, workspace_id, generation, worker, claimed_at, ended_at, ending, class)
SELECT e('due'), n, e('workspace'), 1, 'w', now(), now(), 'crashed', 'crash' FROM generate_series(1, ` + n + `) n;
UPDATE tasks SET crashes = ` + n + `, claims = ` + n + ` WHERE id = e('due');`
	}
	const key = `INSERT INTO idempotency_keys (workspace_id, key_hash, fingerprint, fingerprint_version, task_id)
VALUES (e('workspace'), sha256('x'), sha256('y'), 1, `
	return []breach{
		{"AKeyOfNobody", key + `e('nobody'))`, `e('nobody')`, 1, []string{"keys: a key names an event that there is not"}},
		{"AnEventWithoutKey", `DELETE FROM idempotency_keys WHERE task_id = e('stored')`, `e('stored')`, 1, []string{"keys: an event has no key"}},
		{
			"AKeyThatMovedOn", `UPDATE idempotency_keys SET task_id = e('failed') WHERE task_id = e('stored')`, `e('stored')`, 1,
			[]string{"keys: the key of an event names another one", "keys: an event is named by a key that is not its own"},
		},
		{"ASecondKey", key + `e('stored'))`, `e('stored')`, 1, []string{"keys: an event is named by a key that is not its own"}},

		{"AStatusThatThereIsNot", `UPDATE tasks SET status = 'lost' WHERE id = e('due')`, `e('due')`, 1, []string{"states: an event has no known status or stage"}},
		{
			"AFailureAfterTheCommit", `UPDATE tasks SET stage = 'committed', committed_at = completed_at WHERE id = e('failed')`, `e('failed')`, 1,
			[]string{"states: an event failed after its commit", "plans: a commit has no plan"},
		},
		{
			"ASuccessBeforeItsStage", `UPDATE tasks SET stage = 'committed' WHERE id = e('stored')`, `e('stored')`, 1,
			[]string{"states: an event has not succeeded as far as its stage says"},
		},
		{
			"AnEndWithoutTime", `UPDATE tasks SET completed_at = NULL WHERE id = e('stored')`, `e('stored')`, 1,
			[]string{"states: an event has ended without its time, or not with it", "runs: an event has not ended and its run has"},
		},
		{
			"AnOutcomeWithoutSuccess", `UPDATE tasks SET outcome = 'STORED' WHERE id = e('failed')`, `e('failed')`, 1,
			[]string{"states: an event has an outcome without success, or success without one"},
		},
		{"AFailureWithoutReason", `UPDATE tasks SET error_code = NULL WHERE id = e('failed')`, `e('failed')`, 1, []string{"states: an event failed without a reason"}},
		{"NothingToRun", `UPDATE tasks SET command = NULL WHERE id = e('due')`, `e('due')`, 1, []string{"states: an event waits for its commit and has no input"}},
		{
			"ACommitWithoutTime", `UPDATE tasks SET committed_at = NULL WHERE id = e('stored')`, `e('stored')`, 1,
			[]string{"states: an event has the time of a commit without one, or the other way round"},
		},

		{
			"ALeaseOfAWaitingEvent", `UPDATE tasks SET lease_token = gen_random_uuid() WHERE id = e('due')`, `e('due')`, 1,
			[]string{"leases: an event has a lease without running, or runs without one"},
		},
		{
			"ALeaseLeftLying", `UPDATE tasks SET lease_until = now() - interval '1 hour' WHERE id = e('running')`, `e('running')`, 1,
			[]string{"leases: an expired lease was taken over by nobody"},
		},

		{"AClaimWithoutAttempt", `DELETE FROM task_attempts WHERE task_id = e('stored')`, `e('stored')`, 1, []string{"attempts: an event has not one attempt for each claim that ended"}},
		{
			"AnAttemptOfNobody", `INSERT INTO task_attempts (task_id, claim, workspace_id, generation, worker, claimed_at, ended_at, ending)
VALUES (e('nobody'), 1, e('workspace'), 1, 'w', now(), now(), 'retry')`, `e('nobody')`, 1, []string{"attempts: an attempt is of an event that there is not"},
		},
		{"MoreStartsThanClaims", `UPDATE tasks SET starts = claims + 1 WHERE id = e('stored')`, `e('stored')`, 1, []string{"attempts: an event counts more starts or crashes than claims"}},
		{"OneCrashTooMany", crashed("6"), `e('due')`, 1, []string{"attempts: an event was claimed after its last crash"}},
		{
			"ExhaustedWithoutACrash", `UPDATE tasks SET error_code = 'ATTEMPTS_EXHAUSTED' WHERE id = e('failed')`, `e('failed')`, 1,
			[]string{"attempts: an event crashed too often without a crash"},
		},

		{
			"ACommitOutOfOrder", `UPDATE tasks SET committed_at = committed_at - interval '1 hour' WHERE id = e('replacing')`, `e('replacing')`, 1,
			[]string{"order: an event was committed before an earlier one of its lane"},
		},
		{
			"TimeAndPlaceDisagree", `UPDATE tasks SET accepted_at = (SELECT accepted_at FROM tasks WHERE id = e('running')) WHERE id = e('last')`, `e('last')`, 1,
			[]string{"order: an event was accepted before an earlier one of its lane"},
		},
		{"TwoInOnePlace", `UPDATE tasks SET lane_seq = 2 WHERE id = e('last')`, `e('last')`, 1, []string{"order: two events have the same place in their lane"}},
		{"APlaceThatWasNotGiven", `UPDATE tasks SET lane_seq = 99 WHERE id = e('last')`, `e('last')`, 1, []string{"order: a lane has not given the place or the time of an event"}},

		{"TwoHeads", `UPDATE tasks SET head = true WHERE id = e('waiting')`, `e('waiting')`, 2, []string{"heads: a lane has two heads"}},
		{"NoHead", `UPDATE tasks SET head = false WHERE id = e('running')`, `e('running')`, 1, []string{"heads: a lane whose events wait has no head"}},
		{
			"TheWrongHead", `UPDATE tasks SET head = (id = e('last')) WHERE id IN (e('running'), e('last'))`, `e('waiting')`, 2,
			[]string{"heads: an event waits behind a later one"},
		},
		{"AHeadThatHasEnded", `UPDATE tasks SET head = true WHERE id = e('stored')`, `e('stored')`, 1, []string{"heads: an event is head that does not wait"}},

		{"InBothTables", `SELECT archive(e('changed'), true)`, `e('changed')`, 1, []string{"archive: an event is in both tables"}},
		{
			"AnOpenEventInTheArchive", `SELECT archive(e('last'), false)`, `e('last')`, 1,
			[]string{"archive: the archive has an event that has not ended", "input: the archive has input"},
		},

		{"DueForAnHour", age, `e('due')`, 1, []string{"stuck: an event is due and nobody works on it"}},
		{"ExhaustedForAnHour", age + crashed("5"), `e('due')`, 1, []string{"stuck: an event crashed too often and nobody ended it"}},
	}
}

// moneyBreaches are about runs and credits.
func moneyBreaches() []breach {
	return []breach{
		{
			"NoRun", `DELETE FROM task_runs WHERE task_id = e('stored')`, `e('stored')`, 1,
			[]string{"runs: an event has not one run for each generation", "closings: a closing is of no run that ended so"},
		},
		{
			"AnEndWithAnOpenRun", `UPDATE task_runs SET outcome = NULL WHERE task_id = e('stored')`, `e('stored')`, 1,
			[]string{
				"runs: an event has ended and its run is open", "closings: a closing is of no run that ended so",
				"balances: an account does not hold what its open runs do",
			},
		},
		{
			"ARunThatEndedEarly", `UPDATE task_runs SET outcome = 'failed' WHERE task_id = e('due')`, `e('due')`, 1,
			[]string{
				"runs: an event has not ended and its run has", "closings: a run has ended and was neither settled nor released",
				"balances: an account does not hold what its open runs do",
			},
		},
		{
			"ARunThatEndedDifferently", `UPDATE task_runs SET outcome = 'failed' WHERE task_id = e('stored')`, `e('stored')`, 1,
			[]string{"runs: an event and its run ended differently", "closings: a closing is of no run that ended so"},
		},
		{
			"TwoRunsThatSucceeded", `UPDATE task_runs SET outcome = 'succeeded' WHERE task_id = e('retried') AND generation = 1`, `e('retried')`, 1,
			[]string{"runs: an earlier run of an event did not fail", "closings: a closing is of no run that ended so"},
		},
		{
			"AHoldForNothing", `INSERT INTO task_runs (task_id, generation, workspace_id, amount, opened_at) VALUES (e('nobody'), 1, e('workspace'), 0, now())`,
			`e('nobody')`, 1,
			[]string{"runs: an open run is of an event that there is not"},
		},

		{"NoClosing", `DELETE FROM credit_closings WHERE task_id = e('failed')`, `e('failed')`, 1, []string{"closings: a run has ended and was neither settled nor released"}},
		{
			"AClosingOfNoRun", `INSERT INTO credit_closings (task_id, generation, workspace_id, outcome, amount, settled, released, closed_at)
VALUES (e('nobody'), 1, e('workspace'), 'failed', 0, 0, 0, now())`, `e('nobody')`, 1, []string{"closings: a closing is of no run that ended so"},
		},
		{
			"MoreReleasedThanHeld", `UPDATE credit_closings SET released = released + 1 WHERE task_id = e('failed')`, `e('failed')`, 1,
			[]string{"closings: a closing has not settled or released the whole amount"},
		},
		{"ABalanceBelowZero", `UPDATE credit_accounts SET available = -1 WHERE workspace_id = e('workspace')`, `e('workspace')`, 1, []string{"balances: a balance is below zero"}},
		{
			"AHoldWithoutARun", `UPDATE credit_accounts SET held = held + 1, available = available - 1 WHERE workspace_id = e('workspace')`, `e('workspace')`, 1,
			[]string{"balances: an account does not hold what its open runs do"},
		},
		{
			"ACreditFromNowhere", `UPDATE credit_accounts SET available = available + 1 WHERE workspace_id = e('workspace')`, `e('workspace')`, 1,
			[]string{"balances: a balance is not what the journal says"},
		},
		{
			"ACheckpointThatIsWrong", `UPDATE credit_checkpoints SET granted = granted + 1`, `e('workspace')`, 1,
			[]string{"checkpoints: a checkpoint is not the sum of the journal before it"},
		},
	}
}

// privacyBreaches are about what must not be kept.
func privacyBreaches() []breach {
	part := func(name string) string {
		return `INSERT INTO task_parts (task_id, part, workspace_id, body)
SELECT e('` + name + `'), 0, coalesce((SELECT workspace_id FROM tasks WHERE id = e('` + name + `')), e('workspace')), 'x'`
	}
	return []breach{
		{"InputAfterSuccess", `UPDATE tasks SET command = 'x' WHERE id = e('stored')`, `e('stored')`, 1, []string{"input: an event has succeeded and its input is kept"}},
		{"InputInTheArchive", `SELECT archive(e('failed'), false)`, `e('failed')`, 1, []string{"input: the archive has input"}},
		{
			"InputOfLongAgo", `UPDATE tasks SET completed_at = completed_at - interval '30 days' WHERE id = e('failed')`, `e('failed')`, 1,
			[]string{"input: the input of a failed event is kept for too long"},
		},
		{"APlanAfterSuccess", `UPDATE plans SET body = 'x' WHERE task_id = e('stored')`, `e('stored')`, 1, []string{"input: an event has ended and the body of its plan is kept"}},
		{"ASnapshotAfterItsImport", part("import"), `e('import')`, 1, []string{"input: an import has ended and its snapshot is kept"}},
		{"APartOfNobody", part("nobody"), `e('nobody')`, 1, []string{"input: a part is of an event that there is not"}},

		{"AnErasedEventThatNamesSomebody", `UPDATE tasks SET user_id = 'u8' WHERE id = e('erased')`, `e('erased')`, 1, []string{"erased: an erased event names somebody or has input"}},
		{
			"AnErasedEventWithASnapshot", part("erased"), `e('erased')`, 1,
			[]string{"erased: an erased event has a snapshot", "input: an import has ended and its snapshot is kept"},
		},
		{
			"AMemoryThatAnEraseHasLeft", ghost("erased"), `e('erase')`, 1,
			append([]string{"erased: a finished erase has left a memory"}, ghostFinds()...),
		},
		{"AnEventThatAnEraseHasLeft", `UPDATE tasks SET erased = false WHERE id = e('erased')`, `e('erased')`, 1, []string{"erased: a finished erase has left an event"}},

		{
			"TextOfAMemoryThatIsGone", `UPDATE memory_history SET new_text = 'secret' WHERE task_id = e('erased')`, `e('erased')`, 1,
			[]string{"leftovers: history says what a memory said that is gone"},
		},
		{"FeedbackOfAMemoryThatIsGone", `UPDATE memory_feedback SET memory_id = e('nobody') WHERE workspace_id = e('workspace')`, `e('nobody')`, 1, []string{"leftovers: feedback is of a memory that is gone"}},

		{
			"AFenceThatIsLeft", `INSERT INTO erasures (task_id, workspace_id, user_hash, erased_at)
SELECT id, workspace_id, sha256('x'), accepted_at FROM tasks WHERE id = e('erase')`, `e('erase')`, 1, []string{"fences: a fence has outlived its erase"},
		},
		{"NoFence", `DELETE FROM erasures WHERE task_id = e('fence')`, `e('fence')`, 1, []string{"fences: an erase runs without its fence"}},
		{
			"AFenceOfAnotherTime", `UPDATE erasures SET erased_at = erased_at + interval '1 second' WHERE task_id = e('fence')`, `e('fence')`, 1,
			[]string{"fences: a fence has another time than its erase"},
		},
	}
}

// ghost inserts a memory of an event that has not written it.
func ghost(event string) string {
	return `INSERT INTO memories (id, workspace_id, task_id, user_id, lane, text, content_key, accepted_at, said_at, valid_from, created_at, updated_at)
SELECT e('nobody'), workspace_id, id, user_id, lane, 'ghost', sha256('ghost'), accepted_at, accepted_at, accepted_at, now(), now()
  FROM tasks WHERE id = e('` + event + `')`
}

// ghostFinds is what is wrong with a ghost whatever its event is.
func ghostFinds() []string {
	return []string{
		"records: a memory is of no result of its event", "history: a memory has not one history row for each version",
		"terms: a live memory has no terms of its text", "vectors: a live memory has no vector of its text and waits for none",
	}
}
