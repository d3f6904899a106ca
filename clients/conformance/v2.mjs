// Every method of the MemoryClient of mem0ai 2.4.6, and what its user sees.
import assert from "node:assert/strict";
import { MemoryClient } from "mem0ai-2";
import { eventually, refused } from "./report.mjs";
import { ended } from "./v3.mjs";

const unknown = "00000000-0000-7000-8000-000000000000";

export async function version2(system, report) {
  const client = new MemoryClient({ apiKey: system.key, host: system.api });
  const said = (text) => [{ role: "user", content: text }];

  await report.check("ping", "the key is good, organisation and project are known", async () => {
    await client.ping();
    assert.ok(client.organizationId && client.projectId);
  });
  await report.check("add", "an inferred add answers a list with its receipt", async () => {
    const [receipt] = await client.add(said("My name is Bea and I live in Porto."), { user_id: "bea2", metadata: { chat: 1 } });
    assert.equal(receipt.status, "PENDING");
    assert.equal((await ended(client, receipt.event_id)).status, "SUCCEEDED");
  });
  await report.check("add", 'output_format "v1.1" wraps it in results', async () => {
    const answer = await client.add(said("I drink tea."), { user_id: "wrapped2", output_format: "v1.1" });
    assert.equal(answer.results.length, 1);
    await ended(client, answer.results[0].event_id);
  });
  await report.check("add", "async_mode: false waits for the memories", async () => {
    const list = await client.add(said("I work as a carpenter."), { user_id: "sync2", async_mode: false });
    assert.ok(list.length > 0 && list.every((r) => r.event === "ADD" && r.data.memory));
  });
  let stored;
  await report.check("add", "infer: false stores the words as they are", async () => {
    const list = await client.add(said("Verbatim."), { user_id: "verbatim2", infer: false });
    stored = (Array.isArray(list) ? list : list.results)[0].id;
    assert.equal((await client.get(stored)).memory, "Verbatim.");
  });
  await report.check("add", "idempotency_key makes a repeated add one event", async () => {
    const options = { user_id: "twice2", idempotency_key: "conformance-2" };
    const [first] = await client.add(said("I am allergic to shellfish."), options);
    await ended(client, first.event_id);
    const again = await client.add(said("I am allergic to shellfish."), options);
    assert.equal(again[0].event_id, first.event_id);
    const [camel] = await client.add(said("I am allergic to shellfish."), { user_id: "twice2", idempotencyKey: "conformance-2" });
    assert.equal(camel.event_id, first.event_id);
    assert.equal((await client.getAll({ user_id: "twice2" })).length, 1);
  });

  await report.check("get", "a memory by its id", async () => {
    assert.equal((await client.get(stored)).user_id, "verbatim2");
    assert.match(String((await refused(client.get(unknown))).message), /404|not found/i);
  });
  await report.check("update", "new text", async () => {
    await client.update(stored, { text: "Changed." });
    assert.equal((await client.get(stored)).memory, "Changed.");
  });
  await report.check("history", "a plain list", async () => {
    const history = await client.history(stored);
    assert.deepEqual(history.map((h) => h.event), ["ADD", "UPDATE"]);
    assert.equal(history[1].new_memory, "Changed.");
  });
  await report.check("search", "v1 answers a list, v2 too", async () => {
    const v1 = await client.search("Where does Bea live?", { user_id: "bea2" });
    assert.ok(v1.some((r) => /Porto/.test(r.memory)));
    const v2 = await client.search("Where does Bea live?", { api_version: "v2", filters: { user_id: "bea2" } });
    assert.ok(v2.some((r) => /Porto/.test(r.memory)));
  });
  await report.check("getAll", "a list, and with page and page_size an envelope", async () => {
    for (const n of [1, 2, 3]) await client.add(said(`Line ${n}.`), { user_id: "lines2", infer: false });
    assert.equal((await client.getAll({ user_id: "lines2" })).length, 3);
    const page = await client.getAll({ user_id: "lines2", page: 1, page_size: 2 });
    assert.equal(page.count, 3);
    assert.equal(page.results.length, 2);
    const v2 = await client.getAll({ api_version: "v2", filters: { user_id: "lines2" } });
    assert.equal((Array.isArray(v2) ? v2 : v2.results).length, 3);
  });
  await report.check("batchUpdate", "changes several memories", async () => {
    const list = await client.getAll({ user_id: "lines2" });
    await client.batchUpdate(list.map((r) => ({ memoryId: r.id, text: `${r.memory}!` })));
    await eventually("the batch", async () =>
      (await client.getAll({ user_id: "lines2" })).every((r) => r.memory.endsWith("!")) ? true : undefined);
  });
  await report.check("batchDelete", "deletes several memories", async () => {
    const list = await client.getAll({ user_id: "lines2" });
    await client.batchDelete(list.slice(0, 2).map((r) => r.id));
    await eventually("the batch", async () => (await client.getAll({ user_id: "lines2" })).length === 1 ? true : undefined);
  });
  await report.check("delete", "the memory is gone", async () => {
    await client.delete(stored);
    await refused(client.get(stored));
  });
  await report.check("delete", 'delete("") and delete(".") delete nothing', async () => {
    await refused(client.delete(""));
    await refused(client.delete("."));
    assert.ok((await client.getAll({ user_id: "bea2" })).length > 0);
  });
  await report.check("deleteAll", "one user's memories only", async () => {
    await client.add(said("Soon gone."), { user_id: "gone2", infer: false });
    assert.ok((await client.deleteAll({ user_id: "gone2" })).message);
    await eventually("the erase", async () => (await client.getAll({ user_id: "gone2" })).length === 0 ? true : undefined);
    assert.ok((await client.getAll({ user_id: "bea2" })).length > 0);
  });
  await report.check("users", "who has memories", async () => {
    const { results } = await client.users();
    assert.ok(results.some((r) => r.name === "bea2" && r.type === "user" && r.total_memories > 0));
  });
  await report.check("deleteUser", "everything of one entity", async () => {
    await client.add(said("One."), { agent_id: "agent2", infer: false });
    assert.ok((await client.deleteUser({ entity_id: "agent2", entity_type: "agent" })).message);
  });
  await report.check("deleteUsers", "the named user, though this client doesn't escape the name", async () => {
    await client.add(said("One."), { user_id: "a/b c", infer: false });
    assert.ok((await client.deleteUsers({ user_id: "a/b c" })).message);
    await eventually("the erase", async () => (await client.getAll({ user_id: "a/b c" })).length === 0 ? true : undefined);
    assert.ok((await client.getAll({ user_id: "bea2" })).length > 0);
  });
  await report.check("feedback", "is kept", async () => {
    const [memory] = await client.getAll({ user_id: "bea2" });
    const given = await client.feedback({ memory_id: memory.id, feedback: "NEGATIVE", feedback_reason: "old" });
    assert.equal(given.feedback, "NEGATIVE");
  });
  await report.check("updateProject", "custom instructions and categories", async () => {
    assert.ok((await client.updateProject({ custom_instructions: "Keep dates.", custom_categories: [{ trips: "Journeys" }] })).message);
  });
  await report.check("getProject", "answers them", async () => {
    const project = await client.getProject({ fields: ["custom_instructions", "custom_categories"] });
    assert.equal(project.custom_instructions, "Keep dates.");
    assert.deepEqual(project.custom_categories, [{ trips: "Journeys" }]);
  });
  let hook;
  await report.check("createWebhook", "answers it", async () => {
    hook = await client.createWebhook({ name: "chat", url: "http://127.0.0.1:9/hook", eventTypes: ["memory_add"] });
    assert.ok(hook.webhook_id);
  });
  await report.check("getWebhooks", "lists it", async () => {
    assert.deepEqual((await client.getWebhooks()).map((h) => h.name), ["chat"]);
  });
  await report.check("updateWebhook", "renames it", async () => {
    assert.ok((await client.updateWebhook({ webhookId: hook.webhook_id, name: "renamed", url: "http://127.0.0.1:9/hook", eventTypes: ["memory_add"] })).message);
    assert.equal((await client.getWebhooks())[0].name, "renamed");
  });
  await report.check("deleteWebhook", "removes it", async () => {
    assert.ok((await client.deleteWebhook({ webhookId: hook.webhook_id })).message);
    assert.deepEqual(await client.getWebhooks(), []);
  });
  let made;
  await report.check("createMemoryExport", "answers an id", async () => {
    made = await client.createMemoryExport({ schema: { type: "object" }, filters: { user_id: "bea2" } });
    assert.ok(made.id);
  });
  await report.check("getMemoryExport", "answers what the filters select", async () => {
    const got = await eventually("the export", async () => {
      try { return await client.getMemoryExport({ memory_export_id: made.id }); } catch { return undefined; }
    });
    assert.ok(JSON.stringify(got).includes("Porto"));
  });
  report.covers(client);
}
