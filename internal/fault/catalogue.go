package fault

// Code is the stable public name of a fault. Codes are never renamed or reused.
type Code string

// Codes of refused and failed requests (API.md, "Errors").
const (
	InvalidBody            Code = "INVALID_BODY"
	InvalidRequest         Code = "INVALID_REQUEST"
	ScopeRequired          Code = "SCOPE_REQUIRED"
	IdempotencyKeyRequired Code = "IDEMPOTENCY_KEY_REQUIRED"
	InvalidIdempotencyKey  Code = "INVALID_IDEMPOTENCY_KEY"
	InvalidCursor          Code = "INVALID_CURSOR"
	InvalidFilter          Code = "INVALID_FILTER"
	InvalidAPIKey          Code = "INVALID_API_KEY" // #nosec G101 -- the name of an error, not a credential
	APIKeyExpired          Code = "API_KEY_EXPIRED" // #nosec G101 -- the name of an error, not a credential
	InsufficientPermission Code = "INSUFFICIENT_PERMISSION"
	InsufficientCredits    Code = "INSUFFICIENT_CREDITS"
	MemoryNotFound         Code = "MEMORY_NOT_FOUND"
	EventNotFound          Code = "EVENT_NOT_FOUND"
	RouteNotFound          Code = "ROUTE_NOT_FOUND"
	MethodNotAllowed       Code = "METHOD_NOT_ALLOWED"
	WebhookNotFound        Code = "WEBHOOK_NOT_FOUND"
	WorkspaceNotFound      Code = "WORKSPACE_NOT_FOUND"
	WebhookURLRefused      Code = "WEBHOOK_URL_REFUSED"
	TooManyWebhooks        Code = "TOO_MANY_WEBHOOKS"
	InputExpired           Code = "INPUT_EXPIRED"
	IdempotencyConflict    Code = "IDEMPOTENCY_CONFLICT"
	IdempotencyInProgress  Code = "IDEMPOTENCY_IN_PROGRESS"
	VersionConflict        Code = "VERSION_CONFLICT"
	NotRetryable           Code = "NOT_RETRYABLE"
	NotCancellable         Code = "NOT_CANCELLABLE"
	WorkspaceNotEmpty      Code = "WORKSPACE_NOT_EMPTY"
	PayloadTooLarge        Code = "PAYLOAD_TOO_LARGE"
	UnsupportedMediaType   Code = "UNSUPPORTED_MEDIA_TYPE"
	RateLimited            Code = "RATE_LIMITED"
	TooManyPending         Code = "TOO_MANY_PENDING"
	UnavailableNow         Code = "UNAVAILABLE"
	AcceptanceUnknown      Code = "ACCEPTANCE_UNKNOWN"
	NotImplemented         Code = "NOT_IMPLEMENTED"
	InternalError          Code = "INTERNAL"
)

// Description is what the catalogue says of a code: its kind, a sentence for people, and whether the same
// request may succeed later unchanged.
type Description struct {
	Kind      Kind
	Title     string
	Message   string
	Retryable bool
}

// Describe returns the catalogue's entry of code, that of INTERNAL for an unknown one.
func Describe(code Code) Description {
	if d, ok := describe(code); ok {
		return d
	}
	d, _ := describe(InternalError)
	return d
}

// Codes returns every public code in the order of the catalogue, for documents and tests.
func Codes() []Code {
	return []Code{
		InvalidBody, InvalidRequest, ScopeRequired, IdempotencyKeyRequired, InvalidIdempotencyKey, InvalidCursor,
		InvalidFilter, InvalidAPIKey, APIKeyExpired, InsufficientPermission, InsufficientCredits, MemoryNotFound,
		EventNotFound, RouteNotFound, MethodNotAllowed, WebhookNotFound, WorkspaceNotFound, WebhookURLRefused, TooManyWebhooks, InputExpired, IdempotencyConflict, IdempotencyInProgress,
		VersionConflict, NotRetryable, NotCancellable, WorkspaceNotEmpty, PayloadTooLarge, UnsupportedMediaType, RateLimited,
		TooManyPending, UnavailableNow, AcceptanceUnknown, NotImplemented, InternalError,
	}
}

func describe(code Code) (Description, bool) {
	switch code {
	case InvalidBody:
		return Description{Invalid, "Invalid body", "The body is not one strict JSON value. Correct it before sending it again.", false}, true
	case InvalidRequest:
		return Description{Invalid, "Invalid request", "The request breaks a rule of the API. Correct it before sending it again.", false}, true
	case ScopeRequired:
		return Description{Invalid, "Scope required", "Name at least one of user_id, agent_id, run_id and app_id.", false}, true
	case IdempotencyKeyRequired:
		return Description{Invalid, "Idempotency key required", "Send one Idempotency-Key header with a value that is unique to this write.", false}, true
	case InvalidIdempotencyKey:
		return Description{Invalid, "Invalid idempotency key", "The Idempotency-Key must be one header line of 1 to 200 visible ASCII characters.", false}, true
	case InvalidCursor:
		return Description{Invalid, "Invalid cursor", "The cursor was not made by this endpoint for this query. Start again without it.", false}, true
	case InvalidFilter:
		return Description{Invalid, "Invalid filter", "The filter names an unknown field or operator, or is too large.", false}, true
	case InvalidAPIKey:
		return Description{Denied, "Invalid API key", "The API key is missing, malformed, unknown or revoked.", false}, true
	case APIKeyExpired:
		return Description{Denied, "API key expired", "The API key has expired. Use a new one.", false}, true
	case InsufficientPermission:
		return Description{Denied, "Insufficient permission", "The API key or its workspace does not allow this call.", false}, true
	case InsufficientCredits:
		return Description{Payment, "Insufficient credits", "The workspace cannot pay for this write. Top up, then send the same request with the same key.", true}, true
	case MemoryNotFound:
		return Description{NotFound, "Memory not found", "There is no such memory in this workspace.", false}, true
	case EventNotFound:
		return Description{NotFound, "Event not found", "There is no such event in this workspace.", false}, true
	case RouteNotFound:
		return Description{NotFound, "Not found", "There is no such route.", false}, true
	case MethodNotAllowed:
		return Description{Invalid, "Method not allowed", "The route does not take this method.", false}, true
	case WebhookNotFound:
		return Description{NotFound, "Webhook not found", "There is no such webhook in this workspace.", false}, true
	case WorkspaceNotFound:
		return Description{NotFound, "Workspace not found", "There is no such workspace, or it is being deleted.", false}, true
	case WebhookURLRefused:
		return Description{Invalid, "Webhook URL refused", "This URL may not be called. Use https and a public name or address, or ask the operator to allow the network.", false}, true
	case TooManyWebhooks:
		return Description{Conflict, "Too many webhooks", "A workspace can have 20 webhooks. Delete one first.", false}, true
	case InputExpired:
		return Description{Conflict, "Input expired", "The input of this event has been removed. Send it as a new request.", false}, true
	case IdempotencyConflict:
		return Description{Conflict, "Idempotency conflict", "This Idempotency-Key belongs to a different request, which is unchanged. Find out who reuses the key.", false}, true
	case IdempotencyInProgress:
		return Description{Conflict, "Idempotency key in progress", "Another request with this key is being decided. Send the same request again.", true}, true
	case VersionConflict:
		return Description{Conflict, "Version conflict", "The memory has another version than the one expected. Read it again.", false}, true
	case NotRetryable:
		return Description{Conflict, "Not retryable", "Only a failed event can be retried.", false}, true
	case NotCancellable:
		return Description{Conflict, "Not cancellable", "The event has committed its memories or has ended; it can no longer be cancelled.", false}, true
	case WorkspaceNotEmpty:
		return Description{Conflict, "Workspace not empty", "An import needs a workspace without memories, items, other imports and erases under way.", false}, true
	case PayloadTooLarge:
		return Description{Invalid, "Payload too large", "The body is larger than this route takes. Split it.", false}, true
	case UnsupportedMediaType:
		return Description{Invalid, "Unsupported media type", "Send the body as application/json, an import as application/x-ndjson.", false}, true
	case RateLimited:
		return Description{Unavailable, "Rate limited", "Too many requests. Send the same request and key after Retry-After.", true}, true
	case TooManyPending:
		return Description{Unavailable, "Too many pending", "Too many writes of this workspace wait. Send the same request and key after Retry-After.", true}, true
	case UnavailableNow:
		return Description{Unavailable, "Unavailable", "The service cannot take this request now and has kept nothing of it. Send the same request and key again.", true}, true
	case AcceptanceUnknown:
		return Description{Unavailable, "Acceptance unknown", "Whether the write was accepted could not be found out. Send the same request with the same key: it answers with the one receipt.", true}, true
	case NotImplemented:
		return Description{Invalid, "Not implemented", "This call has no meaning here.", false}, true
	case InternalError:
		return Description{Internal, "Internal error", "Something went wrong here. Send the same request and key again; report the request id if it stays.", true}, true
	}
	return Description{}, false
}
