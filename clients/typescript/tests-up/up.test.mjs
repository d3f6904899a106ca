// The client against a running service. The tests run one after the other: they look at the credits of one workspace.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import * as holdfast from "holdfast-memory";
import { apiKey, baseUrl, client, collect, losingProxy, newUser, newWorkspace, patienceMs, rejection, succeeded } from "./world.mjs";

test("an answer that was lost is one event and one charge", async (t) => {
  const user_id = newUser();
  const before = await client.credits.balance();
  const proxy = await losingProxy(t, 2);
  const receipt = await new holdfast.Client({ baseUrl: proxy.url, apiKey }).add("I live in Lisbon.", { user_id });
  assert.deepEqual([proxy.lost, receipt.replayed], [2, true], "two requests arrived before the one answered");
  const event = await succeeded(receipt);
  const after = await client.credits.balance();
  assert.deepEqual([before.available - after.available, after.held], [2, before.held]);
  const entries = (await collect(client.credits.iterate())).filter((entry) => entry.event_id === event.id);
  assert.deepEqual(entries.map((entry) => entry.type).sort(), ["hold", "settle"]);
  assert.equal((await collect(client.memories.iterate({ user_id }))).length, event.results.length);
});

test("a verbatim add that was lost is stored once", async (t) => {
  const user_id = newUser();
  const before = await client.credits.balance();
  const proxy = await losingProxy(t, 1);
  const stored = await new holdfast.Client({ baseUrl: proxy.url, apiKey }).addVerbatim("As it is.", { user_id });
  assert.ok(stored.replayed);
  const memories = await collect(client.memories.iterate({ user_id }));
  assert.deepEqual(memories.map((one) => one.id), stored.results.map((one) => one.id));
  assert.equal(before.available - (await client.credits.balance()).available, 1);
});

test("an unknown outcome is found by its key", async (t) => {
  const user_id = newUser();
  const proxy = await losingProxy(t, 1);
  const hasty = new holdfast.Client({ baseUrl: proxy.url, apiKey, maxRetries: 0 });
  const error = await rejection(hasty.add("I live in Porto.", { user_id }));
  assert.ok(error instanceof holdfast.OutcomeUnknownError);
  const found = await client.events.byKey(error.key);
  const again = await client.add("I live in Porto.", { user_id }, { key: error.key });
  assert.deepEqual([found.id, again.replayed], [again.event_id, true]);
  assert.equal(await client.events.byKey(holdfast.newKey()), null);
});

test("add, wait and search", async () => {
  const user_id = newUser();
  const messages = [{ role: "user", content: "I am allergic to peanuts." }];
  const categories = [{ name: "health", description: "allergic" }, { name: "work" }];
  const params = { user_id, metadata: { source: "chat" }, categories };
  const event = await client.addAndWait(messages, params, { waitMs: patienceMs });
  assert.equal(event.outcome, "STORED");
  const [found] = await client.memories.search("What is the user allergic to?", { user_id, limit: 3, explain: true });
  assert.deepEqual([found.id, found.metadata], [event.results[0].id, { source: "chat" }]);
  assert.ok(found.score > 0 && found.explain);
  assert.deepEqual(found.categories, ["health"]);
  assert.deepEqual(await client.events.get(event.id), await client.events.wait(event.id));
  assert.ok((await client.events.list({ limit: 100 })).results.some((one) => one.id === event.id));
});

test("one memory changes and ends", async () => {
  const { memories } = client;
  const { results } = await client.addVerbatim("First.", { user_id: newUser() });
  const { id } = results[0];
  assert.equal((await memories.get(id)).memory, "First.");
  const wish = { content: "Second.", version: 1, metadata: { n: 1 } };
  const change = await memories.update(id, wish);
  assert.deepEqual([change.memory, change.version], ["Second.", 2]);
  assert.ok((await rejection(memories.update(id, { content: "Third.", version: 1 }))) instanceof holdfast.VersionConflictError);
  const repeated = await memories.update(id, wish, { key: change.key });
  assert.deepEqual([repeated.version, repeated.replayed], [2, true]);
  const conflict = await rejection(memories.update(id, { content: "Other." }, { key: change.key }));
  assert.ok(conflict instanceof holdfast.KeyConflictError);
  assert.equal((await memories.delete(id)).event, "DELETE");
  const gone = await rejection(memories.get(id));
  assert.ok(gone instanceof holdfast.NotFoundError && gone.requestId);
  assert.deepEqual((await memories.history(id)).results.map((one) => one.event), ["ADD", "UPDATE", "DELETE"]);
});

test("batches and pages", async () => {
  const { memories } = client;
  const user_id = newUser();
  const messages = Array.from({ length: 7 }, (_, n) => ({ role: "user", content: `Number ${n}.` }));
  const ids = (await client.addVerbatim(messages, { user_id })).results.map((one) => one.id);
  const listed = await collect(memories.iterate({ user_id }, { pageSize: 3 }));
  assert.deepEqual(listed.map((one) => one.id).sort(), [...ids].sort());
  const changed = await memories.updateBatch([{ id: ids[0], content: "Zero." }, { id: `mem_${randomUUID()}`, content: "x" }]);
  const { results } = await succeeded(changed);
  assert.deepEqual([results[0].memory, results[1].error.code], ["Zero.", "MEMORY_NOT_FOUND"]);
  await succeeded(await memories.deleteBatch(ids.slice(1)));
  assert.deepEqual((await memories.list({ user_id })).results.map((one) => one.memory), ["Zero."]);
});

test("erase of a scope, and of an entity with any name", async () => {
  const user_id = newUser();
  await client.addVerbatim("To be erased.", { user_id, agent_id: "helper" });
  assert.equal((await client.entities.get("user", user_id)).total_memories, 1);
  assert.ok((await collect(client.entities.iterate({ type: "user" }))).some((one) => one.id === user_id));
  const erased = await client.memories.eraseScope({ user_id });
  if (!erased.done) await succeeded(erased);
  assert.deepEqual((await client.memories.list({ user_id })).results, []);
  assert.ok((await rejection(client.entities.get("user", user_id))) instanceof holdfast.NotFoundError);

  const odd = `${user_id}/../ü ?&#`;
  await client.addVerbatim("To be erased.", { user_id: odd });
  assert.equal((await client.entities.get("user", odd)).id, odd);
  const gone = await client.entities.erase("user", odd);
  if (!gone.done) await succeeded(gone);
  assert.deepEqual((await client.memories.list({ user_id: odd })).results, []);
});

test("an event that succeeded is neither cancelled nor retried", async () => {
  const event = await client.addAndWait("I live in Lisbon.", { user_id: newUser() }, { waitMs: patienceMs });
  const cancelled = await rejection(client.events.cancel(event.id));
  const retried = await rejection(client.events.retry(event.id, { generation: 1 }));
  assert.ok(cancelled instanceof holdfast.ConflictError && retried instanceof holdfast.ConflictError);
  assert.deepEqual([cancelled.code, retried.code], ["NOT_CANCELLABLE", "NOT_RETRYABLE"]);
});

test("a workspace that cannot pay", async () => {
  const [poor, key] = [await newWorkspace(), holdfast.newKey()];
  const error = await rejection(poor.add("I live in Lisbon.", { user_id: newUser() }, { key }));
  assert.ok(error instanceof holdfast.InsufficientCreditsError);
  assert.deepEqual([error.required, error.available, error.key], [2, 0, key]);
  assert.equal(await poor.events.byKey(key), null, "a refusal consumes no key");
});

test("a wrong key, and health", async () => {
  const error = await rejection(new holdfast.Client({ baseUrl, apiKey: "hfk_wrong" }).credits.balance());
  assert.ok(error instanceof holdfast.AuthenticationError && !error.message.includes("hfk_wrong"));
  assert.ok(["ok", "degraded"].includes((await client.health()).status));
});

test("items from add to forget", async () => {
  const { items } = client;
  const account = `${newUser()}-Zoë`;
  const keep = [
    { id: "a", text: "I have a cat called Rex.", session: "s1", at: new Date("2026-01-01T10:00:00Z") },
    { text: "I live in Lisbon.", session: "s1", author: "Ann", at: "2026-01-01T11:00:00Z" },
  ];
  const kept = await items.add(account, keep);
  const again = await items.add(account, keep, { key: kept.key });
  assert.deepEqual([kept.items.map((one) => one.id), kept.queued], [["a", `${kept.key}:1`], 2]);
  assert.deepEqual([again.items.map((one) => one.event_id), again.queued], [kept.items.map((one) => one.event_id), 0]);
  for (const item of kept.items) await succeeded(item);
  const page = await items.read(account, { session: "s1" });
  assert.deepEqual(page.items.map((one) => [one.text, one.landed, one.author]), [[keep[0].text, true, null], [keep[1].text, true, "Ann"]]);
  assert.deepEqual((await items.read(account, { ids: ["a"] })).items.map((one) => one.id), ["a"]);
  assert.deepEqual((await items.grep(account, "(?i)REX", { regex: true })).items.map((one) => one.id), ["a"]);
  const cat = (await items.search(account, "cat Rex")).find((one) => one.item_id === "a");
  const corrected = await items.correct(account, cat.id, "The cat is called Max.");
  assert.ok((await rejection(items.correct(account, cat.id, "The cat is called Max."))) instanceof holdfast.NotFoundError);
  assert.equal((await client.memories.get(corrected.memory)).memory, "The cat is called Max.");
  assert.equal((await items.forget(account, { ids: ["a"] })).events, 1);
  assert.equal((await items.forget(account, { all: true })).events, 1);
  assert.equal((await items.forget(account, { session: "s1" })).events, 0);
  assert.deepEqual((await items.read(account, { session: "s1" })).items, []);
});

test("a snapshot is read, and a wrong import fails", async () => {
  const user_id = newUser();
  await client.addVerbatim("Kept.", { user_id });
  const made = await client.exports.create();
  await succeeded(made);
  const snapshot = Buffer.concat(await collect(client.exports.read(made.event_id))).toString();
  const lines = snapshot.trimEnd().split("\n");
  assert.ok(lines.some((line) => JSON.parse(line).user_id === user_id));
  const refused = await rejection(client.imports.create(snapshot));
  assert.ok(refused instanceof holdfast.ConflictError);
  assert.equal(refused.code, "WORKSPACE_NOT_EMPTY");
  const empty = await newWorkspace();
  const wrong = await empty.imports.create(`${lines.slice(0, -1).join("\n")}\n`); // without its footer
  const error = await rejection(empty.events.wait(wrong.event_id, { waitMs: patienceMs }));
  assert.ok(error instanceof holdfast.EventFailedError);
  assert.deepEqual([error.code, error.failureClass], ["INPUT_UNREADABLE", "input_rejected"]);
  const footer = JSON.stringify({ type: "footer", memories: 0, history: 0, items: 0 });
  const right = await empty.imports.create(new TextEncoder().encode(`${lines[0]}\n${footer}\n`));
  assert.equal((await empty.events.wait(right.event_id, { waitMs: patienceMs })).status, "SUCCEEDED");
});
