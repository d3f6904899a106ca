/**
 * One HTTP exchange over fetch: a deadline for the whole exchange and a bounded answer. Redirects are never followed, so
 * that the API key goes to the configured host only.
 */

export type Fetch = typeof fetch;

/** No connection could be made: the server has seen nothing of the request. */
export class NotSent {
  constructor(readonly timedOut: boolean, readonly cause: unknown) {}
}

/** The request was sent, as a whole or in part, and no whole answer came. */
export class Lost {
  constructor(readonly timedOut: boolean, readonly cause: unknown) {}
}

/** The answer is larger than allowed. */
export class TooLarge {
  constructor(readonly status: number, readonly headers: Headers) {}
}

/** The caller's signal ended the exchange. */
export class Aborted {
  constructor(readonly sent: boolean, readonly reason: unknown) {}
}

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
}

export interface Exchange {
  method: string;
  url: string;
  headers: Record<string, string>;
  body?: string | Uint8Array | undefined;
  timeoutMs: number;
  limit: number;
  signal?: AbortSignal | undefined;
}

// Where a connection fails before anything is sent. A runtime that tells no code leaves it open.
const beforeSending = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT"]);

/** Throws NotSent, Lost, TooLarge or Aborted. */
export async function exchange(fetch: Fetch, request: Exchange): Promise<Answer> {
  const bound = new Bound(request.timeoutMs, request.signal);
  try {
    const response = await begin(fetch, request, bound);
    const bytes = await whole(response, request.limit, bound);
    return { status: response.status, headers: response.headers, text: new TextDecoder().decode(bytes) };
  } finally {
    bound.end();
  }
}

/**
 * Does the same without reading a 2xx body, which comes in pieces, each within timeoutMs. Other answers have their text and
 * no pieces.
 */
export async function stream(
  fetch: Fetch,
  request: Exchange,
): Promise<{ answer: Answer; pieces: AsyncIterable<Uint8Array> | undefined }> {
  const bound = new Bound(request.timeoutMs, request.signal);
  let streaming = false;
  try {
    const response = await begin(fetch, request, bound);
    const answer: Answer = { status: response.status, headers: response.headers, text: "" };
    if (response.ok) {
      streaming = true;
      return { answer, pieces: piecesOf(response, bound, true) };
    }
    answer.text = new TextDecoder().decode(await whole(response, request.limit, bound));
    return { answer, pieces: undefined };
  } finally {
    if (!streaming) bound.end();
  }
}

async function begin(fetch: Fetch, request: Exchange, bound: Bound): Promise<Response> {
  if (request.signal?.aborted) throw new Aborted(false, request.signal.reason);
  try {
    return await fetch(request.url, {
      method: request.method,
      headers: request.headers,
      body: (request.body ?? null) as BodyInit | null,
      redirect: "manual",
      cache: "no-store",
      credentials: "omit",
      referrerPolicy: "no-referrer",
      signal: bound.signal,
    });
  } catch (problem) {
    throw bound.reasonFor(problem, beforeSending.has(codeOf(problem)));
  }
}

async function whole(response: Response, limit: number, bound: Bound): Promise<Uint8Array> {
  const read: Uint8Array[] = [];
  let size = 0;
  for await (const piece of piecesOf(response, bound, false)) {
    size += piece.byteLength;
    if (size > limit) throw new TooLarge(response.status, response.headers);
    read.push(piece);
  }
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const piece of read) {
    bytes.set(piece, at);
    at += piece.byteLength;
  }
  return bytes;
}

/** With perPiece the time is for each piece, and what the consumer takes between them doesn't count. */
async function* piecesOf(response: Response, bound: Bound, perPiece: boolean): AsyncGenerator<Uint8Array> {
  const reader = response.body?.getReader();
  let ended = false;
  try {
    while (reader !== undefined) {
      let next;
      if (perPiece) bound.resume();
      try {
        next = await reader.read();
      } catch (problem) {
        throw bound.reasonFor(problem, false);
      }
      if (next.done) break;
      if (perPiece) bound.pause();
      yield next.value;
    }
    ended = true;
  } finally {
    bound.end();
    if (!ended) await reader?.cancel().catch(() => undefined); // it may have failed by itself
  }
}

/** Ends an exchange by time or by the caller's signal, and knows which it was. */
class Bound {
  readonly #controller = new AbortController();
  readonly #timeoutMs: number;
  readonly #caller: AbortSignal | undefined;
  readonly #stop = (): void => this.#controller.abort();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #timedOut = false;

  constructor(timeoutMs: number, caller: AbortSignal | undefined) {
    this.#timeoutMs = timeoutMs;
    this.#caller = caller;
    caller?.addEventListener("abort", this.#stop, { once: true });
    this.resume();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Stops the clock; resume gives the whole time again. */
  pause(): void {
    clearTimeout(this.#timer);
  }

  resume(): void {
    this.pause();
    this.#timer = setTimeout(() => {
      this.#timedOut = true;
      this.#controller.abort();
    }, this.#timeoutMs);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#caller?.removeEventListener("abort", this.#stop);
  }

  reasonFor(problem: unknown, unsent: boolean): NotSent | Lost | Aborted {
    if (this.#caller?.aborted) return new Aborted(true, this.#caller.reason);
    return unsent ? new NotSent(this.#timedOut, problem) : new Lost(this.#timedOut, problem);
  }
}

function codeOf(problem: unknown): string {
  const cause = problem instanceof Error ? problem.cause : undefined;
  const code = typeof cause === "object" && cause !== null && "code" in cause ? cause.code : undefined;
  return typeof code === "string" ? code : "";
}
