/**
 * Calls: a request is sent until there is an answer, always with the same key, within bounds of count and time.
 *
 * What is sent again: a request without an answer, 429, 503, a 409 that says retryable, and other 5xx, unless the call must
 * not arrive twice and may have arrived. 402 is not: it needs a top-up first.
 */
import * as errors from "./errors.js";
import { Aborted, type Answer, exchange, type Fetch, Lost, NotSent, stream, TooLarge } from "./transport.js";

const maxAnswer = 64 * 2 ** 20; // a page of a hundred memories with all their metadata stays far below
const maxProblem = 2 ** 20; // a problem is some hundred bytes
const firstDelayMs = 500; // doubling, with full jitter
const longestDelayMs = 8000;

/** Options of one call. */
export interface CallOptions {
  /** Ends the call. A write that has been sent may happen all the same. */
  signal?: AbortSignal | undefined;
  /** Bounds one attempt. */
  timeoutMs?: number | undefined;
  /** Bounds the call with all its attempts and pauses. */
  totalTimeoutMs?: number | undefined;
  /** How often the request is sent again. */
  maxRetries?: number | undefined;
}

/** Options of one write. */
export interface WriteOptions extends CallOptions {
  /** The idempotency key; one is made where it is left out. */
  key?: string | undefined;
}

/** Time and chance, so that tests need none of them. */
export interface Clock {
  now(): number;
  sleep(ms: number, signal: AbortSignal | undefined): Promise<void>;
  chance(): number;
}

export interface Bounds {
  timeoutMs: number;
  totalTimeoutMs: number;
  maxRetries: number;
}

export interface Request {
  method: "GET" | "POST" | "PUT" | "DELETE";
  path: string;
  query?: Record<string, string | number | undefined>;
  headers?: Record<string, string>;
  body?: string | Uint8Array | undefined;
  contentType?: string;
  key?: string | undefined;
  /** The key was made here. */
  made?: boolean;
  /** The call changes something. */
  writes?: boolean;
  /** Arriving twice is not the same as once. */
  once?: boolean;
  /** What one answer may have, in bytes. */
  limit?: number;
}

type Failure = { error: errors.HoldfastError; maybe: boolean };

/** Sends requests for all parts of a client. */
export class Caller {
  readonly #apiKey: string;
  readonly #fetch: Fetch;
  readonly #bounds: Bounds;

  constructor(
    readonly baseUrl: string,
    apiKey: string,
    fetch: Fetch,
    bounds: Bounds,
    readonly clock: Clock,
  ) {
    this.#apiKey = apiKey;
    this.#fetch = fetch;
    this.#bounds = bounds;
  }

  get bounds(): Bounds {
    return { ...this.#bounds };
  }

  /** Returns the answer's value and the answer itself, which is 2xx. */
  async json(request: Request, options: CallOptions): Promise<{ value: unknown; answer: Answer }> {
    const answer = await this.send(request, options);
    try {
      return { value: JSON.parse(answer.text), answer };
    } catch {
      throw finish(unreadable("not JSON", answer.headers), request, request.writes === true);
    }
  }

  /** Returns a 2xx answer, or throws what became of the last attempt. */
  async send(request: Request, options: CallOptions): Promise<Answer> {
    const bounds = boundsOf(options, this.#bounds);
    const started = this.clock.now();
    let unknown = false;
    for (let retries = 0; ; retries++) {
      const left = bounds.totalTimeoutMs - (this.clock.now() - started);
      const got = await this.#attempt(request, Math.min(bounds.timeoutMs, left), options.signal);
      if (!("error" in got)) return got;
      unknown ||= got.maybe;
      const delay = this.#delay(retries, got.error.retryAfterMs);
      const spent = this.clock.now() - started;
      if (!again(got, request) || retries >= bounds.maxRetries || spent + delay >= bounds.totalTimeoutMs) {
        throw finish(got.error, request, unknown);
      }
      await this.clock.sleep(delay, options.signal); // the next attempt sees a signal that ended it
    }
  }

  /** Reads a large answer piece by piece; only its beginning is tried again. */
  async *pieces(request: Request, options: CallOptions): AsyncGenerator<Uint8Array> {
    const bounds = boundsOf(options, this.#bounds);
    const started = this.clock.now();
    for (let retries = 0; ; retries++) {
      let error: errors.HoldfastError;
      try {
        const got = await stream(this.#fetch, this.#exchange(request, bounds.timeoutMs, maxProblem, options.signal));
        if (got.pieces !== undefined) {
          try {
            yield* got.pieces;
          } catch (problem) {
            throw failureOf(problem, false).error;
          }
          return;
        }
        error = refusal(got.answer);
      } catch (problem) {
        if (problem instanceof errors.HoldfastError) throw problem;
        error = failureOf(problem, false).error;
      }
      const delay = this.#delay(retries, error.retryAfterMs);
      const spent = this.clock.now() - started;
      if (!transient(error) || retries >= bounds.maxRetries || spent + delay >= bounds.totalTimeoutMs) throw error;
      await this.clock.sleep(delay, options.signal);
    }
  }

  /** Returns an answer, or a failure and whether the write may have happened in spite of it. */
  async #attempt(request: Request, timeoutMs: number, signal: AbortSignal | undefined): Promise<Answer | Failure> {
    const writes = request.writes === true;
    let answer: Answer;
    try {
      answer = await exchange(this.#fetch, this.#exchange(request, timeoutMs, request.limit ?? maxAnswer, signal));
    } catch (problem) {
      return failureOf(problem, writes);
    }
    if (answer.status >= 200 && answer.status < 300) return answer;
    const error = refusal(answer);
    // UNAVAILABLE promises that nothing was kept; anything else beyond 500 promises nothing.
    const promised = error.code === "UNAVAILABLE" || error.code === "NOT_IMPLEMENTED";
    return { error, maybe: writes && answer.status >= 500 && !promised };
  }

  #exchange(request: Request, timeoutMs: number, limit: number, signal: AbortSignal | undefined) {
    const headers: Record<string, string> = {
      Authorization: `Bearer ${this.#apiKey}`,
      Accept: "application/json, application/problem+json",
      ...request.headers,
    };
    if (request.body !== undefined) headers["Content-Type"] = request.contentType ?? "application/json";
    if (request.key !== undefined) headers["Idempotency-Key"] = request.key;
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(request.query ?? {})) {
      if (value !== undefined) query.set(name, String(value));
    }
    const search = query.toString();
    const url = this.baseUrl + request.path + (search === "" ? "" : `?${search}`);
    return { method: request.method, url, headers, body: request.body, timeoutMs: Math.max(1, timeoutMs), limit, signal };
  }

  /** Retry-After is a floor; the jitter comes on top, so that those who were refused together do not return together. */
  #delay(retries: number, retryAfterMs: number | undefined): number {
    const jitter = this.clock.chance() * Math.min(longestDelayMs, firstDelayMs * 2 ** Math.min(retries, 10));
    return (retryAfterMs ?? 0) + jitter;
  }
}

/** The bounds of one call; a wrong one is a TypeError. */
export function boundsOf(options: CallOptions, otherwise: Bounds): Bounds {
  const bounds: Bounds = {
    timeoutMs: options.timeoutMs ?? otherwise.timeoutMs,
    totalTimeoutMs: options.totalTimeoutMs ?? otherwise.totalTimeoutMs,
    maxRetries: options.maxRetries ?? otherwise.maxRetries,
  };
  for (const name of ["timeoutMs", "totalTimeoutMs"] as const) {
    if (!(bounds[name] > 0 && bounds[name] < 86_400_000)) {
      throw new TypeError(`${name} is milliseconds, more than 0 and less than a day`);
    }
  }
  if (!(bounds.maxRetries >= 0 && (bounds.maxRetries <= 100 || bounds.maxRetries === Infinity))) {
    throw new TypeError("maxRetries is 0 to 100");
  }
  return bounds;
}

/** Sleeps; resolves early when the signal ends it. */
export function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener("abort", end, { once: true });
  });
}

function finish(error: errors.HoldfastError, request: Request, unknown: boolean): errors.HoldfastError {
  let last = error;
  if (unknown && transient(error)) {
    const named = request.key !== undefined && request.made === true ? `; its key is ${request.key}` : "";
    last = new errors.OutcomeUnknownError(
      `The answer to a write was lost, and the write may have happened${named}. ` +
        "Send the same request with the same key to find out.",
      {
        code: error.code,
        status: error.status,
        requestId: error.requestId,
        retryable: true,
        details: error.details,
        retryAfterMs: error.retryAfterMs,
        cause: error,
      },
    );
  }
  last.key = request.writes === true ? request.key : undefined;
  last.outcomeUnknown = unknown;
  return last;
}

/** Whether the same request may get another answer by itself. 501 and 402 are not: someone must act. */
export function transient(error: errors.HoldfastError): boolean {
  if (error instanceof errors.NetworkError) return true;
  const status = error.status ?? 0;
  return (status >= 500 && status !== 501) || status === 429 || (status === 409 && error.retryable);
}

function again(failure: Failure, request: Request): boolean {
  return transient(failure.error) && !(request.once === true && failure.maybe);
}

function failureOf(problem: unknown, writes: boolean): Failure {
  if (problem instanceof Aborted) return { error: aborted(problem.reason), maybe: writes && problem.sent };
  if (problem instanceof TooLarge) {
    return { error: unreadable("too large", problem.headers), maybe: writes && problem.status < 300 };
  }
  if (problem instanceof NotSent || problem instanceof Lost) {
    const where = problem instanceof NotSent ? "The service could not be reached" : "No whole answer came";
    const facts = { retryable: true, cause: problem.cause };
    const error = problem.timedOut
      ? new errors.RequestTimeoutError(`${where} in time.`, { code: "TIMEOUT", ...facts })
      : new errors.NetworkError(`${where}.`, { code: "NETWORK", ...facts });
    return { error, maybe: writes && problem instanceof Lost };
  }
  throw problem;
}

function aborted(reason: unknown): errors.AbortedError {
  return new errors.AbortedError("The call was ended by its signal.", { code: "ABORTED", cause: reason });
}

export function unreadable(what: string, headers?: Headers): errors.UnreadableAnswerError {
  return new errors.UnreadableAnswerError(`The answer can't be used: ${what}.`, {
    code: "UNREADABLE_ANSWER",
    requestId: headers?.get("x-request-id") ?? undefined,
  });
}

function classOf(status: number, code: string): new (message: string, facts: errors.Facts) => errors.APIError {
  if (code === "IDEMPOTENCY_CONFLICT") return errors.KeyConflictError;
  if (code === "VERSION_CONFLICT") return errors.VersionConflictError;
  switch (status) {
    case 401:
      return errors.AuthenticationError;
    case 402:
      return errors.InsufficientCreditsError;
    case 403:
      return errors.PermissionDeniedError;
    case 404:
      return errors.NotFoundError;
    case 409:
      return errors.ConflictError;
    case 410:
      return errors.InputExpiredError;
    case 429:
      return errors.RateLimitedError;
    case 501:
      return errors.InvalidRequestError;
    case 503:
      return errors.UnavailableError;
  }
  return status >= 400 && status < 500 ? errors.InvalidRequestError : errors.ServerError;
}

function refusal(answer: Answer): errors.APIError {
  let problem: Record<string, unknown> = {};
  if (answer.text.length <= maxProblem) {
    try {
      const value: unknown = JSON.parse(answer.text);
      if (isObject(value)) problem = value;
    } catch {
      // Something before the service has answered; the status says enough.
    }
  }
  // A browser shows no status of a redirect that is not followed.
  const redirected = answer.status < 400;
  const code = redirected ? "REDIRECTED" : text(problem["code"]) || `HTTP_${answer.status}`;
  const message = redirected
    ? "The service answered with a redirect, which is not followed: set its own address as baseUrl."
    : text(problem["message"]) || `The service answered ${answer.status}.`;
  const detail = text(problem["detail"]);
  const retryable = problem["retryable"];
  return new (classOf(answer.status, code))(detail === "" || detail === message ? message : `${message} ${detail}`, {
    code,
    status: answer.status,
    requestId: text(problem["request_id"]) || (answer.headers.get("x-request-id") ?? undefined),
    retryable: typeof retryable === "boolean" ? retryable : [429, 502, 503, 504].includes(answer.status),
    details: isObject(problem["details"]) ? problem["details"] : undefined,
    retryAfterMs: retryAfterMs(answer.headers.get("Retry-After")),
  });
}

/** Reads seconds or a date; undefined for anything else. */
export function retryAfterMs(header: string | null): number | undefined {
  const value = header?.trim() ?? "";
  if (/^[0-9]{1,9}$/.test(value)) return Number(value) * 1000;
  const then = /GMT$/.test(value) ? Date.parse(value) : NaN;
  return Number.isNaN(then) ? undefined : Math.max(0, then - Date.now());
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
