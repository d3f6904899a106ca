/** Items: memory of what a caller keeps under ids of its own. account is the end user; records have it as user_id. */
import type { Caller, CallOptions, Request, WriteOptions } from "./calls.js";
import { encode, headerText, listOf, moment, objectOf } from "./fields.js";
import { keyed } from "./keys.js";
import type { Corrected, Forgotten, Grepped, ItemsPage, ItemsReceipt, Memory, NewItem } from "./values.js";

/** Exactly one of them. */
export type Forget = { ids: readonly string[] } | { session: string } | { all: true };

export type ItemsRead = { ids: readonly string[] } | { session: string; after?: string; limit?: number };

export class Items {
  readonly #caller: Caller;
  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /**
   * Keeps 1 to 500 items. The same content again changes nothing, other content is an edit. The key names the items without
   * an id, by their place in the call; it does not name the call, and there is no conflict.
   */
  async add(account: string, items: readonly NewItem[], options: WriteOptions = {}): Promise<ItemsReceipt> {
    const named = keyed(options.key);
    const body = { items: items.map((item) => ({ ...item, at: moment(item.at) })) };
    const value = await this.#post("add", account, body, options, { ...named, writes: true });
    return { ...objectOf<ItemsReceipt>(value, "items", "queued", "pending"), key: named.key };
  }

  /**
   * Erases items with all that was made of them: exactly one of ids, session and all. What an attempt without an answer has
   * erased is not counted again.
   */
  async forget(account: string, which: Forget, options: CallOptions = {}): Promise<Forgotten> {
    const names = Object.keys(which);
    const value: unknown = Object.values(which)[0];
    const right =
      names.length === 1 &&
      ((names[0] === "all" && value === true) ||
        (names[0] === "ids" && Array.isArray(value)) ||
        (names[0] === "session" && typeof value === "string"));
    if (!right) throw new TypeError("name exactly one of ids, session and all: true");
    return objectOf<Forgotten>(await this.#post("forget", account, { ...which }, options, { writes: true }), "events");
  }

  /**
   * Retracts a memory and, with a text, stores that in its place. Sent twice the second one is NotFoundError, so that it is
   * not sent again once it may have arrived: then it is OutcomeUnknownError.
   */
  async correct(account: string, memoryId: string, text?: string, options: CallOptions = {}): Promise<Corrected> {
    const value = await this.#post("correct", account, { id: memoryId, text }, options, { writes: true, once: true });
    return objectOf<Corrected>(value, "id", "event_id");
  }

  /** Finds the memories of an account that answer the query best. */
  async search(
    account: string,
    query: string,
    params: { limit?: number; session?: string } = {},
    options: CallOptions = {},
  ): Promise<Memory[]> {
    return listOf<Memory>(await this.#post("search", account, { ...params, query }, options), "id");
  }

  /** Finds items and memories whose text contains the pattern, or matches it (RE2). */
  async grep(
    account: string,
    pattern: string,
    params: { regex?: boolean; limit?: number; session?: string } = {},
    options: CallOptions = {},
  ): Promise<Grepped> {
    const value = await this.#post("grep", account, { ...params, pattern }, options);
    return objectOf<Grepped>(value, "items", "results", "truncated");
  }

  /** Reads items: ids in that order, or a session by time, page by page with after. */
  async read(account: string, which: ItemsRead, options: CallOptions = {}): Promise<ItemsPage> {
    return objectOf<ItemsPage>(await this.#post("read", account, { ...which }, options), "items");
  }

  async #post(
    name: string,
    account: string,
    body: Record<string, unknown>,
    options: CallOptions,
    facts: Partial<Request> = {},
  ): Promise<unknown> {
    const headers = { "X-Twin-Account": headerText(account, "account") };
    const request: Request = { method: "POST", path: `/v1/memory/${name}`, headers, body: encode(body), ...facts };
    return (await this.#caller.json(request, options)).value;
  }
}
