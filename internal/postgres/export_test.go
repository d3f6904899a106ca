package postgres

// Statements whose plans the tests look at.
const (
	EventsSQL       = eventsSQL
	MemoriesSQL     = memoriesSQL + " AND m.user_id = @user_id" + newestSQL
	EntriesSQL      = entriesSQL
	EntriesAfterSQL = entriesAfterSQL
	FactsSQL        = factsSQL
)
