/** A client for Holdfast: durable memory writes for applications with language models. */
export type { CallOptions, Clock, WriteOptions } from "./calls.js";
export * from "./client.js";
export * from "./errors.js";
export type { EventFilter, Events, WaitOptions } from "./events.js";
export type { Forget, Items, ItemsRead } from "./items.js";
export { newKey } from "./keys.js";
export type { Changes, Memories, PageParams, SearchParams } from "./memories.js";
export type * from "./values.js";
export type { CreditBooks, Entities, Exports, Imports } from "./workspace.js";
