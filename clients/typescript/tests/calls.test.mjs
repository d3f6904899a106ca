// What the calls send and what they make of the answers.
import assert from "node:assert/strict";
import { test } from "node:test";
import * as holdfast from "holdfast-memory";
import { answer, collect, cut, event, problem, receipt, rejection, script } from "./scripted.mjs";

const memory = { id: "mem_1", memory: "Lives in Lisbon", metadata: { a: [1, 2.5] } };
const pending = { ...event, status: "PENDING", results: [], outcome: null };
const failed = {
  ...pending, status: "FAILED", generation: 2,
  error: {
    code: "PROVIDER_TIMEOUT", class: "provider_timeout", message: "The model did not answer in time.", retryable: true,
    action: "Retry it.",
  },
};
const repeat = (n, step) => Array.from({ length: n }, () => step);

test("wait polls until the end", async (t) => {
  const { client, seen } = await script(t, [answer(200, pending), answer(200, event)]);
  assert.equal((await client.events.wait("evt_1")).results[0].memory, "Lives in Lisbon");
  assert.deepEqual(seen.map((one) => one.path), repeat(2, "/v1/events/evt_1?wait=25"));
});

test("a failure is not a time-out", async (t) => {
  const { client, seen } = await script(t, [answer(202, receipt), answer(200, failed)]);
  const error = await rejection(client.addAndWait("a", { user_id: "ada" }));
  assert.ok(error instanceof holdfast.EventFailedError);
  assert.deepEqual([error.code, error.retryable, error.event.generation], ["PROVIDER_TIMEOUT", true, 2]);
  assert.deepEqual([error.failureClass, error.action, error.key], ["provider_timeout", "Retry it.", seen[0].key]);
});

test("a time-out is not a failure", async (t) => {
  const { client, seen, clock } = await script(t, [answer(202, receipt), ...repeat(100, answer(200, pending))]);
  const error = await rejection(client.addAndWait("a", { user_id: "ada" }, { waitMs: 10_000 }));
  assert.ok(error instanceof holdfast.WaitTimeoutError);
  assert.deepEqual([error.eventId, error.key, error.event.status], ["evt_1", seen[0].key, "PENDING"]);
  assert.equal(Math.round(clock.slept.reduce((a, b) => a + b)), 10_000);
  assert.ok(seen.length < 20, "answers that come at once are not asked for in a circle");
});

test("an outage while waiting is waited out", async (t) => {
  const steps = [...repeat(6, cut), ...repeat(3, problem(503, "UNAVAILABLE", true)), answer(200, event)];
  const { client } = await script(t, steps);
  assert.equal((await client.events.wait("evt_1")).status, "SUCCEEDED");
});

test("an outage to the end is a time-out", async (t) => {
  const { client } = await script(t, repeat(100, cut));
  const error = await rejection(client.events.wait("evt_1", { waitMs: 20_000 }));
  assert.ok(error instanceof holdfast.WaitTimeoutError && error.cause instanceof holdfast.NetworkError);
});

test("a refusal or the caller's signal ends a wait", async (t) => {
  const controller = new AbortController();
  const { client } = await script(t, [problem(404, "EVENT_NOT_FOUND"), () => controller.abort()]);
  assert.ok((await rejection(client.events.wait("evt_1"))) instanceof holdfast.NotFoundError);
  const error = await rejection(client.events.wait("evt_1", { signal: controller.signal }));
  assert.ok(error instanceof holdfast.AbortedError && !error.outcomeUnknown);
});

test("add sends what is given", async (t) => {
  const { client, seen } = await script(t, [answer(202, receipt)]);
  const when = new Date("2026-05-01T12:00:00Z");
  const messages = [{ role: "user", content: "ü" }];
  await client.add(messages, { user_id: "ada", agent_id: undefined, metadata: { n: 1 }, event_date: when, ordered: false });
  assert.deepEqual(JSON.parse(seen[0].body), {
    messages, user_id: "ada", metadata: { n: 1 }, event_date: "2026-05-01T12:00:00.000Z", ordered: false,
  });
  assert.equal(seen[0].headers["content-type"], "application/json");
});

test("values that JSON doesn't have are refused and not shown", async (t) => {
  const { client, seen } = await script(t, []);
  const circle = {};
  circle.secret = circle;
  for (const metadata of [{ secret: NaN }, { secret: 1n }, circle]) {
    const error = await rejection(client.add("a", { user_id: "ada", metadata }));
    assert.ok(error instanceof TypeError && !error.message.includes("secret"));
  }
  assert.ok((await rejection(client.add("a", { user_id: "ada", event_date: new Date(NaN) }))) instanceof TypeError);
  assert.ok((await rejection(client.memories.get("\ud800"))) instanceof TypeError);
  assert.equal(seen.length, 0);
});

test("update tells never from not given", async (t) => {
  const change = answer(200, { id: "mem_1", event: "UPDATE", memory: "x", version: 2, event_id: "evt_1" });
  const { client, seen } = await script(t, [change, change]);
  await client.memories.update("mem_1", { content: "x", version: 1 });
  await client.memories.update("mem_1", { expires_at: null });
  assert.deepEqual(seen.map((one) => JSON.parse(one.body)), [{ content: "x", version: 1 }, { expires_at: null }]);
});

test("an erase is never wider than was meant", async (t) => {
  const { client, seen } = await script(t, []);
  const scopes = [
    {}, undefined, { user_id: "" }, { user_id: " ", agent_id: "a" }, { user_id: null, agent_id: "a" },
    { user_id: undefined, agent_id: "a" }, { userId: "ada", agent_id: "a" },
  ];
  for (const scope of scopes) assert.ok((await rejection(client.memories.eraseScope(scope))) instanceof TypeError);
  for (const wrong of ["", ".", "..", null, undefined]) {
    assert.ok((await rejection(client.memories.delete(wrong))) instanceof TypeError);
    assert.ok((await rejection(client.entities.erase("user", wrong))) instanceof TypeError);
  }
  for (const what of [{}, { ids: ["a"], all: true }, { all: false }, { session: undefined }, { ids: "a" }]) {
    assert.ok((await rejection(client.items.forget("ada", what))) instanceof TypeError);
  }
  assert.equal(seen.length, 0);
});

test("an erase that takes longer", async (t) => {
  const { client, seen } = await script(t, [answer(202, receipt), answer(200, { deleted: 3, cancelled: 1, event_id: "evt_1" })]);
  assert.equal((await client.memories.eraseScope({ user_id: "a/b c" })).done, false);
  const erased = await client.entities.erase("user", "a/b c");
  assert.deepEqual([erased.done, erased.deleted, erased.cancelled], [true, 3, 1]);
  assert.deepEqual(seen.map((one) => one.path), ["/v1/memories?user_id=a%2Fb+c", "/v1/entities/user/a%2Fb%20c"]);
});

test("iterate reads page by page, and ends a list that leads back", async (t) => {
  const page = (next_cursor) => answer(200, { results: [memory], next_cursor });
  const { client, seen } = await script(t, [page("c1"), page(null), page("c1"), page("c1")]);
  assert.deepEqual((await collect(client.memories.iterate({ user_id: "ada" }))).map((one) => one.metadata), repeat(2, { a: [1, 2.5] }));
  assert.equal(seen[1].path, "/v1/memories?user_id=ada&limit=100&cursor=c1");
  assert.ok((await rejection(collect(client.memories.iterate({ user_id: "ada" })))) instanceof holdfast.UnreadableAnswerError);
});

test("an account is sent in UTF-8", async (t) => {
  const { client, seen } = await script(t, [answer(200, { results: [] })]);
  await client.items.search("Zoë 北", "q");
  assert.equal(Buffer.from(seen[0].headers["x-twin-account"], "latin1").toString(), "Zoë 北");
});

test("retry has a generation or a key", async (t) => {
  const { client, seen } = await script(t, [answer(202, event), answer(202, event)]);
  await client.events.retry("evt_1", { generation: 2 });
  await client.events.retry("evt_1");
  assert.deepEqual([seen[0].body, seen[0].key], ['{"generation":2}', undefined]);
  assert.deepEqual([seen[1].body, typeof seen[1].key], ["", "string"]);
});

test("insufficient credits tell the amounts", async (t) => {
  const { client } = await script(t, [problem(402, "INSUFFICIENT_CREDITS", true, {}, { required: 2, available: 1 })]);
  const error = await rejection(client.add("a", { user_id: "ada" }));
  assert.deepEqual([error.required, error.available], [2, 1]);
});

test("Retry-After is seconds or a date", async (t) => {
  const soon = new Date(Date.now() + 100_000).toUTCString();
  for (const [header, least, most] of [[soon, 97_000, 100_000], ["5", 5000, 5000]]) {
    const { client } = await script(t, [problem(429, "RATE_LIMITED", true, { "Retry-After": header })], { maxRetries: 0 });
    const { retryAfterMs } = await rejection(client.events.get("evt_1"));
    assert.ok(retryAfterMs >= least && retryAfterMs <= most, `${retryAfterMs}`);
  }
  for (const header of ["soon", "-1", "1e9", "9".repeat(50)]) {
    const { client } = await script(t, [problem(429, "RATE_LIMITED", true, { "Retry-After": header })], { maxRetries: 0 });
    assert.equal((await rejection(client.events.get("evt_1"))).retryAfterMs, undefined);
  }
});

test("a new key is a UUID of version 7", () => {
  const before = Date.now();
  const keys = Array.from({ length: 1000 }, () => holdfast.newKey());
  const after = Date.now();
  assert.equal(new Set(keys).size, 1000);
  for (const key of keys) {
    assert.match(key, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    const time = parseInt(key.replaceAll("-", "").slice(0, 12), 16);
    assert.ok(before <= time && time <= after);
  }
});
