/** Memories: reading, searching, changing, deleting, erasing. */
import type { Caller, CallOptions, Request, WriteOptions } from "./calls.js";
import { encode, iterate, listOf, moment, objectOf, pageOf, replayed, scopeOf, segment } from "./fields.js";
import { keyed } from "./keys.js";
import type { Change, Erased, HistoryEntry, Memory, Page, Receipt, Scope } from "./values.js";

export interface PageParams {
  /** 1 to 100, 50 if it is left out. */
  limit?: number | undefined;
  /** The next_cursor of the page before, for the same list. */
  cursor?: string | undefined;
}

export interface SearchParams extends Scope {
  limit?: number;
  min_score?: number;
  mode?: "hybrid" | "lexical" | "semantic";
  latest_only?: boolean;
  filters?: Record<string, unknown>;
  explain?: boolean;
}

export interface Changes {
  content?: string;
  /** Takes the place of all metadata. */
  metadata?: Record<string, unknown>;
  /** null for never. */
  expires_at?: string | Date | null;
  /** The version that the memory must have. */
  version?: number;
}

export class Memories {
  readonly #caller: Caller;
  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** Reads one live memory. */
  async get(memoryId: string, options: CallOptions = {}): Promise<Memory> {
    const { value } = await this.#caller.json({ method: "GET", path: pathOf(memoryId) }, options);
    return objectOf<Memory>(value, "id", "memory");
  }

  /** Lists the live memories of a scope, newest first; at least one scope id is required. */
  async list(params: Scope & PageParams, options: CallOptions = {}): Promise<Page<Memory>> {
    const query = { ...scopeOf(params), limit: params.limit, cursor: params.cursor };
    const { value } = await this.#caller.json({ method: "GET", path: "/v1/memories", query }, options);
    return pageOf<Memory>(value, "id");
  }

  /** All of them, page by page. */
  iterate(scope: Scope, options: CallOptions & { pageSize?: number } = {}): AsyncGenerator<Memory> {
    const checked = scopeOf(scope);
    return iterate((cursor) => this.list({ ...checked, limit: options.pageSize ?? 100, cursor }, options));
  }

  /** Finds what answers the query best, best first, with its score. */
  async search(query: string, params: SearchParams, options: CallOptions = {}): Promise<Memory[]> {
    const body = encode({ ...params, ...scopeOf(params), query });
    const { value } = await this.#caller.json({ method: "POST", path: "/v1/memories/search", body }, options);
    return listOf<Memory>(value, "id");
  }

  /** Changes what is given. With version only if the memory has that version (VersionConflictError). */
  async update(memoryId: string, changes: Changes, options: WriteOptions = {}): Promise<Change> {
    return this.#change("PUT", memoryId, encode({ ...changes, expires_at: moment(changes.expires_at) }), options);
  }

  /** Deletes one memory; its history stays until its scope is erased. */
  async delete(memoryId: string, options: WriteOptions = {}): Promise<Change> {
    return this.#change("DELETE", memoryId, undefined, options);
  }

  async #change(method: "PUT" | "DELETE", id: string, body: string | undefined, options: WriteOptions): Promise<Change> {
    const { key, made } = keyed(options.key);
    const request: Request = { method, path: pathOf(id), body, key, made, writes: true };
    const { value, answer } = await this.#caller.json(request, options);
    return { ...objectOf<Change>(value, "id", "version"), key, replayed: replayed(answer) };
  }

  /** What became of a memory, oldest change first; of a deleted one too. */
  async history(memoryId: string, params: PageParams = {}, options: CallOptions = {}): Promise<Page<HistoryEntry>> {
    const query = { limit: params.limit, cursor: params.cursor };
    const { value } = await this.#caller.json({ method: "GET", path: `${pathOf(memoryId)}/history`, query }, options);
    return pageOf<HistoryEntry>(value, "id");
  }

  /** Changes up to 1,000 memories. The event's results name each one, with `error` for one that could not be changed. */
  async updateBatch(changes: readonly (Changes & { id: string })[], options: WriteOptions = {}): Promise<Receipt> {
    const memories = changes.map((one) => ({ ...one, expires_at: moment(one.expires_at) }));
    return this.#batch("PUT", { memories }, options);
  }

  /** Deletes up to 1,000 memories. */
  async deleteBatch(memoryIds: readonly string[], options: WriteOptions = {}): Promise<Receipt> {
    return this.#batch("DELETE", { ids: memoryIds }, options);
  }

  async #batch(method: "PUT" | "DELETE", body: Record<string, unknown>, options: WriteOptions): Promise<Receipt> {
    return receipt(this.#caller, { method, path: "/v1/memories/batch", body: encode(body) }, options);
  }

  /**
   * Erases everything whose scope matches all the ids given, for good; needs the permission admin. A member that is
   * undefined or null is a TypeError, so that a missing value can't widen what is erased.
   */
  async eraseScope(scope: Scope, options: WriteOptions = {}): Promise<Erased> {
    return erased(this.#caller, "/v1/memories", scopeOf(scope, true), options);
  }
}

/** Sends a keyed write that is answered with a receipt. */
export async function receipt(caller: Caller, request: Request, options: WriteOptions): Promise<Receipt> {
  const { key, made } = keyed(options.key);
  const { value, answer } = await caller.json({ ...request, key, made, writes: true }, options);
  return { ...objectOf<Receipt>(value, "event_id", "status"), key, replayed: replayed(answer) };
}

export async function erased(
  caller: Caller,
  path: string,
  query: Record<string, string>,
  options: WriteOptions,
): Promise<Erased> {
  const { key, made } = keyed(options.key);
  const { value, answer } = await caller.json({ method: "DELETE", path, query, key, made, writes: true }, options);
  const got = objectOf<Partial<Erased> & { event_id: string }>(value, "event_id");
  return {
    event_id: got.event_id,
    done: answer.status === 200,
    deleted: got.deleted ?? null,
    cancelled: got.cancelled ?? null,
    key,
    replayed: replayed(answer),
  };
}

function pathOf(memoryId: string): string {
  return `/v1/memories/${segment(memoryId, "memoryId")}`;
}
