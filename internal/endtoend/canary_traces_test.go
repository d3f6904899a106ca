package endtoend

// trace says where the word of one place must be, and may be: in which tables while its command waits, after it has ended,
// after an erase of every scope, and after the workspace is deleted; and in which outputs. Nothing of a place without a
// trace is ever anywhere.
type trace struct {
	place                          string
	waiting, done, erased, deleted string
	outputs                        []string
	perhaps                        []string // outputs that have it or not, as it happens
}

// traces leave out what has none: keys of idempotency, secrets, words of models and providers, headers, patterns, filters of
// a search, and all that is in requests that are refused.
func traces() []trace {
	return []trace{
		// Who may do what.
		{place: "name of a key", waiting: "api_keys", done: "api_keys", erased: "api_keys", outputs: []string{"output of commands"}},
		{place: "name of an operator", waiting: "operator_acts operators", done: "operator_acts operators", erased: "operator_acts operators", deleted: "operator_acts operators", outputs: []string{"the log of acts", "output of commands"}},
		{place: "name of a workspace", waiting: "operator_acts workspaces", done: "operator_acts workspaces", erased: "operator_acts workspaces", deleted: "operator_acts workspaces", outputs: []string{"the log of acts", "output of commands"}},
		{place: "reference of a grant", waiting: "credit_grants operator_acts", done: "credit_grants operator_acts", erased: "credit_grants operator_acts", deleted: "credit_grants operator_acts", outputs: []string{"the log of acts", "output of commands"}},
		{place: "path of a webhook", waiting: "webhooks", done: "webhooks", erased: "webhooks"},
		{place: "query of a webhook", waiting: "webhooks", done: "webhooks", erased: "webhooks"},
		{place: "name of a webhook", waiting: "webhooks", done: "webhooks", erased: "webhooks"},
		{place: "secret of a webhook", waiting: "webhooks", done: "webhooks", erased: "webhooks"},
		// The policy is the workspace's: no erase of a scope ends it. Failed commands keep theirs for a retry.
		{place: "instructions of the policy", waiting: "tasks workspaces", done: "tasks workspaces", erased: "tasks workspaces", outputs: []string{"requests to the model"}},
		{place: "description of the policy", waiting: "tasks workspaces", done: "tasks workspaces", erased: "tasks workspaces", outputs: []string{"requests to the model"}},
		{place: "category of the policy", waiting: "tasks workspaces", done: "tasks workspaces", erased: "tasks workspaces", outputs: []string{"requests to the model"}},
		// Whose it is.
		{place: "user", waiting: "memories tasks", done: "memories tasks", outputs: []string{"the stream"}},
		{place: "agent", waiting: "tasks", done: "memories tasks", outputs: []string{"the stream"}},
		{place: "run", waiting: "tasks", done: "memories tasks", outputs: []string{"the stream"}},
		{place: "app", waiting: "tasks", done: "memories tasks", outputs: []string{"the stream"}},
		{place: "user of mem0", waiting: "tasks", done: "memories tasks", outputs: []string{"the stream"}},
		{place: "user of a tool", waiting: "tasks", done: "memories tasks", outputs: []string{"the stream"}},
		{place: "account", waiting: "items tasks", done: "items memories tasks", outputs: []string{"the stream"}},
		{place: "session", waiting: "items tasks", done: "items memories tasks", outputs: []string{"the stream"}},
		{place: "item", waiting: "items tasks", done: "items memories"},
		{place: "author", waiting: "items tasks", done: "items", outputs: []string{"requests to the model"}},
		// What becomes a memory, and what its commands alone had.
		{place: "fact", waiting: "tasks", done: "memories memory_history memory_terms", outputs: []string{"requests to the model", "the stream"}},
		{place: "fact of mem0", waiting: "tasks", done: "memories memory_history memory_terms", outputs: []string{"requests to the model", "the stream"}},
		{place: "fact of a tool", waiting: "tasks", done: "memories memory_history memory_terms", outputs: []string{"requests to the model", "the stream"}},
		{place: "fact of an item", waiting: "items tasks", done: "items memories memory_history memory_terms", outputs: []string{"requests to the model", "the stream"}},
		{place: "small talk of an item", waiting: "items tasks", done: "items", outputs: []string{"requests to the model"}},
		{place: "speaker", waiting: "tasks", outputs: []string{"requests to the model"}},
		{place: "small talk", waiting: "tasks", outputs: []string{"requests to the model"}},
		{place: "small talk of mem0", waiting: "tasks", outputs: []string{"requests to the model"}},
		{place: "small talk of a tool", waiting: "tasks", outputs: []string{"requests to the model"}},
		{place: "instructions", waiting: "tasks", outputs: []string{"requests to the model"}},
		{place: "instructions of mem0", waiting: "tasks", outputs: []string{"requests to the model"}},
		{place: "category", waiting: "tasks", outputs: []string{"requests to the model"}},
		{place: "description of a category", waiting: "tasks", outputs: []string{"requests to the model"}},
		{place: "said during an outage", waiting: "tasks", outputs: []string{"requests to the model"}},
		{place: "metadata key", waiting: "tasks", done: "memories"},
		{place: "metadata value", waiting: "tasks", done: "memories"},
		{place: "metadata of mem0", waiting: "tasks", done: "memories"},
		// Changes. Old texts are history until the scope is erased.
		{place: "text that is changed", waiting: "memory_history", done: "memory_history", perhaps: []string{"the stream"}},
		{place: "text of a change", waiting: "memories memory_history memory_terms", done: "memories memory_history memory_terms", outputs: []string{"requests to the model", "the stream"}},
		{place: "metadata of a change", waiting: "memories", done: "memories"},
		{place: "text that is deleted", waiting: "memories memory_history", done: "memories memory_history", perhaps: []string{"the stream"}},
		{place: "text of a batch before", waiting: "memories memory_history memory_terms", done: "memory_history", perhaps: []string{"requests to the model", "the stream"}},
		{place: "text of a batch", waiting: "tasks", done: "memories memory_history memory_terms", outputs: []string{"requests to the model", "the stream"}},
		{place: "metadata of a batch", waiting: "tasks", done: "memories"},
		{place: "text that is judged", waiting: "memories memory_history memory_terms", done: "memories memory_history memory_terms", outputs: []string{"requests to the model", "the stream"}},
		{place: "reason of feedback", waiting: "memory_feedback", done: "memory_feedback"},
		{place: "user of a filter", waiting: "memory_exports", done: "memory_exports"},
		// What failed keeps its input for a retry; an import's is erased with its own workspace.
		{place: "said to a model that fails", waiting: "tasks", done: "tasks", outputs: []string{"requests to the model"}},
		{place: "said to a model that refuses", waiting: "tasks", done: "tasks", outputs: []string{"requests to the model"}},
		{place: "said to a provider that breaks", waiting: "tasks", done: "tasks", outputs: []string{"requests to the model"}},
		{place: "said and cancelled", waiting: "tasks", done: "tasks"},
		{place: "line of an import", waiting: "task_parts", done: "task_parts", erased: "task_parts"},
		// What is asked for.
		{place: "query", outputs: []string{"requests to the model"}},
		{place: "query of mem0", outputs: []string{"requests to the model"}},
		{place: "query of a tool", outputs: []string{"requests to the model"}},
		{place: "key of the model", outputs: []string{"requests to the model"}},
		{place: "request id", outputs: []string{"logs of the API"}},
	}
}
