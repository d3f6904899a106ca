// Compiled, never run: what a caller's compiler sees of the types.
import { Client, EventFailedError, HoldfastError, type Memory, OutcomeUnknownError, WaitTimeoutError } from "holdfast-memory";

export async function use(client: Client): Promise<Memory[]> {
  try {
    const receipt = await client.add([{ role: "user", content: "I live in Lisbon." }], { user_id: "ada" }, { key: "k-1" });
    const event = await client.events.wait(receipt.event_id, { waitMs: 60_000 });
    for (const result of event.results) {
      const text: string | null = result.memory;
      if (text === null) break;
    }
    for await (const memory of client.memories.iterate({ user_id: "ada" })) {
      const version: number = memory.version;
      if (version > 1) await client.memories.update(memory.id, { expires_at: null, version });
    }
    // @ts-expect-error a scope id has another name
    await client.memories.eraseScope({ userId: "ada" });
    // @ts-expect-error exactly one of them
    await client.items.forget("ada", { everything: true });
  } catch (error) {
    if (error instanceof OutcomeUnknownError) await client.events.byKey(error.key ?? "");
    else if (error instanceof EventFailedError) await client.events.retry(error.event.id, { generation: error.event.generation });
    else if (error instanceof WaitTimeoutError) await client.events.wait(error.eventId);
    else if (error instanceof HoldfastError && error.retryable) return [];
    else throw error;
  }
  return client.memories.search("Where does Ada live?", { user_id: "ada", mode: "hybrid" });
}
