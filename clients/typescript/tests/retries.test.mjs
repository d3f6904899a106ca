// Which answers are followed by the same request, and what bounds that.
import assert from "node:assert/strict";
import net from "node:net";
import { test } from "node:test";
import * as holdfast from "holdfast-memory";
import { answer, apiKey, cut, event, half, problem, receipt, rejection, script, stillClock } from "./scripted.mjs";

const accepted = answer(202, receipt);
const repeat = (n, step) => Array.from({ length: n }, () => step);
const add = (client, options) => client.add("Hello", { user_id: "ada" }, options);

const again = {
  "a cut connection": cut,
  "half an answer": half,
  429: problem(429, "RATE_LIMITED", true),
  "429 without a body": answer(429),
  "503 UNAVAILABLE": problem(503, "UNAVAILABLE", true),
  "503 ACCEPTANCE_UNKNOWN": problem(503, "ACCEPTANCE_UNKNOWN", true),
  "409 that is retryable": problem(409, "IDEMPOTENCY_IN_PROGRESS", true),
  500: problem(500, "INTERNAL", true),
  "502 of a proxy": answer(502),
  "504 of a proxy": answer(504),
};
for (const [name, step] of Object.entries(again)) {
  test(`after ${name} the same request is sent`, async (t) => {
    const { client, seen, clock } = await script(t, [step, accepted]);
    const got = await add(client);
    assert.equal(seen.length, 2);
    assert.equal(got.key, seen[0].key);
    const same = ({ method, path, body, key }) => ({ method, path, body, key });
    assert.deepEqual(same(seen[0]), same(seen[1]));
    assert.deepEqual(clock.slept, [250]);
  });
}

const once = [
  [problem(400, "INVALID_REQUEST"), holdfast.InvalidRequestError],
  [problem(401, "INVALID_API_KEY"), holdfast.AuthenticationError],
  [problem(402, "INSUFFICIENT_CREDITS", true), holdfast.InsufficientCreditsError],
  [problem(403, "INSUFFICIENT_PERMISSION"), holdfast.PermissionDeniedError],
  [problem(404, "MEMORY_NOT_FOUND"), holdfast.NotFoundError],
  [problem(409, "IDEMPOTENCY_CONFLICT"), holdfast.KeyConflictError],
  [problem(409, "VERSION_CONFLICT"), holdfast.VersionConflictError],
  [problem(409, "NOT_RETRYABLE"), holdfast.ConflictError],
  [problem(410, "INPUT_EXPIRED"), holdfast.InputExpiredError],
  [problem(413, "PAYLOAD_TOO_LARGE"), holdfast.InvalidRequestError],
  [problem(501, "NOT_IMPLEMENTED"), holdfast.InvalidRequestError],
  [answer(301, undefined, { Location: "/elsewhere" }), holdfast.ServerError],
];
for (const [step, cls] of once) {
  test(`${cls.name} is final`, async (t) => {
    const { client, seen } = await script(t, [step, accepted]);
    const error = await rejection(add(client));
    assert.equal(error.constructor, cls);
    assert.ok(error instanceof holdfast.APIError);
    assert.deepEqual([seen.length, error.key, error.outcomeUnknown, error.name], [1, seen[0].key, false, cls.name]);
  });
}

test("Retry-After is a floor with jitter on top", async (t) => {
  const { client, clock } = await script(t, [problem(503, "UNAVAILABLE", true, { "Retry-After": "7" }), accepted]);
  await add(client);
  assert.deepEqual(clock.slept, [7250]);
});

test("delays double up to a cap", async (t) => {
  const steps = repeat(7, problem(429, "RATE_LIMITED", true));
  const { client, clock } = await script(t, [...steps, accepted], { maxRetries: 7 });
  await add(client);
  assert.deepEqual(clock.slept, [250, 500, 1000, 2000, 4000, 4000, 4000]);
});

test("the count is bounded", async (t) => {
  const { client, seen } = await script(t, repeat(9, problem(503, "UNAVAILABLE", true)));
  const error = await rejection(add(client));
  assert.ok(error instanceof holdfast.UnavailableError);
  assert.deepEqual([seen.length, error.outcomeUnknown, error.requestId, error.retryable], [5, false, "req-1", true]);
});

test("the time is bounded", async (t) => {
  const limited = (seconds) => problem(429, "RATE_LIMITED", true, { "Retry-After": seconds });
  const { client, clock } = await script(t, [limited("59"), limited("9")]);
  const error = await rejection(add(client));
  assert.ok(error instanceof holdfast.RateLimitedError);
  assert.deepEqual([clock.slept, error.retryAfterMs], [[59_250], 9000]);
});

test("the options of one call bound that call", async (t) => {
  const { client, seen } = await script(t, [cut, cut, accepted]);
  assert.ok((await rejection(add(client, { maxRetries: 0 }))) instanceof holdfast.OutcomeUnknownError);
  assert.equal(seen.length, 1);
  await add(client);
  assert.equal(seen.length, 3);
  for (const wrong of [{ timeoutMs: 0 }, { totalTimeoutMs: -1 }, { maxRetries: 101 }, { maxRetries: NaN }]) {
    assert.ok((await rejection(add(client, wrong))) instanceof TypeError);
  }
});

test("writes carry a key of their own, or the caller's", async (t) => {
  const { client, server } = await script(t, [accepted, accepted, answer(202, receipt, { "Idempotent-Replayed": "true" })]);
  const [first, second, third] = [await add(client), await add(client), await add(client, { key: "my-key" })];
  assert.notEqual(first.key, second.key);
  assert.deepEqual(server.keys(), [first.key, second.key, "my-key"]);
  assert.deepEqual([third.key, third.replayed, first.replayed], ["my-key", true, false]);
});

test("lost answers are an unknown outcome with the key", async (t) => {
  const { client, server } = await script(t, repeat(5, cut));
  const error = await rejection(add(client));
  assert.ok(error instanceof holdfast.OutcomeUnknownError);
  assert.deepEqual([...new Set(server.keys())], [error.key]);
  assert.ok(error.outcomeUnknown && error.cause instanceof holdfast.NetworkError);
  assert.ok(error.message.includes(error.key), "a key that was made here is told");
});

test("a key of the caller is a member only", async (t) => {
  const { client } = await script(t, repeat(5, cut));
  const error = await rejection(add(client, { key: "callers-own" }));
  assert.equal(error.key, "callers-own");
  assert.ok(!error.message.includes("callers-own"));
});

test("what comes after a lost answer does not hide it", async (t) => {
  const { client } = await script(t, [cut, ...repeat(4, problem(429, "RATE_LIMITED", true, { "Retry-After": "3" }))]);
  const error = await rejection(add(client));
  assert.ok(error instanceof holdfast.OutcomeUnknownError);
  assert.deepEqual([error.code, error.retryAfterMs], ["RATE_LIMITED", 3000]);
});

test("a final refusal after a lost answer says that the write may have happened", async (t) => {
  const { client } = await script(t, [cut, problem(401, "INVALID_API_KEY")]);
  const error = await rejection(add(client));
  assert.ok(error instanceof holdfast.AuthenticationError && error.outcomeUnknown);
});

test("acceptance unknown to the end", async (t) => {
  const { client } = await script(t, repeat(5, problem(503, "ACCEPTANCE_UNKNOWN", true)));
  const error = await rejection(add(client));
  assert.ok(error instanceof holdfast.OutcomeUnknownError);
  assert.deepEqual([error.code, error.status], ["ACCEPTANCE_UNKNOWN", 503]);
});

test("a lost read is a network error", async (t) => {
  const { client, seen } = await script(t, repeat(5, cut));
  const error = await rejection(client.memories.get("mem_1"));
  assert.ok(error instanceof holdfast.NetworkError);
  assert.deepEqual([seen.length, error.outcomeUnknown], [5, false]);
});

test("a write that was never sent is a network error", async () => {
  const server = net.createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  const clock = stillClock();
  const error = await rejection(add(new holdfast.Client({ baseUrl: `http://127.0.0.1:${port}`, apiKey, clock })));
  assert.ok(error instanceof holdfast.NetworkError);
  assert.deepEqual([clock.slept.length, error.outcomeUnknown], [4, false]);
});

test("correct is not sent again once it may have arrived", async (t) => {
  for (const step of [cut, problem(500, "INTERNAL", true)]) {
    const { client, seen } = await script(t, [step, answer(200, {})]);
    const error = await rejection(client.items.correct("ada", "mem_1"));
    assert.ok(error instanceof holdfast.OutcomeUnknownError);
    assert.deepEqual([seen.length, error.key], [1, undefined]);
  }
});

test("correct is sent again after a refusal", async (t) => {
  const right = answer(200, { id: "mem_1", event_id: "evt_1", memory: null });
  const { client, server } = await script(t, [problem(503, "UNAVAILABLE", true), problem(429, "RATE_LIMITED", true), right]);
  assert.equal((await client.items.correct("ada", "mem_1")).id, "mem_1");
  assert.deepEqual(server.keys(), [undefined, undefined, undefined]);
});

test("the caller's signal ends a call, and says what may have happened", async (t) => {
  const controller = new AbortController();
  const { client, seen } = await script(t, [() => controller.abort(new Error("enough")), accepted]);
  const error = await rejection(add(client, { signal: controller.signal }));
  assert.ok(error instanceof holdfast.AbortedError && error.outcomeUnknown);
  assert.deepEqual([error.key, error.cause.message], [seen[0].key, "enough"]);
  const early = await rejection(add(client, { signal: AbortSignal.abort() }));
  assert.ok(early instanceof holdfast.AbortedError && !early.outcomeUnknown);
  assert.equal(seen.length, 1);
});

test("the caller's signal ends a pause", async (t) => {
  const controller = new AbortController();
  const { client, clock, seen } = await script(t, [cut, accepted]);
  clock.sleep = async () => controller.abort();
  const error = await rejection(add(client, { signal: controller.signal }));
  assert.ok(error instanceof holdfast.AbortedError && error.outcomeUnknown);
  assert.equal(seen.length, 1);
});

test("the real clock's sleep ends with the signal", async (t) => {
  const controller = new AbortController();
  const limited = (request, response) => {
    problem(429, "RATE_LIMITED", true, { "Retry-After": "50" })(request, response);
    setTimeout(() => controller.abort(), 100);
  };
  const { client } = await script(t, [limited], { clock: undefined });
  const begun = performance.now();
  assert.ok((await rejection(add(client, { signal: controller.signal }))) instanceof holdfast.AbortedError);
  assert.ok(performance.now() - begun < 20_000);
});

test("an event after a replay", async (t) => {
  const { client, seen } = await script(t, [half, answer(202, receipt, { "Idempotent-Replayed": "true" }), answer(200, event)]);
  const ended = await client.addAndWait("I live in Lisbon", { user_id: "ada" });
  assert.deepEqual([ended.outcome, seen.length], ["STORED", 3]);
});
