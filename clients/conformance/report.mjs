// Counts what was checked, and refuses a run that left a method of the client out.
import assert from "node:assert/strict";

export class Report {
  #lines = []; #failed = 0; #seen = new Set();

  constructor(title) { this.title = title; }

  /** Runs one check of a method of the client. `what` is what a user sees. */
  async check(method, what, fn) {
    this.#seen.add(method);
    try {
      await fn();
      this.#lines.push(["ok", method, what]);
    } catch (err) {
      this.#failed++;
      this.#lines.push(["FAILED", method, `${what}: ${String(err?.message ?? err).split("\n").slice(0, 12).join("\n")}`]);
    }
    const [verdict, name, text] = this.#lines.at(-1);
    console.log(`  ${verdict.padEnd(7)}${name.padEnd(24)}${text}`);
  }

  /** Every public method of the client has been checked. */
  covers(client) {
    const own = Object.getOwnPropertyNames(Object.getPrototypeOf(client))
      .filter((name) => name !== "constructor" && !name.startsWith("_"));
    for (const name of own) {
      if (!this.#seen.has(name)) {
        this.#failed++;
        console.log(`  FAILED ${name.padEnd(24)}is a method of the client that nothing here calls`);
      }
    }
  }

  get failed() { return this.#failed; }
  get count() { return this.#lines.length; }
}

/** Waits until `probe` answers something other than undefined, asking again every 50 ms for at most 20 s. */
export async function eventually(what, probe) {
  for (const end = Date.now() + 20_000; Date.now() < end;) {
    const got = await probe();
    if (got !== undefined) return got;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.fail(`${what} did not happen within 20 s`);
}

/** The error that a call ends with, which must not succeed. */
export async function refused(promise) {
  try {
    const got = await promise;
    assert.fail(`the call succeeded with ${JSON.stringify(got)}`);
  } catch (err) {
    if (err instanceof assert.AssertionError) throw err;
    return err;
  }
}
