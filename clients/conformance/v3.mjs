// Every method of the MemoryClient of mem0ai 3.3.1, and what its user sees.
import assert from "node:assert/strict";
import { MemoryClient, MemoryNotFoundError, ValidationError } from "mem0ai-3";
import { eventually, refused } from "./report.mjs";
import { webhookReceiver } from "./webhook.mjs";

const unknown = "00000000-0000-7000-8000-000000000000";

/** Waits for the end of an event through the client's own connection. */
export async function ended(client, id) {
  return eventually(`the end of event ${id}`, async () => {
    const { data } = await client.client.get(`/v1/event/${id}/`);
    return ["SUCCEEDED", "FAILED"].includes(data.status) ? data : undefined;
  });
}

export async function version3(system, report) {
  const client = new MemoryClient({ apiKey: system.key, host: system.api });
  const said = (text) => [{ role: "user", content: text }];
  const all = (userId, more = {}) => client.getAll({ filters: { user_id: userId }, ...more });

  await report.check("ping", "the key is good, organisation and project are known", async () => {
    await client.ping();
    assert.ok(client.organizationId && client.projectId);
  });

  let event;
  await report.check("add", "an inferred add answers a receipt, and its event ends SUCCEEDED", async () => {
    const receipt = await client.add(said("My name is Ada and I live in Lisbon."), { userId: "ada3", metadata: { from_chat: 7 } });
    assert.equal(receipt.status, "PENDING");
    event = await ended(client, receipt.eventId);
    assert.equal(event.status, "SUCCEEDED");
    assert.ok(event.results.length > 0 && event.results.every((r) => r.event === "ADD"));
  });
  await report.check("add", "a bare string is one user message", async () => {
    const receipt = await client.add("I play the cello every Sunday.", { userId: "string3" });
    assert.equal((await ended(client, receipt.eventId)).status, "SUCCEEDED");
    assert.equal((await all("string3")).results.length, 1);
  });
  let stored;
  await report.check("add", "infer: false stores the words as they are, at once", async () => {
    const answer = await client.add(said("  Byte for byte.  "), { userId: "verbatim3", infer: false, metadata: { userId: "kept as it is" } });
    assert.equal(answer.status, "SUCCEEDED");
    assert.equal(answer.results.length, 1);
    assert.equal(answer.results[0].data.memory, "  Byte for byte.  ");
    stored = answer.results[0].id;
  });
  await report.check("add", "{idempotencyKey} makes a repeated add one event and one charge", async () => {
    const before = await system.credits();
    const options = { userId: "twice3", idempotencyKey: "conformance-3" };
    const first = await client.add(said("I am allergic to peanuts."), options);
    await ended(client, first.eventId);
    const again = await client.add(said("I am allergic to peanuts."), options);
    assert.equal(again.eventId, first.eventId);
    assert.equal((await all("twice3")).count, 1);
    assert.equal(before - await system.credits(), 2);
    const other = await refused(client.add(said("Something else."), options));
    assert.ok(other instanceof ValidationError && other.message.includes("IDEMPOTENCY_CONFLICT"), String(other.message));
  });
  await report.check("add", "without an entity it is refused", async () => {
    const err = await refused(client.add(said("Whose is this?")));
    assert.ok(err instanceof ValidationError && err.message.includes("SCOPE_REQUIRED"), String(err.message));
  });

  await report.check("get", "a memory by the id that add answered", async () => {
    const memory = await client.get(stored);
    assert.equal(memory.id, stored);
    assert.equal(memory.memory, "  Byte for byte.  ");
    assert.equal(memory.userId, "verbatim3");
    assert.deepEqual(memory.metadata, { userId: "kept as it is" });
  });
  await report.check("get", "an unknown id is not found, no id at all is refused", async () => {
    assert.ok(await refused(client.get(unknown)) instanceof MemoryNotFoundError);
    assert.ok(await refused(client.get(undefined)) instanceof ValidationError);
  });
  await report.check("update", "new text and metadata; either alone keeps the other", async () => {
    await client.update(stored, { text: "Changed." });
    assert.deepEqual((await client.get(stored)).metadata, { userId: "kept as it is" });
    await client.update(stored, { metadata: { b: 2 } });
    const memory = await client.get(stored);
    assert.equal(memory.memory, "Changed.");
    assert.deepEqual(memory.metadata, { b: 2 });
  });
  await report.check("update", "when it was said, and its last day, which hides it from lists and searches", async () => {
    const filters = { user_id: "expiring" };
    const { results: [{ id }] } = await client.add(said("Off soon."), { userId: "expiring", infer: false });
    const updated = await client.update(id, { timestamp: 1_700_000_000, expirationDate: "2020-01-01" });
    assert.equal(updated.eventDate, "2023-11-14T22:13:20Z");
    assert.equal((await client.getAll({ filters })).count, 0);
    assert.deepEqual((await client.search("off", { filters })).results, []);
    assert.equal((await client.getAll({ filters, showExpired: true })).count, 1);
    assert.equal((await client.search("off", { filters, showExpired: true })).results[0].id, id);
    assert.equal((await client.get(id)).expirationDate, "2020-01-01");
  });
  await report.check("history", "a plain list of what happened, oldest first", async () => {
    const history = await client.history(stored);
    assert.ok(Array.isArray(history));
    assert.equal(history[0].event, "ADD");
    assert.ok(history.some((h) => h.event === "UPDATE" && h.newMemory === "Changed."));
  });

  await report.check("search", "finds by words and meaning, with scores", async () => {
    const { results } = await client.search("Where does Ada live?", { filters: { user_id: "ada3" } });
    assert.ok(results.length > 0 && /Lisbon/.test(results.map((r) => r.memory).join(" ")));
    assert.ok(results.every((r) => typeof r.score === "number"));
  });
  await report.check("search", "camelCase entities in filters narrow it as well, unknown ones are refused", async () => {
    const { results } = await client.search("Where does Ada live?", { filters: { userId: "nobody3" } });
    assert.deepEqual(results, []);
    assert.ok(await refused(client.search("x", { filters: { user_id: "ada3", colour: "red" } })) instanceof ValidationError);
    assert.ok(await refused(client.search("x", {})) instanceof ValidationError);
  });
  await report.check("search", "topK and metadata filters", async () => {
    for (const n of [1, 2, 3]) {
      await client.add(said(`Paragraph ${n} of the lease.`), { userId: "lease3", infer: false, metadata: { page: n } });
    }
    const one = await client.search("lease", { filters: { user_id: "lease3" }, topK: 1 });
    assert.equal(one.results.length, 1);
    const page = await client.search("lease", { filters: { AND: [{ user_id: "lease3" }, { metadata: { page: 2 } }] } });
    assert.deepEqual(page.results.map((r) => r.metadata.page), [2]);
  });
  await report.check("getAll", "pages with a true count", async () => {
    const first = await all("lease3", { page: 1, pageSize: 2 });
    assert.equal(first.count, 3);
    assert.equal(first.results.length, 2);
    assert.ok(first.next && first.previous === null);
    const second = await all("lease3", { page: 2, pageSize: 2 });
    assert.equal(second.results.length, 1);
    assert.ok(second.next === null && second.previous);
    assert.ok(await refused(all("lease3", { page: 3, pageSize: 2 })) instanceof MemoryNotFoundError);
    assert.ok(await refused(client.getAll()) instanceof ValidationError);
  });

  await report.check("batchUpdate", "changes several memories", async () => {
    const { results } = await all("lease3");
    await client.batchUpdate(results.map((r) => ({ memoryId: r.id, text: `${r.memory} (checked)` })));
    await eventually("the batch", async () =>
      (await all("lease3")).results.every((r) => r.memory.endsWith("(checked)")) ? true : undefined);
  });
  await report.check("batchDelete", "deletes several memories", async () => {
    const { results } = await all("lease3");
    await client.batchDelete(results.slice(0, 2).map((r) => r.id));
    await eventually("the batch", async () => (await all("lease3")).count === 1 ? true : undefined);
  });
  await report.check("delete", "the memory is gone, its history tells so", async () => {
    const { message } = await client.delete(stored);
    assert.ok(message);
    assert.ok(await refused(client.get(stored)) instanceof MemoryNotFoundError);
    assert.equal((await client.history(stored)).at(-1).event, "DELETE");
  });
  await report.check("delete", 'delete("") and delete(".") delete nothing', async () => {
    const before = (await all("ada3")).count;
    assert.ok(await refused(client.delete("")) instanceof ValidationError);
    assert.ok(await refused(client.delete(".")) instanceof ValidationError);
    assert.ok(await refused(client.delete("..")) instanceof MemoryNotFoundError);
    assert.equal((await all("ada3")).count, before);
  });
  await report.check("deleteAll", "one user's memories only, and never without a filter", async () => {
    await client.add(said("Soon gone."), { userId: "gone3", infer: false });
    assert.ok((await client.deleteAll({ userId: "gone3" })).message);
    await eventually("the erase", async () => (await all("gone3")).count === 0 ? true : undefined);
    assert.ok((await all("ada3")).count > 0);
    assert.ok(await refused(client.deleteAll()) instanceof ValidationError);
  });

  await report.check("users", "who has memories", async () => {
    const { results, count } = await client.users();
    assert.equal(count, results.length);
    const ada = results.find((r) => r.name === "ada3");
    assert.equal(ada.type, "user");
    assert.ok(ada.totalMemories > 0);
  });
  await report.check("deleteUser", "everything of one entity", async () => {
    await client.add(said("One."), { agentId: "agent3", infer: false });
    assert.ok((await client.deleteUser({ entity_id: "agent3", entity_type: "agent" })).message);
    await eventually("the erase", async () => {
      const { results } = await client.users();
      return results.some((r) => r.name === "agent3") ? undefined : true;
    });
  });
  await report.check("deleteUsers", "the named user, whatever the name holds", async () => {
    const name = "a/b c+d&é😀";
    await client.add(said("One."), { userId: name, infer: false });
    assert.ok((await client.deleteUsers({ userId: name })).message);
    await eventually("the erase", async () => (await all(name)).count === 0 ? true : undefined);
    assert.ok(await refused(client.deleteUsers({ userId: ".." })) instanceof Error);
    assert.ok((await all("ada3")).count > 0);
  });

  await report.check("feedback", "is kept and can be taken back", async () => {
    const { results } = await all("ada3");
    const given = await client.feedback({ memoryId: results[0].id, feedback: "POSITIVE", feedbackReason: "true" });
    assert.equal(given.feedback, "POSITIVE");
    assert.equal((await client.feedback({ memoryId: results[0].id, feedback: null })).feedback, null);
    assert.ok(await refused(client.feedback({ memoryId: unknown, feedback: "NEGATIVE" })) instanceof MemoryNotFoundError);
  });
  await report.check("updateProject", "custom instructions and categories become the workspace's policy", async () => {
    assert.ok((await client.updateProject({
      customInstructions: "Keep what the user likes.", customCategories: [{ hobbies: "What someone does for fun" }],
    })).message);
  });
  await report.check("getProject", "answers them", async () => {
    const project = await client.getProject({ fields: ["customInstructions", "customCategories"] });
    assert.equal(project.customInstructions, "Keep what the user likes.");
    assert.deepEqual(project.customCategories, [{ hobbies: "What someone does for fun" }]);
  });

  const receiver = await webhookReceiver();
  let hook;
  await report.check("createWebhook", "and a memory that is added is told of", async () => {
    hook = await client.createWebhook({ name: "chat", url: receiver.url, eventTypes: ["memory_add"] });
    assert.ok(hook.webhookId);
    const receipt = await client.add(said("I collect stamps."), { userId: "hook3" });
    await ended(client, receipt.eventId);
    const delivered = await eventually("the delivery", async () => receiver.received.find((r) => r.body.includes(receipt.eventId)));
    assert.ok(delivered.headers["webhook-id"] && delivered.headers["webhook-signature"]);
    assert.ok(!delivered.body.includes("stamps"), "the body holds no memory");
  });
  await report.check("getWebhooks", "lists it", async () => {
    const hooks = await client.getWebhooks();
    assert.deepEqual(hooks.map((h) => [h.name, h.url, h.isActive]), [["chat", receiver.url, true]]);
  });
  await report.check("updateWebhook", "renames it", async () => {
    assert.ok((await client.updateWebhook({ webhookId: hook.webhookId, name: "renamed" })).message);
    assert.equal((await client.getWebhooks())[0].name, "renamed");
  });
  await report.check("deleteWebhook", "removes it", async () => {
    assert.ok((await client.deleteWebhook({ webhookId: hook.webhookId })).message);
    assert.deepEqual(await client.getWebhooks(), []);
  });
  receiver.close();

  let made;
  await report.check("createMemoryExport", "answers an id", async () => {
    made = await client.createMemoryExport({
      schema: { type: "object", properties: { memories: { type: "array" } } }, filters: { user_id: "ada3" },
    });
    assert.ok(made.id && made.message);
  });
  await report.check("getMemoryExport", "answers what the filters select", async () => {
    const got = await eventually("the export", async () => {
      try { return await client.getMemoryExport({ memoryExportId: made.id }); } catch { return undefined; }
    });
    assert.ok(JSON.stringify(got).includes("Lisbon"));
    assert.ok(await refused(client.getMemoryExport({ memoryExportId: unknown })) instanceof MemoryNotFoundError);
  });

  for (const [method, call] of [
    ["getProfile", () => client.getProfile({ entityId: "ada3" })],
    ["generateProfile", () => client.generateProfile({ entityId: "ada3" })],
    ["getProfileSettings", () => client.getProfileSettings()],
    ["updateProfileSettings", () => client.updateProfileSettings({})],
    ["sampleProfiles", () => client.sampleProfiles()],
    ["getProfileJob", () => client.getProfileJob(unknown)],
  ]) {
    await report.check(method, "answers 501 and says so", async () => {
      const err = await refused(call());
      assert.equal(err.errorCode, "HTTP_501", `${err.errorCode} ${err.message}`);
      assert.ok(err.message.includes("NOT_IMPLEMENTED"), err.message);
    });
  }
  report.covers(client);
}
