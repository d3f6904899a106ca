package endtoend

// reportedOfStuckWork are the reports about work that is stuck, done by a zombie or done twice, about poolers, and about
// the queue that carries the hints.
func reportedOfStuckWork() []reported {
	return []reported{
		// Stuck, zombie, duplicate.
		{"riverqueue/river#1302 riverqueue/river#1373", "a rescue overwrites what was completed meanwhile", []string{"postgres TestStuck/OfACompletionAndARescueOneWins", "postgres TestCrashes/RescueIsACASOnWhatItSaw", "postgres TestRaces"}},
		{"riverqueue/river#1258", "work of an unknown kind runs for months", []string{"postgres TestStuck/KindsAndFormatsThatNobodyKnowsAreRescuedToo"}},
		{"riverqueue/river#1318", "the rescue's page is full of what isn't due", []string{"postgres TestStuck/LiveLeasesInFrontHideNoExpiredOne", "postgres TestCrashes/RowsThatCannotBeMovedHideNoOthers"}},
		{"riverqueue/river#1135", "discarded work is still done", []string{"worker TestHeartbeat/LostLeaseEndsTheTaskAtOnce", "TestCancelAndRetry"}},
		{"riverqueue/river@v0.48.0", "one row that can't be read keeps its batch", []string{"TestUnreadableCommand", "worker TestFailure/UnreadableInputFailsWithoutACall", "postgres TestCrashes/OneBrokenRowDoesNotStopTheRest"}},
		{"hibiken/asynq#612 hibiken/asynq#1030", "a lost lease is taken for an error of the task", []string{"worker TestStep/AnOutageThatOutlivesTheLeaseSpendsNothing", "postgres TestClaim/NothingOfALostLeaseIsWritten"}},
		{"hibiken/asynq#717", "two recover one task", []string{"repair TestLeases/FourRepairersMoveEachTaskOnce", "repair TestHints/FourAtOnceRaiseTheNumberByOne"}},
		{"hibiken/asynq#1158 hibiken/asynq#1144", "running, with a lease nowhere", []string{"postgres TestStuck/RunningWithoutALeaseCannotBeWritten"}},
		{"timgit/pg-boss#436 timgit/pg-boss#102 timgit/pg-boss#250", "active for ever after a shutdown", []string{"TestSIGTERM", "worker TestStop/GivesBackTheLeaseOfACallUnderWay", "postgres TestCrashes/AGivenBackLeaseLeavesNoTrace"}},
		{"graphile/worker#204 graphile/worker#222 graphile/worker#449 graphile/worker#254", "a queue stays locked after the last attempt", []string{"repair TestLeases/ExhaustedCrashesFailReleaseNotifyAndPassTheLaneOn", "TestCrashLoop"}},
		{"oban-bg/oban#1141", "a long job is rescued for its age", []string{"TestLongCall", "postgres TestStuck/AgeAloneTakesNoTaskFromALivingWorker"}},
		{"oban-bg/oban#424", "a unique job is frozen for ever", []string{"TestCases/Keys/CrashBetweenClaimAndAnswer", "TestAPIKilled", "TestCrashLoop"}},
		{"hatchet-dev/hatchet#2432 hatchet-dev/hatchet#1022 jbielick/faktory_worker_node#163", "a frozen worker's work is done twice", []string{"TestStoppedWorker", "TestTwoFrozenWorkers", "worker TestFrozenProcess"}},
		{"rails/solid_queue#763 rails/solid_queue#751", "errors of heartbeats are swallowed", []string{"TestSilentDatabase", "worker TestHeartbeat/HasItsOwnConnections", "worker TestHeartbeat/OneThatHangsCostsNoLease"}},
		{"inngest/inngest#4766", "the lease ends before its first renewal", []string{"worker TestHeartbeat/NoCallWithoutAConfirmedHeartbeat"}},
		{"restatedev/restate#2113 restatedev/restate#4945 restatedev/restate#4949 camunda/camunda#57335", "what a stale executor does is accepted", []string{"postgres TestClaim/NothingOfALostLeaseIsWritten", "postgres TestClaim/AHolderOfACommittedTaskThatWasOvertakenProjectsNothing"}},
		{"opensre#6082", "fencing stops no effect outside", []string{"TestWorkerKilled", "TestTwoFrozenWorkers"}},
		{"dbos-inc/dbos-transact-py#742 dbos-inc/dbos-transact-java#491 dbos-inc/dbos-transact-ts#1206", "two recoveries diverge", []string{"TestTwoFrozenWorkers", "worker TestRun/CommittedTaskNeverCallsTheExtractor"}},
		{"dbos-inc/dbos-transact-py#716", "a restart of the database during the recovery strands work", []string{"TestPostgresRestartDuringRepair", "TestPostgresRestart"}},
		{"temporalio/temporal#5176 temporalio/temporal#771", "the timer of heartbeats gets lost", []string{"worker TestHeartbeat/ComesAtEveryThirdOfTheLease", "TestLongCall"}},

		// Poolers.
		{"riverqueue/river#205 graphile/worker#119 pgbouncer/pgbouncer#655", "a pooler refuses parameters, statements and sessions", []string{"postgres TestTransactionPooler", "TestBehindPgBouncer", "arch TestSessions", "app TestDoctorKnowsPoolers"}},
		{"pgbouncer/pgbouncer#801", "a cancelled request ends the pooler", []string{"postgres TestTransactionPooler/ACallerThatGivesUpHarmsNobodyElse"}},

		// Hints.
		{"murmur#141 nats-io/nats-server#2921", "a hint with a known id is swallowed", []string{"wakeup TestPublish/EveryReasonWithinTheDuplicateWindowIsDelivered", "wakeup TestPublish/TheSameIDIsSwallowedAndCounted"}},
		{"nats-io/nats-server#7817", "messages are lost after their last delivery", []string{"TestPurgedHint", "wakeup TestFetch/AnUnansweredHintComesAgainAfterAckWait"}},
		{"nats-io/nats-server#6093 nats-io/nats.go#968", "delayed messages fill the consumer", []string{"worker TestHints/TaskThatIsNotToBeHadIsAcked", "repair TestHints/ADelayedRetryIsHintedOnceItIsDue"}},
		{"nats-io/nats.go#2063 nats-io/nats.go#1729 nats-io/nats-server#5839", "a pull stays behind after the leader has changed", []string{"wakeup TestRestarts", "wakeup TestFetch/LeavesNoPullBehindThatTakesHintsNobodyWaitsFor", "worker TestHints/SourceThatFailsIsAskedEverMoreRarelyAndPollingGoesOn"}},
		{"nats-io/nats.go#1346", "a publication waits for ever", []string{"wakeup TestPublish/IsBoundedInABlackHole"}},
		{"nats-io/nats-server#7487 nats-io/nats-server#7852", "too many messages a second, and too many subjects", []string{"wakeup TestTopology/IsAsDefined", "repair TestHints/AMillionDueTasksAreNotAMillionHints"}},
		{"nats-io/nats-server#7545 nats-io/nats-server#7549 nats-io/nats-server#4410", "the store is gone, or the stream", []string{"TestStoreWiped", "wakeup TestWatch/AWipedStoreComesBack", "wakeup TestWatch/ADeletedStreamComesBackAndTheConsumeLoopGoesOn", "TestWithoutNATS"}},
	}
}
