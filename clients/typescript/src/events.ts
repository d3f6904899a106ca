/** Events: what became of writes, and waiting for their end. */
import { type Caller, type CallOptions, transient, type WriteOptions } from "./calls.js";
import { EventFailedError, HoldfastError, WaitTimeoutError } from "./errors.js";
import { encode, iterate, objectOf, pageOf, segment } from "./fields.js";
import { checkedKey, keyed } from "./keys.js";
import type { PageParams } from "./memories.js";
import type { Event, EventStatus, Page } from "./values.js";

const pollSeconds = 25; // one long-poll; proxies often cut at 30 s
const pollGraceMs = 10_000; // what the answer may take beyond that
const pauseMs = 500; // between polls that were answered at once without an end

export interface EventFilter {
  status?: EventStatus;
  /** memory_infer if it is left out. */
  type?: string;
}

export interface WaitOptions {
  signal?: AbortSignal | undefined;
  /** How long to wait at most; two minutes if it is left out. */
  waitMs?: number | undefined;
}

export class Events {
  readonly #caller: Caller;
  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** Reads one event, in whatever state it is. */
  async get(eventId: string, options: CallOptions = {}): Promise<Event> {
    const { value } = await this.#caller.json({ method: "GET", path: pathOf(eventId) }, options);
    return eventOf(value);
  }

  /** Lists events, newest first: inferred adds unless a type is given. */
  async list(params: EventFilter & PageParams = {}, options: CallOptions = {}): Promise<Page<Event>> {
    const query = { status: params.status, type: params.type, limit: params.limit, cursor: params.cursor };
    const { value } = await this.#caller.json({ method: "GET", path: "/v1/events", query }, options);
    return pageOf<Event>(value, "id");
  }

  /** All of them, page by page. */
  iterate(filter: EventFilter = {}, options: CallOptions & { pageSize?: number } = {}): AsyncGenerator<Event> {
    return iterate((cursor) => this.list({ ...filter, limit: options.pageSize ?? 100, cursor }, options));
  }

  /** The event of an idempotency key. null proves nothing: send the same request with the same key. */
  async byKey(key: string, options: CallOptions = {}): Promise<Event | null> {
    const { value } = await this.#caller.json({ method: "GET", path: "/v1/events", key: checkedKey(key) }, options);
    return pageOf<Event>(value, "id").results[0] ?? null;
  }

  /**
   * Waits for the end by long-polling and returns the event that succeeded. EventFailedError when it failed,
   * WaitTimeoutError when waitMs were not enough. While the service can't be reached it goes on trying until then.
   */
  async wait(eventId: string, options: WaitOptions = {}): Promise<Event> {
    const path = pathOf(eventId);
    const { clock } = this.#caller;
    const waitMs = options.waitMs ?? 120_000;
    const started = clock.now();
    let seen: Event | undefined;
    for (;;) {
      const asked = clock.now();
      const left = waitMs - (asked - started);
      if (!(left > 0)) throw new WaitTimeoutError(eventId, seen);
      const seconds = Math.min(pollSeconds, Math.floor(left / 1000));
      const bounds = { timeoutMs: seconds * 1000 + pollGraceMs, totalTimeoutMs: left, maxRetries: Infinity };
      try {
        const { value } = await this.#caller.json(
          { method: "GET", path, query: { wait: seconds } },
          { ...bounds, signal: options.signal },
        );
        seen = eventOf(value);
      } catch (problem) {
        if (!(problem instanceof HoldfastError && transient(problem))) throw problem;
        throw new WaitTimeoutError(eventId, seen, problem); // it was tried for as long as was left
      }
      if (seen.status === "SUCCEEDED") return seen;
      if (seen.status === "FAILED") throw new EventFailedError(seen);
      if (clock.now() - asked < seconds * 1000 || seconds === 0) {
        // It was not waited for; don't ask in a circle.
        const rest = waitMs - (clock.now() - started);
        await clock.sleep(Math.max(0, Math.min(rest, pauseMs + pauseMs * clock.chance())), options.signal);
      }
    }
  }

  /**
   * Authorises a new run of a failed event, at today's price. With the generation that was seen to fail (or a key of your
   * own) the call can be repeated without authorising another one.
   */
  async retry(eventId: string, params: { generation?: number } = {}, options: WriteOptions = {}): Promise<Event> {
    const { generation } = params;
    const body = generation === undefined ? undefined : encode({ generation });
    const named = generation === undefined || options.key !== undefined ? keyed(options.key) : {};
    const path = `${pathOf(eventId)}/retry`;
    const { value } = await this.#caller.json({ method: "POST", path, body, ...named, writes: true }, options);
    return eventOf(value);
  }

  /** Ends an event before it commits its memories; again for one that is cancelled already. */
  async cancel(eventId: string, options: CallOptions = {}): Promise<Event> {
    const request = { method: "POST", path: `${pathOf(eventId)}/cancel`, writes: true } as const;
    return eventOf((await this.#caller.json(request, options)).value);
  }
}

function eventOf(value: unknown): Event {
  return objectOf<Event>(value, "id", "status", "results");
}

function pathOf(eventId: string): string {
  return `/v1/events/${segment(eventId, "eventId")}`;
}
