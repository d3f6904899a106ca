/**
 * What can go wrong, one class for each thing that a caller does about it. No error holds the API key or a text that was
 * sent.
 */
import type { Event } from "./values.js";

/** What is known of a failure; the members of the same names in HoldfastError say what they mean. */
export interface Facts {
  code?: string | undefined;
  status?: number | undefined;
  requestId?: string | undefined;
  retryable?: boolean | undefined;
  details?: Record<string, unknown> | undefined;
  retryAfterMs?: number | undefined;
  key?: string | undefined;
  outcomeUnknown?: boolean | undefined;
  cause?: unknown;
}

/** The base of all errors of this package, except TypeError for arguments that are wrong. */
export class HoldfastError extends Error {
  /** Stable; match on it. */
  readonly code: string;
  /** The HTTP status, undefined without an answer. */
  readonly status: number | undefined;
  readonly requestId: string | undefined;
  /** Whether the same request, with the same key, may succeed later. */
  readonly retryable: boolean;
  readonly details: Record<string, unknown>;
  /** How long the service asks to wait. */
  readonly retryAfterMs: number | undefined;
  /** The idempotency key of the call, if it had one. */
  key: string | undefined;
  /**
   * The write may have happened: an attempt was sent and its answer was lost. Sending the same request with the same key
   * tells, and never writes twice.
   */
  outcomeUnknown: boolean;

  constructor(message: string, facts: Facts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.name = new.target.name;
    this.code = facts.code ?? "";
    this.status = facts.status;
    this.requestId = facts.requestId;
    this.retryable = facts.retryable ?? false;
    this.details = facts.details ?? {};
    this.retryAfterMs = facts.retryAfterMs;
    this.key = facts.key;
    this.outcomeUnknown = facts.outcomeUnknown ?? false;
  }
}

/** The service answered with a refusal or a failure. */
export class APIError extends HoldfastError {}

/** The request breaks a rule (400, 405, 413, 415, 501). Correct it; details names place and rule. */
export class InvalidRequestError extends APIError {}

/** The API key is missing, unknown, revoked or expired (401). */
export class AuthenticationError extends APIError {}

/** The workspace can't pay (402). Top up, then send the same request with the same key. */
export class InsufficientCreditsError extends APIError {
  get required(): number | undefined {
    return number(this.details["required"]);
  }
  get available(): number | undefined {
    return number(this.details["available"]);
  }
}

/** The API key lacks the permission of the call, or its workspace is suspended (403). */
export class PermissionDeniedError extends APIError {}

/** There is no such memory, event or route in this workspace (404). */
export class NotFoundError extends APIError {}

/** The input of a failed event, or an export, has been removed (410). Send it as a new request. */
export class InputExpiredError extends APIError {}

/** The present state does not allow the call (409). */
export class ConflictError extends APIError {}

/** The idempotency key belongs to a different request, which is unchanged. Find out who reuses the key. */
export class KeyConflictError extends ConflictError {}

/** The memory has another version than the expected one. Read it again. */
export class VersionConflictError extends ConflictError {}

/** Too many requests, or too many writes that wait (429). The same request and key after retryAfterMs. */
export class RateLimitedError extends APIError {}

/** The service can't take the request now (503). The same request and key after retryAfterMs. */
export class UnavailableError extends APIError {}

/** The service or something before it failed (other 5xx), or answered what this client doesn't know. */
export class ServerError extends APIError {}

/** No answer came, and nothing was written: the call only reads, or nothing had been sent. */
export class NetworkError extends HoldfastError {}

/** No answer came in time, and nothing was written. */
export class RequestTimeoutError extends NetworkError {}

/** The caller's signal ended the call; its reason is the cause. With outcomeUnknown the write may have happened. */
export class AbortedError extends HoldfastError {}

/**
 * The answer to a write was lost: it may have happened. Send the same request with the same key: it answers with the one
 * receipt, or writes if nothing had been written. `client.events.byKey(error.key)` tells too, but its null proves nothing.
 * key is undefined for the calls that take none (items.correct, items.forget, events.cancel).
 */
export class OutcomeUnknownError extends HoldfastError {}

/** The answer is larger than allowed or not what the contract says. With outcomeUnknown it was a write's. */
export class UnreadableAnswerError extends HoldfastError {}

/**
 * The event ended FAILED: nothing was stored and nothing charged. retryable says that
 * `client.events.retry(event.id, { generation: event.generation })` may help.
 */
export class EventFailedError extends HoldfastError {
  readonly event: Event;
  constructor(event: Event) {
    super(event.error?.message ?? "The event failed.", {
      code: event.error?.code ?? "FAILED",
      retryable: event.error?.retryable ?? false,
    });
    this.event = event;
  }
  get failureClass(): string {
    return this.event.error?.class ?? "";
  }
  get action(): string {
    return this.event.error?.action ?? "";
  }
}

/** The event had not ended when the time to wait was over. It goes on; wait again with eventId. */
export class WaitTimeoutError extends HoldfastError {
  readonly eventId: string;
  /** The event as it was last seen. */
  readonly event: Event | undefined;
  constructor(eventId: string, event: Event | undefined, cause?: unknown) {
    super("The event had not ended when the time to wait was over. It goes on.", {
      code: "WAIT_TIMEOUT",
      retryable: true,
      cause,
    });
    this.eventId = eventId;
    this.event = event;
  }
}

function number(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}
