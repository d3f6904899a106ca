/** The client. */
import { type Bounds, boundsOf, Caller, type CallOptions, type Clock, sleep, type WriteOptions } from "./calls.js";
import { HoldfastError } from "./errors.js";
import { Events, type WaitOptions } from "./events.js";
import { encode, moment, objectOf, replayed, scopeOf } from "./fields.js";
import { Items } from "./items.js";
import { keyed } from "./keys.js";
import { Memories, receipt } from "./memories.js";
import type { Fetch } from "./transport.js";
import type { Category, Event, Health, Messages, Receipt, Scope, Stored } from "./values.js";
import { CreditBooks, Entities, Exports, Imports } from "./workspace.js";

const defaults: Bounds = { timeoutMs: 30_000, totalTimeoutMs: 60_000, maxRetries: 4 };

export interface ClientOptions {
  /** The service's address. */
  baseUrl: string;
  /** A key of the workspace. */
  apiKey: string;
  /** Bounds one attempt; 30 s if it is left out. */
  timeoutMs?: number;
  /** Bounds a call with all its attempts and pauses; 60 s if it is left out. */
  totalTimeoutMs?: number;
  /** How often a request is sent again; 4 if it is left out. */
  maxRetries?: number;
  /** Another fetch than the global one. */
  fetch?: Fetch;
  /** Another time and chance, for tests. */
  clock?: Clock;
}

export interface VerbatimParams extends Scope {
  /** Kept with each memory, value for value. */
  metadata?: Record<string, unknown>;
  /** When it took place. */
  event_date?: string | Date;
  /** From when on the memories are not shown any more. */
  expires_at?: string | Date;
}

export interface AddParams extends VerbatimParams {
  /** Wishes for the extraction of this conversation. */
  instructions?: string;
  /** What the memories may be filed under, in place of the workspace's categories. */
  categories?: Category[];
  /** Take effect after the earlier ordered writes of the same scope; true if it is left out. */
  ordered?: boolean;
}

/**
 * A client of one Holdfast, for one workspace. Every write has an idempotency key, made here unless one is given, and every
 * attempt of it the same one.
 */
export class Client {
  readonly memories: Memories;
  readonly events: Events;
  readonly items: Items;
  readonly entities: Entities;
  readonly credits: CreditBooks;
  readonly exports: Exports;
  readonly imports: Imports;
  readonly #caller: Caller;

  constructor(options: ClientOptions) {
    if (typeof options.apiKey !== "string" || !/^[\x21-\x7e]{1,1000}$/.test(options.apiKey)) {
      throw new TypeError("apiKey must be a key like hfk_…, without spaces");
    }
    const caller = new Caller(
      addressOf(options.baseUrl),
      options.apiKey,
      options.fetch ?? ((input, init) => fetch(input, init)),
      boundsOf(options, defaults),
      options.clock ?? { now: () => performance.now(), sleep, chance: Math.random },
    );
    this.#caller = caller;
    this.memories = new Memories(caller);
    this.events = new Events(caller);
    this.items = new Items(caller);
    this.entities = new Entities(caller);
    this.credits = new CreditBooks(caller);
    this.exports = new Exports(caller);
    this.imports = new Imports(caller);
  }

  /**
   * Remembers a conversation. Returns when the write is accepted; a model extracts memories after that, and the event tells
   * the outcome. At least one scope id is required. The key is in the receipt and in every error.
   */
  async add(messages: Messages, params: AddParams, options: WriteOptions = {}): Promise<Receipt> {
    return receipt(this.#caller, { method: "POST", path: "/v1/memories", body: bodyOf(messages, params) }, options);
  }

  /**
   * Does as add and waits for the event's success. EventFailedError when it failed, WaitTimeoutError when it goes on; both
   * have the key.
   */
  async addAndWait(messages: Messages, params: AddParams, options: WriteOptions & WaitOptions = {}): Promise<Event> {
    const accepted = await this.add(messages, params, options);
    try {
      return await this.events.wait(accepted.event_id, { waitMs: options.waitMs, signal: options.signal });
    } catch (problem) {
      if (problem instanceof HoldfastError) problem.key = accepted.key;
      throw problem;
    }
  }

  /** Stores each message that says something as one memory, byte for byte, at once and without a model. */
  async addVerbatim(messages: Messages, params: VerbatimParams, options: WriteOptions = {}): Promise<Stored> {
    const { key, made } = keyed(options.key);
    const body = bodyOf(messages, params, { infer: false });
    const request = { method: "POST", path: "/v1/memories", body, key, made, writes: true } as const;
    const { value, answer } = await this.#caller.json(request, options);
    return { ...objectOf<Stored>(value, "results", "event_id"), key, replayed: replayed(answer) };
  }

  /** Tells whether the service keeps up, and why not. */
  async health(options: CallOptions = {}): Promise<Health> {
    const { value } = await this.#caller.json({ method: "GET", path: "/v1/health" }, options);
    return objectOf<Health>(value, "status", "reasons");
  }
}

function bodyOf(messages: Messages, params: AddParams, more: Record<string, unknown> = {}): string {
  return encode({
    ...params,
    ...scopeOf(params),
    ...more,
    event_date: moment(params.event_date),
    expires_at: moment(params.expires_at),
    messages,
  });
}

/** The address without a slash at its end; a wrong one is a TypeError that doesn't show it. */
function addressOf(baseUrl: string): string {
  let url: URL | undefined;
  try {
    url = new URL(baseUrl);
  } catch {
    // answered below
  }
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw new TypeError("baseUrl must be like https://memory.example");
  }
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    throw new TypeError("baseUrl must have no credentials, query or fragment");
  }
  return url.href.replace(/\/+$/, "");
}
