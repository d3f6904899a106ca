// Adds memories with mem0's own open-source engine, or with its client against a server:
//   node mem0.mjs engine MODEL_URL SECONDS DIRECTORY
//   node mem0.mjs client HOLDFAST_URL SECONDS KEY
// Sixteen callers at once, each add with a user of its own. The last line is {"adds": n, "seconds": s}; a client's adds
// are only accepted by then.
import path from "node:path";

const [mode, url, seconds, last] = process.argv.slice(2);
process.env.MEM0_TELEMETRY = "false";
console.warn = () => {};
const callers = 16;
const filler = "I see, let us go on with what we spoke about then. ".repeat(17);

async function engine() {
  const { Memory } = await import("mem0ai/oss");
  const memory = new Memory({
    llm: { provider: "openai", config: { apiKey: "none", baseURL: url, model: "stub" } },
    embedder: { provider: "openai", config: { apiKey: "none", baseURL: url, model: "stub", embeddingDims: 1536 } },
    vectorStore: { provider: "memory", config: { collectionName: "bench", dimension: 1536, dbPath: ":memory:" } },
    historyDbPath: path.join(last, "history.db"),
    disableHistory: true,
  });
  return (messages, userId) => memory.add(messages, { userId });
}

async function client() {
  const { MemoryClient } = await import("mem0ai");
  const memory = new MemoryClient({ apiKey: last, host: url });
  return (messages, userId) => memory.add(messages, { userId });
}

const add = await { engine, client }[mode]();
const random = () => Math.floor(Math.random() * 1e9);
const once = () => add([
  { role: "user", content: `My favourite number is ${random()}.` }, { role: "assistant", content: filler },
], `user-${random()}`);
const first = await once();
if (mode === "engine" && !(first?.results?.length > 0)) throw new Error(`the engine stored nothing: ${JSON.stringify(first)}`);
const began = performance.now();
const end = began + Number(seconds) * 1000;
let adds = 0;
await Promise.all(Array.from({ length: callers }, async () => {
  while (performance.now() < end) {
    await once();
    adds++;
  }
}));
console.log(JSON.stringify({ adds, seconds: (performance.now() - began) / 1000 }));
process.exit(0);
