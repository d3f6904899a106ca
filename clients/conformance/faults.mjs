// What the protocol is for: answers that never come and workers that die, with the unmodified client.
import assert from "node:assert/strict";
import { MemoryClient } from "mem0ai-3";
import { setTimeout as after } from "node:timers/promises";
import { eventually } from "./report.mjs";
import { losingProxy, silentModel } from "./system.mjs";
import { ended } from "./v3.mjs";

/** The caller's own patience: the client has no timeout of its own. */
async function impatient(promise, ms) {
  const late = Symbol("late");
  const got = await Promise.race([promise.catch(() => late), after(ms, late, { ref: false })]);
  return got === late ? undefined : got;
}

/** Counts the workspace's inferred adds of one user by what they stored. */
async function addsOf(system, userId) {
  const { body } = await system.native("GET", "/v1/events?limit=100");
  return body.results.filter((e) => e.scope?.user_id === userId);
}

export async function faults(system, worker, report) {
  const client = new MemoryClient({ apiKey: system.key, host: system.api });
  const text = [{ role: "user", content: "I was born in Faro and I love sardines." }];
  const count = async (userId) => (await client.getAll({ filters: { user_id: userId } })).count;

  await report.check("a lost answer", "retried with {idempotencyKey}: one event, one memory each, one charge", async () => {
    let lost = 0;
    const proxy = await losingProxy(system.api, (method, url) => url.includes("/memories/add/") && lost++ === 0);
    try {
      const through = new MemoryClient({ apiKey: system.key, host: proxy.url });
      await through.ping();
      const before = await system.credits();
      const options = { userId: "lost-with-key", idempotencyKey: "turn-17" };
      assert.equal(await impatient(through.add(text, options), 1_500), undefined, "the first call has to time out");
      const receipt = await through.add(text, options);
      const event = await ended(client, receipt.eventId);
      assert.equal(event.status, "SUCCEEDED");
      assert.equal((await addsOf(system, "lost-with-key")).length, 1);
      assert.equal(await count("lost-with-key"), event.results.length);
      assert.equal(before - await system.credits(), 2);
    } finally {
      proxy.close();
    }
  });

  await report.check("a lost answer", "retried without a key: two events and two charges, but the repeat adds no memory", async () => {
    let lost = 0;
    const proxy = await losingProxy(system.api, (method, url) => url.includes("/memories/add/") && lost++ === 0);
    try {
      const through = new MemoryClient({ apiKey: system.key, host: proxy.url });
      await through.ping();
      const before = await system.credits();
      assert.equal(await impatient(through.add(text, { userId: "lost-without-key" }), 1_500), undefined, "the first call has to time out");
      const receipt = await through.add(text, { userId: "lost-without-key" });
      const second = await ended(client, receipt.eventId);
      assert.equal(second.status, "SUCCEEDED");
      assert.ok(second.results.every((r) => r.event === "NONE"), "the repeat added a memory");
      const events = await addsOf(system, "lost-without-key");
      assert.deepEqual(events.map((e) => e.outcome).sort(), ["STORED", "UNCHANGED"]);
      assert.equal(await count("lost-without-key"), second.results.length);
      assert.equal(before - await system.credits(), 4);
    } finally {
      proxy.close();
    }
  });

  await report.check("a killed worker", "SIGKILL in the middle of the model call: the event succeeds once, charged once", async () => {
    await worker.stop();
    const model = await silentModel();
    const before = await system.credits();
    const doomed = system.worker({
      HOLDFAST_EXTRACTOR: "openai", HOLDFAST_OPENAI_BASE_URL: model.url, HOLDFAST_OPENAI_API_KEY: "none", HOLDFAST_OPENAI_MODEL: "none",
    });
    const receipt = await client.add(text, { userId: "killed", idempotencyKey: "turn-18" });
    await model.called;
    doomed.kill("SIGKILL");
    await doomed.exited;
    const again = await client.add(text, { userId: "killed", idempotencyKey: "turn-18" });
    assert.equal(again.eventId, receipt.eventId, "a repeat while nobody works answers the same receipt");
    system.worker();
    const event = await ended(client, receipt.eventId);
    model.close();
    assert.equal(event.status, "SUCCEEDED");
    assert.equal(await count("killed"), event.results.length);
    assert.equal(before - await system.credits(), 2);
    const { body } = await system.native("GET", `/v1/events/${receipt.eventId}`);
    assert.ok(body.attempts >= 2, `it was claimed ${body.attempts} times`);
  });

  await report.check("a burst", "fifty concurrent repeats of one add are one event", async () => {
    const options = { userId: "burst", idempotencyKey: "turn-19" };
    const receipts = await Promise.all(Array.from({ length: 50 }, () => client.add(text, options)));
    assert.equal(new Set(receipts.map((r) => r.eventId)).size, 1);
    const event = await eventually("the end", async () => {
      const e = await ended(client, receipts[0].eventId);
      return e.status === "SUCCEEDED" ? e : undefined;
    });
    assert.equal(await count("burst"), event.results.length);
  });
}
