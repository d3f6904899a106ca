/** What belongs to the workspace as a whole: entities, credits, exports and imports. */
import type { Caller, CallOptions, WriteOptions } from "./calls.js";
import { NetworkError } from "./errors.js";
import { iterate, objectOf, pageOf, segment } from "./fields.js";
import { erased, type PageParams, receipt } from "./memories.js";
import type { CreditEntry, Credits, Entity, EntityType, Erased, Page, Receipt } from "./values.js";

const maxImport = 64 * 2 ** 20; // bytes; the service takes no more
const uploadMs = 660_000; // for one attempt; a little longer than the service takes for a snapshot
const footerBytes = 512; // more than the last line of a snapshot has

/** The users, agents, runs and apps that have live memories. */
export class Entities {
  readonly #caller: Caller;
  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** By type, then by id. */
  async list(params: { type?: EntityType } & PageParams = {}, options: CallOptions = {}): Promise<Page<Entity>> {
    const query = { type: params.type, limit: params.limit, cursor: params.cursor };
    const { value } = await this.#caller.json({ method: "GET", path: "/v1/entities", query }, options);
    return pageOf<Entity>(value, "id");
  }

  /** All of them, page by page. */
  iterate(filter: { type?: EntityType } = {}, options: CallOptions & { pageSize?: number } = {}): AsyncGenerator<Entity> {
    return iterate((cursor) => this.list({ ...filter, limit: options.pageSize ?? 100, cursor }, options));
  }

  /** NotFoundError if it has no live memories. */
  async get(type: EntityType, entityId: string, options: CallOptions = {}): Promise<Entity> {
    const { value } = await this.#caller.json({ method: "GET", path: pathOf(type, entityId) }, options);
    return objectOf<Entity>(value, "type", "id");
  }

  /** Erases everything of one user, agent, run or app, for good; needs the permission admin. */
  async erase(type: EntityType, entityId: string, options: WriteOptions = {}): Promise<Erased> {
    return erased(this.#caller, pathOf(type, entityId), {}, options);
  }
}

export class CreditBooks {
  readonly #caller: Caller;
  constructor(caller: Caller) {
    this.#caller = caller;
  }

  async balance(options: CallOptions = {}): Promise<Credits> {
    const { value } = await this.#caller.json({ method: "GET", path: "/v1/credits" }, options);
    return objectOf<Credits>(value, "available", "held");
  }

  /** The journal, newest first. */
  async entries(params: PageParams = {}, options: CallOptions = {}): Promise<Page<CreditEntry>> {
    const query = { limit: params.limit, cursor: params.cursor };
    const { value } = await this.#caller.json({ method: "GET", path: "/v1/credits/entries", query }, options);
    return pageOf<CreditEntry>(value, "type");
  }

  /** The whole journal, page by page. */
  iterate(options: CallOptions & { pageSize?: number } = {}): AsyncGenerator<CreditEntry> {
    return iterate((cursor) => this.entries({ limit: options.pageSize ?? 100, cursor }, options));
  }
}

export class Exports {
  readonly #caller: Caller;
  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** Asks for a snapshot of the workspace; wait for the event, then read it. */
  async create(options: WriteOptions = {}): Promise<Receipt> {
    return receipt(this.#caller, { method: "POST", path: "/v1/exports" }, options);
  }

  /**
   * Yields the snapshot in pieces, NDJSON in all. NetworkError at its end when it is cut off; read it again. Only its
   * beginning is tried again, and each piece has the time of an attempt.
   */
  async *read(eventId: string, options: CallOptions = {}): AsyncGenerator<Uint8Array> {
    const path = `/v1/exports/${segment(eventId, "eventId")}`;
    const headers = { Accept: "application/x-ndjson, application/problem+json" };
    let end: number[] = [];
    for await (const piece of this.#caller.pieces({ method: "GET", path, headers }, options)) {
      end = [...end, ...piece.subarray(Math.max(0, piece.length - footerBytes))].slice(-footerBytes);
      yield piece;
    }
    const text = new TextDecoder().decode(new Uint8Array(end));
    const last = text.slice(text.lastIndexOf("\n", text.length - 2) + 1);
    if (!text.endsWith("\n") || !last.startsWith('{"type":"footer"')) {
      throw new NetworkError("The snapshot is cut off: it has no footer.", { code: "CUT_OFF", retryable: true });
    }
  }
}

export class Imports {
  readonly #caller: Caller;
  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /**
   * Reads a snapshot of at most 64 MiB into the workspace, which must be empty. The event fails when a line of it is wrong,
   * and names the line in `progress`.
   */
  async create(snapshot: Uint8Array | string, options: WriteOptions = {}): Promise<Receipt> {
    const body = typeof snapshot === "string" ? new TextEncoder().encode(snapshot) : snapshot;
    if (!(body instanceof Uint8Array)) throw new TypeError("snapshot must be a Uint8Array or a text");
    if (body.byteLength > maxImport) throw new TypeError("a snapshot has at most 64 MiB");
    const { timeoutMs, totalTimeoutMs } = this.#caller.bounds;
    return receipt(
      this.#caller,
      { method: "POST", path: "/v1/imports", body, contentType: "application/x-ndjson" },
      {
        ...options,
        timeoutMs: options.timeoutMs ?? Math.max(timeoutMs, uploadMs),
        totalTimeoutMs: options.totalTimeoutMs ?? Math.max(totalTimeoutMs, 2 * uploadMs),
      },
    );
  }
}

function pathOf(type: EntityType, entityId: string): string {
  return `/v1/entities/${segment(type, "type")}/${segment(entityId, "entityId")}`;
}
