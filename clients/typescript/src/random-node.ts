/** Random bytes in Node, whose version 18 has no global crypto. */
import { webcrypto } from "node:crypto";

export function random(size: number): Uint8Array {
  return webcrypto.getRandomValues(new Uint8Array(size));
}
