/** What the service takes and answers. Members are named as in the HTTP contract; times are RFC 3339 in UTC. */

export interface Scope {
  user_id?: string;
  agent_id?: string;
  run_id?: string;
  app_id?: string;
}

export interface Message {
  role: string;
  content: string;
  name?: string;
}

/** A conversation, or a text, which is one user message. */
export type Messages = string | readonly Message[];

export type EventStatus = "PENDING" | "RUNNING" | "RETRYING" | "SUCCEEDED" | "FAILED";

export interface Page<T> {
  results: T[];
  /** null on the last page. */
  next_cursor: string | null;
}

/** With which key a write was sent, and whether the key was known, so that nothing new was written. */
export interface Keyed {
  key: string;
  replayed: boolean;
}

/** A write was accepted; the event tells what becomes of it. */
export interface Receipt extends Keyed {
  event_id: string;
  status: EventStatus;
  message: string;
}

/** A memory that a command touched; memory is the text as it is now, null once it is gone. */
export interface EventResult {
  id: string;
  event: "ADD" | "UPDATE" | "DELETE" | "INVALIDATE" | "NONE";
  memory: string | null;
  /** Why an item of a batch did nothing. */
  error?: { code: string; message: string };
}

export interface Stored extends Keyed {
  results: EventResult[];
  event_id: string;
}

/** What an update or delete made of a memory. */
export interface Change extends Keyed {
  id: string;
  event: "UPDATE" | "DELETE";
  memory: string | null;
  version: number;
  event_id: string;
}

/**
 * An erase. done is false when it takes longer than five seconds and goes on by itself: then deleted and cancelled are null,
 * and events.wait(event_id) waits for its end.
 */
export interface Erased extends Keyed {
  event_id: string;
  done: boolean;
  deleted: number | null;
  cancelled: number | null;
}

export interface ScorePart {
  score: number;
  rank: number;
}

export interface Memory {
  id: string;
  memory: string;
  type: string | null;
  /** Names of those that it was read with. */
  categories: string[];
  role: string | null;
  user_id: string | null;
  agent_id: string | null;
  run_id: string | null;
  app_id: string | null;
  item_id: string | null;
  metadata: Record<string, unknown>;
  event_date: string | null;
  version: number;
  valid_from: string;
  valid_to: string | null;
  superseded_by: string | null;
  expires_at: string | null;
  created_at: string;
  updated_at: string;
  /** From 0 to 1, in answers to a search only. */
  score?: number;
  explain?: { lexical: ScorePart | null; semantic: ScorePart | null };
}

/** A subject that memories may be filed under, and what belongs to it. */
export interface Category {
  name: string;
  description?: string;
}

export interface HistoryEntry {
  id: string;
  memory_id: string;
  event: "ADD" | "UPDATE" | "DELETE" | "INVALIDATE";
  version: number;
  old_memory: string | null;
  new_memory: string | null;
  valid_to?: string;
  superseded_by?: string;
  created_at: string;
}

export type EntityType = "user" | "agent" | "run" | "app";

export interface Entity {
  type: EntityType;
  id: string;
  total_memories: number;
  created_at: string;
  updated_at: string;
}

export interface Event {
  id: string;
  event_type: string;
  status: EventStatus;
  scope: Scope | null;
  erased: boolean;
  /** STORED, UNCHANGED (all repeats), NO_MEMORY or PARTIAL; null until it succeeds. */
  outcome: string | null;
  results: EventResult[];
  attempts: number;
  max_attempts: number;
  generation: number;
  /** The last failure of this generation. */
  error: { code: string; class: string; message: string; retryable: boolean; action: string } | null;
  /** Of the current generation; reserved, settled and released are credits. */
  usage: {
    reserved: number;
    settled: number;
    released: number;
    provider_calls: number;
    tokens_in: number;
    tokens_out: number;
  };
  created_at: string;
  updated_at: string;
  started_at: string | null;
  committed_at: string | null;
  completed_at: string | null;
  next_attempt_at: string | null;
  latency_ms: number | null;
  /** How far work in pieces is; line is the first wrong line of an import, from 1. */
  progress?: { done: number; total: number; line?: number };
}

export interface Credits {
  available: number;
  held: number;
  metered: boolean;
}

export interface CreditEntry {
  type: "grant" | "hold" | "settle" | "release";
  amount: number;
  event_id: string | null;
  generation: number | null;
  reference: string | null;
  created_at: string;
}

export interface NewItem {
  id?: string;
  text: string;
  at?: string | Date;
  author?: string;
  session?: string;
}

export interface ItemsReceipt {
  /** landed: the memories of the item's present content are there. */
  items: { id: string; event_id: string; landed: boolean }[];
  /** How many items this call queued. */
  queued: number;
  /** How many items of the account wait. */
  pending: number;
  /** It named the items that had no id of their own. */
  key: string;
}

export interface Item {
  id: string;
  event_id: string;
  text: string;
  author: string | null;
  session: string | null;
  at: string;
  revision: number;
  landed: boolean;
}

export interface ItemsPage {
  items: Item[];
  /** What to send as `after` for the following items, null at the end. */
  next: string | null;
}

/** events: how many items this call erased. queue is null when not everything could be cleared: call again. */
export interface Forgotten {
  events: number;
  queue: number | null;
}

/** memory is the id of the correction, null without one. */
export interface Corrected {
  id: string;
  event_id: string;
  memory: string | null;
}

/** truncated: a bound was met and there may be more. */
export interface Grepped {
  items: Item[];
  results: Memory[];
  truncated: boolean;
}

export interface Health {
  status: "ok" | "degraded";
  reasons: string[];
  checks: Record<string, unknown> | null;
}
