/** Idempotency keys. */
import { random } from "#random";

/** Returns a UUIDv7: the milliseconds since 1970, then 74 random bits. */
export function newKey(): string {
  const bytes = random(16);
  const now = Date.now();
  for (let i = 0; i < 6; i++) {
    bytes[i] = Math.floor(now / 2 ** (8 * (5 - i))) & 0xff;
  }
  bytes[6] = (bytes[6]! & 0x0f) | 0x70;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

/** Returns the key; a wrong one is a TypeError that doesn't show it. */
export function checkedKey(key: unknown): string {
  if (typeof key !== "string" || !/^[\x21-\x7e]{1,200}$/.test(key)) {
    throw new TypeError("an idempotency key is 1 to 200 visible ASCII characters");
  }
  return key;
}

/** The caller's key, or one that is made here. */
export function keyed(key: string | undefined): { key: string; made: boolean } {
  return key === undefined ? { key: newKey(), made: true } : { key: checkedKey(key), made: false };
}
