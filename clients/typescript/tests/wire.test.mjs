// The exchange itself: time, size, redirects, secrets.
import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import * as holdfast from "holdfast-memory";
import { answer, apiKey, collect, cut, event, problem, receipt, rejection, script, serve } from "./scripted.mjs";

function drip(request, response) {
  response.writeHead(200, { "Content-Length": "100000" });
  const timer = setInterval(() => response.write(" "), 20);
  response.on("close", () => clearInterval(timer));
}
const body = (text, headers = {}) => (request, response) => {
  response.writeHead(200, headers);
  response.end(text);
};

test("an attempt without an answer ends in time", async (t) => {
  for (const step of [() => undefined, drip]) {
    const { client } = await script(t, [step], { timeoutMs: 300, maxRetries: 0 });
    const begun = performance.now();
    assert.ok((await rejection(client.memories.get("mem_1"))) instanceof holdfast.RequestTimeoutError);
    assert.ok(performance.now() - begun < 10_000);
  }
});

test("a write that timed out has an unknown outcome", async (t) => {
  const { client, server } = await script(t, [() => undefined, () => undefined], { timeoutMs: 200, maxRetries: 1 });
  const error = await rejection(client.add("a", { user_id: "ada" }));
  assert.ok(error instanceof holdfast.OutcomeUnknownError);
  assert.deepEqual([error.code, new Set(server.keys()).size], ["TIMEOUT", 1]);
});

test("an answer that is too large is not read to its end", async (t) => {
  let closed;
  const endless = (request, response) => {
    response.writeHead(200);
    const more = () => {
      while (!response.destroyed && response.write("x".repeat(1 << 16)));
    };
    response.on("drain", more);
    closed = new Promise((resolve) => response.on("close", resolve));
    more();
  };
  const { client, seen } = await script(t, [endless, endless]);
  const error = await rejection(client.memories.get("mem_1"));
  assert.ok(error instanceof holdfast.UnreadableAnswerError && !error.outcomeUnknown);
  await closed;
  const write = await rejection(client.add("a", { user_id: "ada" }));
  assert.ok(write instanceof holdfast.UnreadableAnswerError && write.outcomeUnknown);
  assert.equal(write.key, seen[1].key);
});

test("an answer that cannot be read", async (t) => {
  const { client } = await script(t, [body("no JSON"), body('"no object"'), body("{}"), answer(400, ["no problem"])]);
  const unread = await rejection(client.add("a", { user_id: "ada" }));
  assert.ok(unread instanceof holdfast.UnreadableAnswerError && unread.outcomeUnknown);
  for (let i = 0; i < 2; i++) {
    assert.ok((await rejection(client.add("a", { user_id: "ada" }))) instanceof holdfast.UnreadableAnswerError);
  }
  const error = await rejection(client.memories.get("mem_1"));
  assert.deepEqual([error.code, error.retryable], ["HTTP_400", false]);
});

test("a redirect is not followed", async (t) => {
  for (const status of [301, 302, 303, 307, 308]) {
    const other = await serve(t, answer(200, event));
    const { client } = await script(t, [answer(status, undefined, { Location: `${other.url}/v1/events/evt_1` })]);
    const error = await rejection(client.events.get("evt_1"));
    assert.deepEqual([error.code, other.seen.length], ["REDIRECTED", 0]);
  }
});

test("a browser's opaque redirect is one too", async (t) => {
  const opaque = async () => ({ status: 0, ok: false, type: "opaqueredirect", headers: new Headers(), body: null });
  const { client } = await script(t, [], { fetch: opaque });
  assert.equal((await rejection(client.events.get("evt_1"))).code, "REDIRECTED");
});

test("the API key is in no text", async (t) => {
  const { client, seen } = await script(t, [cut, problem(401, "INVALID_API_KEY")]);
  const errors = [await rejection(client.add("a", { user_id: "ada" }))];
  try {
    new holdfast.Client({ baseUrl: "http://127.0.0.1:1", apiKey: `${apiKey}\nX-Other: 1` });
  } catch (problem) {
    errors.push(problem);
  }
  assert.equal(errors.length, 2);
  for (const value of [client, ...errors]) {
    for (const text of [String(value), JSON.stringify(value), inspect(value, { depth: 9, showHidden: true }), String(value.stack)]) {
      assert.ok(!text.includes("secretsecret"));
    }
  }
  assert.equal(seen[0].headers.authorization, `Bearer ${apiKey}`);
});

test("values of callers cannot add headers, and are not shown", async (t) => {
  const { client, seen } = await script(t, []);
  for (const call of [
    () => client.add("a", { user_id: "ada" }, { key: "k\r\nX-Other: 1" }),
    () => client.events.byKey("X-Other 1"),
    () => client.items.search("X-Other\r\n: 1", "q"),
  ]) {
    const error = await rejection(call());
    assert.ok(error instanceof TypeError && !error.message.includes("X-Other"));
  }
  assert.equal(seen.length, 0);
});

test("the address is one of a service", () => {
  for (const baseUrl of ["ftp://a", "memory.example", "http://user:pw@a", "http://a?b=1", "http://a#b", "", undefined]) {
    assert.throws(() => new holdfast.Client({ baseUrl, apiKey }), (error) => error instanceof TypeError && !error.message.includes("pw"));
  }
});

test("a snapshot without its footer is cut off", async (t) => {
  const [header, footer] = ['{"type":"header"}\n', '{"type":"footer","memories":0}\n'];
  const hangUp = (request, response) => response.write(header, () => request.socket.destroy());
  const steps = [problem(503, "UNAVAILABLE", true), body(header + footer), body(header), body(header + footer.slice(0, -1)), body(""), hangUp];
  const { client } = await script(t, steps);
  assert.equal(Buffer.concat(await collect(client.exports.read("evt_1"))).toString(), header + footer);
  for (let i = 0; i < 4; i++) {
    assert.ok((await rejection(collect(client.exports.read("evt_1")))) instanceof holdfast.NetworkError);
  }
});

test("a snapshot's reader may take its time, and may stop", async (t) => {
  let closed;
  const slow = (request, response) => {
    closed = new Promise((resolve) => request.socket.on("close", resolve));
    response.write("one\n");
    setTimeout(() => response.write("two\n"), 150);
  };
  const { client } = await script(t, [slow], { timeoutMs: 1000 });
  const pieces = client.exports.read("evt_1");
  assert.equal(new TextDecoder().decode((await pieces.next()).value), "one\n");
  await new Promise((resolve) => setTimeout(resolve, 1500)); // longer than the bound of a piece
  assert.equal(new TextDecoder().decode((await pieces.next()).value), "two\n");
  await pieces.return();
  await closed;
});

test("a receipt keeps what the service adds", async (t) => {
  const { client } = await script(t, [answer(202, { ...receipt, added_later: 1 })]);
  assert.equal((await client.add("a", { user_id: "ada" })).added_later, 1);
});
