package endtoend

// reportedOfQueues are the reports about queues: what poisons them, what storms, what the database does under them, and
// who waits for whom.
func reportedOfQueues() []reported {
	return []reported{
		// Poison, storms, time.
		{"vectorize-io/hindsight#2675 activepieces/activepieces#15130 sidekiq/sidekiq#4069", "a worker dies on the same job again and again", []string{"TestCrashLoop", "worker TestSolo/CrashedTaskRunsAlone", "worker TestSolo/NextIsNotClaimedBeforeItsTurn", "postgres TestCrashes/ALoopEndsFailedWithOneReleaseAlsoBesideACommittedRow"}},
		{"riverqueue/river#1150", "all pollers poll in one moment", []string{"worker TestPollersAreSpread", "worker TestDrain/PollsAreSpread"}},
		{"Aider-AI/aider#5165 payloadcms/payload#16318", "retries storm, and come before Retry-After", []string{"TestRateLimitStorm", "TestRateLimited", "task TestDecide/TheProvidersFloorHolds", "postgres TestRestart", "worker TestHeartbeat/PausedProviderGivesTheLeaseBackUnspent"}},
		{"riverqueue/river#1255 riverqueue/river#1251 riverqueue/river#1579", "a call to a silent database hangs", []string{"TestSilentDatabase", "TestPostgresRestart", "worker TestHeartbeat/OneThatHangsCostsNoLease"}},

		// The database.
		{"timgit/pg-boss#282 rails/solid_queue#609 rails/solid_queue#531 rails/solid_queue#162 zulip/zulip#19054", "claims, repair, retention and cancels deadlock", []string{"postgres TestRaces"}},
		{"timgit/pg-boss#133 timgit/pg-boss#832", "a migration stops live workers", []string{"postgres TestMigrateUnderLoad", "postgres TestMigrate/SeveralAtOnceApplyEachVersionOnce"}},
		{"graphile/worker#348 rails/solid_queue#508", "claims scan past dead and leased rows", []string{"postgres TestManyLeases", "postgres TestLongLane", "postgres TestDrainPlan"}},
		{"riverqueue/river#59", "a snapshot that is held open keeps the dead", []string{"postgres TestHeldSnapshot"}},
		{"factcast/factcast#3911 bensheldon/good_job#269 bensheldon/good_job#1573", "NOTIFY takes a lock at every commit", []string{"arch TestNotifications"}},

		// Fairness and limits.
		{"triggerdotdev/trigger.dev#4353 plastic-labs/honcho#1170", "one tenant's backlog starves the others", []string{"TestOneAmongTenThousand", "postgres TestFairDrain/OneAmongTenThousand", "postgres TestFairDrain/EachOfManyHasItsTurn", "postgres TestFairDrain/SlotsThatAreFreeAtOnceGoToThoseWithFewLeases", "worker TestCap/HintBeyondItIsLeftToTheDrainWhichLooksAtOnce"}},
		{"kestra-io/kestra#14356", "slots leak with those who held them", []string{"TestKilledWorkersLeaveNoPlaces", "postgres TestLeases", "worker TestCap/PlacesComeBackHoweverAClaimEnds"}},
		{"riverqueue/river#1145", "the limit serialises all claims", []string{"postgres TestClaimsDoNotWaitForEachOther", "worker TestCap/CountsArePacedAndOneThatFailsCapsNobody"}},
		{"graphile/worker#621 graphile/worker#622", "a serial queue runs two at once", []string{"TestOrder", "postgres TestRaces", "postgres TestClaim/SkipsWhatIsNotToBeHad"}},
	}
}
