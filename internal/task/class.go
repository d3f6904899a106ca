package task

// Class is the class of a failure. It is given once, where the error happens, and decides what comes next.
type Class string

// The classes (DESIGN, "Failure classes").
const (
	ProviderTimeout     Class = "provider_timeout"
	ProviderUnavailable Class = "provider_unavailable"
	ProviderRateLimited Class = "provider_rate_limited"
	ProviderRejected    Class = "provider_rejected"
	OutputInvalid       Class = "output_invalid"
	ExtractionRejected  Class = "extraction_rejected"
	InputRejected       Class = "input_rejected"
	PayloadUnreadable   Class = "payload_unreadable"
	InternalFailure     Class = "internal"
	ProjectionFailed    Class = "projection_failed"
	ProjectionRejected  Class = "projection_rejected"
	LeaseLost           Class = "lease_lost"
	Shutdown            Class = "shutdown"
	Crash               Class = "crash"
	Cancelled           Class = "cancelled"
	DeliveryFailed      Class = "delivery_failed"
	EndpointDisabled    Class = "endpoint_disabled"
)

// ErrorCode is the stable public code of a failed or retrying event.
type ErrorCode string

// The codes of the catalogue of event errors.
const (
	CodeProviderTimeout     ErrorCode = "PROVIDER_TIMEOUT"
	CodeProviderUnavailable ErrorCode = "PROVIDER_UNAVAILABLE"
	CodeProviderRateLimited ErrorCode = "PROVIDER_RATE_LIMITED"
	CodeProviderRejected    ErrorCode = "PROVIDER_REJECTED"
	CodeOutputInvalid       ErrorCode = "OUTPUT_INVALID"
	CodeExtractionRejected  ErrorCode = "EXTRACTION_REJECTED"
	CodeInternal            ErrorCode = "INTERNAL"
	CodeProjectionFailed    ErrorCode = "PROJECTION_FAILED"
	CodeAttemptsExhausted   ErrorCode = "ATTEMPTS_EXHAUSTED"
	CodeCancelled           ErrorCode = "CANCELLED"
	CodeInputUnreadable     ErrorCode = "INPUT_UNREADABLE"
	CodePayloadUnreadable   ErrorCode = "PAYLOAD_UNREADABLE"
	CodeWebhookUndelivered  ErrorCode = "WEBHOOK_UNDELIVERED"
	CodeWebhookDisabled     ErrorCode = "WEBHOOK_DISABLED"
)

// Explanation is what the catalogue says of an event error: a sentence without any provider's text, whether a
// retry by hand may help, and what the reader should do.
type Explanation struct {
	Message   string
	Retryable bool
	Action    string
}

// Explain returns the catalogue's entry of code, that of INTERNAL for an unknown one.
func Explain(code ErrorCode) Explanation {
	switch code {
	case CodeProviderTimeout:
		return Explanation{"The model did not answer in time.", true, "Retry by hand later."}
	case CodeProviderUnavailable:
		return Explanation{"The model provider could not be reached or answered with a server error.", true, "Retry by hand later."}
	case CodeProviderRateLimited:
		return Explanation{"The model provider refused more work for now.", true, "Retry by hand later; ask the operator to raise the provider's limits if it stays."}
	case CodeProviderRejected:
		return Explanation{"The model provider refused the operator's credentials, model or quota.", true, "Tell the operator; retry by hand once it is mended."}
	case CodeOutputInvalid:
		return Explanation{"The model's answer did not have the required form, so nothing of it was used.", true, "Retry by hand, or send a shorter conversation."}
	case CodeExtractionRejected:
		return Explanation{"The model refused this input or could not take it. No memory was committed.", false, "Change the input and send it as a new request."}
	case CodeProjectionFailed:
		return Explanation{"The memories are stored; making them searchable by meaning is being repeated.", true, "Wait; nothing is lost."}
	case CodeAttemptsExhausted:
		return Explanation{"The workers that ran this task crashed too often.", true, "Retry by hand; tell the operator if it happens again."}
	case CodeCancelled:
		return Explanation{"The event was cancelled before it stored anything.", true, "Retry by hand if it was cancelled by mistake."}
	case CodeInputUnreadable:
		return Explanation{"The input could not be read.", false, "Correct it and send it as a new request; tell the operator if it was no import."}
	case CodePayloadUnreadable:
		return Explanation{"The stored input is encrypted and could not be opened.", true, "Tell the operator; retry by hand once the encryption keys are corrected, or send it as a new request."}
	case CodeWebhookUndelivered:
		return Explanation{"The webhook's receiver could not be reached or did not answer with 2xx.", true, "Look at the webhook's deliveries; retry by hand or replay once the receiver is mended."}
	case CodeWebhookDisabled:
		return Explanation{"The webhook is disabled, so nothing is delivered to it.", true, "Enable the webhook, then retry by hand or replay."}
	case CodeInternal:
	}
	return Explanation{"Something went wrong inside the service.", true, "Retry by hand; tell the operator if it happens again."}
}

// Classes returns every class, in the order of the design.
func Classes() []Class {
	return []Class{
		ProviderTimeout, ProviderUnavailable, ProviderRateLimited, ProviderRejected, OutputInvalid, ExtractionRejected,
		InputRejected, PayloadUnreadable, InternalFailure, ProjectionFailed, ProjectionRejected, LeaseLost, Shutdown, Crash, Cancelled,
		DeliveryFailed, EndpointDisabled,
	}
}

// ErrorCodes returns every code that an event can show, in the order of the catalogue.
func ErrorCodes() []ErrorCode {
	return []ErrorCode{
		CodeProviderTimeout, CodeProviderUnavailable, CodeProviderRateLimited, CodeProviderRejected, CodeOutputInvalid,
		CodeExtractionRejected, CodeProjectionFailed, CodeAttemptsExhausted, CodeCancelled, CodeInputUnreadable,
		CodePayloadUnreadable,
		CodeWebhookUndelivered, CodeWebhookDisabled, CodeInternal,
	}
}

// CodeOf returns the public code of a failure of class.
func CodeOf(class Class) ErrorCode {
	switch class {
	case ProviderTimeout:
		return CodeProviderTimeout
	case ProviderUnavailable:
		return CodeProviderUnavailable
	case ProviderRateLimited:
		return CodeProviderRateLimited
	case ProviderRejected:
		return CodeProviderRejected
	case OutputInvalid:
		return CodeOutputInvalid
	case ExtractionRejected:
		return CodeExtractionRejected
	case ProjectionFailed, ProjectionRejected:
		return CodeProjectionFailed
	case Crash:
		return CodeAttemptsExhausted
	case Cancelled:
		return CodeCancelled
	case InputRejected:
		return CodeInputUnreadable
	case PayloadUnreadable:
		return CodePayloadUnreadable
	case DeliveryFailed:
		return CodeWebhookUndelivered
	case EndpointDisabled:
		return CodeWebhookDisabled
	case InternalFailure, LeaseLost, Shutdown:
		return CodeInternal
	}
	return CodeInternal
}
