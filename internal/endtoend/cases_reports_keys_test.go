package endtoend

// reportedOfKeys are the reports about idempotent interfaces, ledgers and long work.
func reportedOfKeys() []reported {
	return []reported{
		// Keys.
		{"josipmusa/idempotency4j#12", "another body under the key is answered with the first answer", []string{"TestCases/Keys/OneKeyWithAnotherBody", "TestOneCommand"}},
		{"nensii21/devlink#1200", "a second endpoint gets the first one's answer and never runs", []string{"TestCases/OneKey/SecondEndpointWithTheSameKey"}},
		{"LerianStudio/midaz-sdk-golang#236", "another payload is answered with the old transaction", []string{"TestCases/Keys/OneKeyWithAnotherBody", "TestCases/OneKey/SecondEndpointWithTheSameKey"}},
		{"jcagarcia/grape-idempotency#10", "the second request runs while the first is slow", []string{"TestCases/Keys/SecondRequestWhileTheFirstIsSlow"}},
		{"mastodon#37879", "a retry that overtakes posts twice", []string{"TestCases/Keys/RetryOvertakesTheFirst"}},
		{"square1-io/laravel-idempotency#1 zonelessdev/zoneless#134 ikyriak/IdempotentAPI#19 mitos-run/mitos#240", "check and set race, and both run", []string{"TestCases/Keys/RetryOvertakesTheFirst", "TestCases/Keys/TwoEndpointsRaceForOneKey", "TestOneCommand"}},
		{"idempot-dev/idempot-js#181", "the loser of the race gets a 503", []string{"TestCases/Keys/TwoEndpointsRaceForOneKey", "TestOneCommand"}},
		{"VilledeMontreal/express-idempotency#32", "after a crash the key is blocked for days", []string{"TestCases/Keys/CrashBetweenClaimAndAnswer", "TestAPIKilled"}},
		{"pathosDev/actor-ts#984", "the claim is deleted after the effect, and every 5xx is kept", []string{"TestCases/BrokenBooks/FailureOfOursIsNotRemembered", "TestCases/Keys/CrashBetweenClaimAndAnswer", "TestWorkerKilled"}},
		{"Noveum/orbit#455", "a failed call is in progress for ever", []string{"TestCases/Keys/ReplayOfAFailure", "TestCases/Operations/FailureIsAnAnswer"}},
		{"torkiv-labs/Nexuq#361", "a refused operation stays running", []string{"TestCases/Keys/RefusedForWantOfCredits", "TestCases/Keys/RefusalTakesNoKey"}},
		{"KanishJebaMathewM/Truxify#2382 useautumn/autumn#1851", "a kept refusal blocks the real retry", []string{"TestCases/Keys/RefusalTakesNoKey", "TestCases/Keys/RefusedForWantOfCredits", "TestCases/Keys/OneKeyInTwoWorkspaces"}},
		{"paveg/hono-idempotency#126 deepslate-rpg#104 arun0009/idempotent#217", "another tenant gets the answer, or takes the key", []string{"TestCases/Keys/OneKeyInTwoWorkspaces", "TestOtherWorkspaces"}},
		{"theam/facility#196", "the same body with another query is the same request", []string{"TestCases/Keys/SameBodyAtAnotherAddress", "command TestFingerprint/IsStableAcrossReleases"}},
		{"EverMind-AI/EverOS#274 varun29ankuS/shodh-memory#110 redis-developer/adk-redis#24 supermemoryai/supermemory#1642", "a timeout and a retry make duplicates", []string{"TestCases/Duplicates/ClientRepeatsWithoutKey", "TestCases/Duplicates/ClientTimesOutAndPostsAgain", "clients/go TestLostAnswers/AreOneEventAndOneCharge"}},
		{"markhuangai/dense-mem#294", "who loses the key has paid the provider", []string{"TestCases/Keys/SecondRequestWhileTheFirstIsSlow", "TestOneCommand"}},

		// Enqueued with the command.
		{"getlago/lago-api#6319", "the event is committed and its job is never queued", []string{"TestPurgedHint", "TestAPIKilled", "TestWebhook/RepairMakesDeliveriesToo"}},
		{"jikig-ai/soleur#4431", "queued without an entry in a queue", []string{"TestWithoutNATS", "TestStoreWiped", "TestCases/NoWorker/OneMoreThanAQueueHolds"}},

		// Leases and attempts.
		{"aegra#547 getomnico/omni#347 wavect/semaprax#192 brendanlong/lion-reader#917", "a stale worker overwrites its successor", []string{"TestStoppedWorker", "postgres TestClaim/NothingOfALostLeaseIsWritten"}},
		{"crowd-source-faq#233 xorbitsai/xagent#1530", "a crash loop gets around the attempts", []string{"TestCrashLoop"}},
		{"majiayu000/harness#1887", "a finished result is dropped with its lease", []string{"TestWorkerKilled", "TestStoppedWorker", "worker TestRun/CommittedTaskNeverCallsTheExtractor"}},

		// The ledger.
		{"elizaOS/eliza#11683", "two refund one hold, and age alone refunds a legal run", []string{"TestCases/Ledger/ManyClosersOfOneHold", "TestCases/Ledger/AgeAloneReleasesNothing", "postgres TestCredits/ASecondClosingIsImpossibleByConstraint"}},
		{"elizaOS/eliza#11512 elizaOS/eliza#11603", "the refund is committed before what it is for", []string{"TestCases/BrokenBooks/RefundNeedsItsOutcome", "TestFailingWorkerKilled"}},
		{"elizaOS/eliza#11963", "a failed job is settled, and a refund moves nothing", []string{"TestCases/Ledger/FailedOrAbortedWorkIsRefunded", "TestCases/Ledger/ManyClosersOfOneHold"}},
		{"elizaOS/eliza#11218 elizaOS/eliza#11260", "a failure between reserve and settle strands the hold", []string{"TestCrashLoop", "TestFailingWorkerKilled", "worker TestFailure/PanicIsLoggedWithItsPlaceOnly"}},
		{"elizaOS/eliza#10857 wasp-lang/open-saas#727 QuantumNous/new-api#6609 songquanpeng/one-api#2440", "many requests on a balance for one", []string{"TestCases/Ledger/ManyAtOnceOnABalanceForOne", "postgres TestAccept/ConcurrentHoldsNeverOverdraw"}},
		{"edenartlab/eve#570", "work before the charge, refunds of what was never paid, a cancel after delivery", []string{"TestCases/Ledger/NoCreditsNoWork", "TestCases/Ledger/NothingIsRefundedThatWasNotPaid", "TestCases/Ledger/CancelAfterDelivery"}},
		{"Scottcjn/bottube#1535 kaltura#11739 QuantumNous/new-api#6754", "an aborted job is never refunded", []string{"TestCases/Ledger/FailedOrAbortedWorkIsRefunded"}},
		{"scalableminds/webknossos#9331", "the retry of a refunded job is free", []string{"TestCases/Ledger/RetryOfARefundedJobPaysAnew", "TestCancelAndRetry"}},
		{"getlago/lago-api#713", "a manual and an automatic retry both charge", []string{"TestCases/Ledger/ManualRetryDuringAnAutomaticOne", "TestCases/Ledger/ManualRetriesAtOnce"}},
		{"2witstudios/PageSpace#1566 engram-app/Engram#304", "the balance drifts from the ledger", []string{"TestCases/Drift/DriftIsFound", "repair TestBooks/EveryDisagreementIsDriftAndNamed"}},
		{"Climactic/laravel-credits#20", "movements at once lose each other", []string{"TestCases/Ledger/JournalAndBalanceAgreeUnderFire", "repair TestBooks/CorrectBooksAreFoundCorrectUnderTraffic"}},

		// Long work.
		{"Azure/azure-sdk-for-go#22884", "a failed operation is a 500, and is polled for ever", []string{"TestCases/Operations/FailureIsAnAnswer"}},
		{"DefuzeX-AI/KUMA-DefuzeX#89", "the pause between polls is a guess", []string{"TestCases/Operations/RetryAfterOnEveryPoll"}},
		{"cloudfoundry/servicebroker#359", "the end can be read once", []string{"TestCases/Operations/TerminalStateIsRepeatable", "postgres TestEvent/IsTheSameOnceArchived", "repair TestKeys/AnEventLivesAsLongAsItsKeyAndTheJournalForEver"}},
		{"MemTensor/MemOS#2329", "the id of the acceptance is replaced later", []string{"TestCases/Operations/NoMemoryIDBeforeTheCommit"}},
		{"Eventuous#222 managoat/fountain#1706 patchlevel/event-sourcing#615 RamaAditya49/titen#106", "a feed skips what commits late", []string{"TestStreamResumed", "postgres TestFeedLateCommit/IsToldBeforeWhatOvertookIt", "postgres TestFeedLateCommit/OneOfManyAtOnceIsNeverSkipped"}},
		{"getkin/kin-openapi#735 getkin/kin-openapi#1111", "values in errors, and members in other letters", []string{"TestCases/Operations/ValuesAreNotInRefusals", "TestCases/Operations/OtherSpellingsOfMembers"}},
		{"modelcontextprotocol/go-sdk#1136", "each client leaks a session", []string{"TestTools/DoorTakesOneMessageOfItsOwnPages", "httpapi/mcp TestConnections"}},
		{"fredrik/rekorderlig#111 apache/polaris#5263 marten#5263", "an unknown COMMIT is taken for success or failure", []string{"TestCases/Keys/AnswerToTheCommitIsLost", "postgres TestCommitAnswerLost/ARepeatThatFailsLeavesItOpenAndTheKeyResolvesIt", "worker TestRun/UnknownCommitIsRepeatedWithTheSamePlan"}},
		{"nazarli-shabnam/clevis#86 agentfield#418 nebula-mesh#243 pusk#164", "raw errors are shown, and names move or redirect inside", []string{"TestCases/Operations/WordsOfTheProviderAreNotShown", "httpapi TestProblem/AnythingElseIsInternalAndLoggedOnceWithoutItsText", "webhook TestGuard/ANameThatMovesIsJudgedWhereItIsDialled", "webhook TestGuard/ARedirectIsNotFollowed", "TestCases/GuardedReceivers/AddressIsJudgedByWhoDials"}},
	}
}
