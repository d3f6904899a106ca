/** Random bytes everywhere but in Node. */
export function random(size: number): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(size));
}
