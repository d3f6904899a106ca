/** How arguments become members of a request, and answers values. */
import { isObject, unreadable } from "./calls.js";
import type { Answer } from "./transport.js";
import type { Page, Scope } from "./values.js";

const scopeIds = ["user_id", "agent_id", "run_id", "app_id"] as const;

/** JSON. What JSON can't say is a TypeError that does not show the value. */
export function encode(value: Record<string, unknown>): string {
  try {
    return JSON.stringify(value, (_, member: unknown) => {
      if (typeof member === "number" && !Number.isFinite(member)) throw new TypeError();
      return member;
    });
  } catch {
    throw new TypeError("the request has a value that JSON doesn't have");
  }
}

/** RFC 3339 of a Date; texts stay as they are. */
export function moment<T>(value: T | Date): T | string {
  if (!(value instanceof Date)) return value;
  if (Number.isNaN(value.getTime())) throw new TypeError("a Date must be valid");
  return value.toISOString();
}

/**
 * The scope ids of an object. One that is null, blank or no text is a TypeError: to leave it out would widen the scope. So
 * is, when strict, a member that is undefined or no scope id.
 */
export function scopeOf(given: Scope, strict = false): Record<string, string> {
  const scope: Record<string, string> = {};
  if (!isObject(given)) throw new TypeError("a scope is an object with at least one scope id");
  for (const name of scopeIds) {
    const value: unknown = given[name];
    if (value === undefined && !(strict && name in given)) continue;
    if (typeof value !== "string" || value.trim() === "") throw new TypeError(`${name} must be a text that is not blank`);
    scope[name] = value;
  }
  if (strict) {
    const ids: readonly string[] = scopeIds;
    if (Object.keys(scope).length === 0) throw new TypeError("name at least one scope id");
    if (!Object.keys(given).every((name) => ids.includes(name))) throw new TypeError("a scope has only scope ids");
  }
  return scope;
}

/**
 * A path segment. Those that paths give a meaning of their own are refused: `DELETE /v1/memories/.` is another call than
 * was meant.
 */
export function segment(value: unknown, what: string): string {
  if (typeof value !== "string" || value === "" || value === "." || value === "..") {
    throw new TypeError(`${what} must be a text other than "", "." and ".."`);
  }
  try {
    return encodeURIComponent(value);
  } catch {
    throw new TypeError(`${what} must be valid Unicode`);
  }
}

/** A header's value: its UTF-8, a character a byte, as fetch wants it. */
export function headerText(value: unknown, what: string): string {
  if (typeof value !== "string" || value.trim() === "" || /[\u0000-\u001f\u007f]/.test(value)) {
    throw new TypeError(`${what} must be a text that is not blank and has no control characters`);
  }
  return Array.from(new TextEncoder().encode(value), (byte) => String.fromCharCode(byte)).join("");
}

/** The answer's object; needed members that are missing make it unreadable. */
export function objectOf<T>(value: unknown, ...needed: (keyof T & string)[]): T {
  if (!isObject(value)) throw unreadable("not an object");
  for (const name of needed) {
    if (!(name in value)) throw unreadable(`no ${name}`);
  }
  return value as T;
}

export function listOf<T>(value: unknown, needed: keyof T & string, name = "results"): T[] {
  const list = isObject(value) ? value[name] : undefined;
  if (!Array.isArray(list)) throw unreadable(`no list of ${name}`);
  return list.map((one) => objectOf<T>(one, needed));
}

export function pageOf<T>(value: unknown, needed: keyof T & string): Page<T> {
  const results = listOf<T>(value, needed);
  const next = (value as { next_cursor?: unknown }).next_cursor;
  return { results, next_cursor: typeof next === "string" ? next : null };
}

export function replayed(answer: Answer): boolean {
  return answer.headers.get("Idempotent-Replayed") === "true";
}

/** Yields all results, reading a page when it is needed. A cursor that leads to itself ends it with an error. */
export async function* iterate<T>(read: (cursor: string | undefined) => Promise<Page<T>>): AsyncGenerator<T> {
  let cursor: string | undefined;
  for (;;) {
    const page = await read(cursor);
    yield* page.results;
    if (page.next_cursor === null) return;
    if (page.next_cursor === cursor) throw unreadable("the list leads back to the same page");
    cursor = page.next_cursor;
  }
}
