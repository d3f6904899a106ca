// A server that answers what a test tells it to, and a clock that does not wait.
import http from "node:http";
import { Client } from "holdfast-memory";

export const apiKey = "hfk_canary000000_secretsecretsecretsecretsecretsecretsecret";
export const receipt = { message: "Accepted.", status: "PENDING", event_id: "evt_1" };
export const event = {
  id: "evt_1", event_type: "memory_infer", status: "SUCCEEDED", outcome: "STORED", generation: 1, error: null,
  results: [{ id: "mem_1", event: "ADD", memory: "Lives in Lisbon" }],
};

/** Answers with a JSON value. */
export function answer(status, value, headers = {}) {
  return (request, response) => {
    response.writeHead(status, headers);
    response.end(value === undefined ? "" : JSON.stringify(value));
  };
}

export function problem(status, code, retryable = false, headers = {}, details = undefined) {
  const words = { title: code, status, detail: "", code, message: "Words of the catalogue.", request_id: "req-1" };
  return answer(status, { type: "x", ...words, retryable, details }, headers);
}

/** Reads the request and hangs up. */
export function cut(request) {
  request.socket.destroy();
}

/** Begins an answer and hangs up. */
export function half(request, response) {
  response.writeHead(202, { "Content-Length": "1000" });
  response.write('{"event_id":', () => request.socket.destroy());
}

/** Starts a server with these steps, one a request; t stops it. */
export async function serve(t, ...steps) {
  const seen = [];
  const server = http.createServer((request, response) => {
    const pieces = [];
    request.on("data", (piece) => pieces.push(piece));
    request.on("end", () => {
      seen.push({
        method: request.method, path: request.url, headers: request.headers, body: Buffer.concat(pieces).toString(),
        key: request.headers["idempotency-key"], port: request.socket.remotePort,
      });
      (steps.shift() ?? problem(418, "SCRIPT_IS_OVER"))(request, response);
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { url: `http://127.0.0.1:${server.address().port}`, seen, keys: () => seen.map((one) => one.key) };
}

/** A clock that moves by its sleeps only; chance is always a half. */
export function stillClock() {
  const clock = {
    time: 1_000_000, slept: [],
    now: () => clock.time,
    sleep: async (ms) => {
      clock.slept.push(ms);
      clock.time += ms;
    },
    chance: () => 0.5,
  };
  return clock;
}

/** A client of a scripted server. */
export async function script(t, steps, options = {}) {
  const server = await serve(t, ...steps);
  const clock = stillClock();
  return { client: new Client({ baseUrl: server.url, apiKey, clock, ...options }), server, clock, seen: server.seen };
}

/** Returns what a promise is rejected with. */
export async function rejection(promise) {
  try {
    await promise;
  } catch (problem) {
    return problem;
  }
  throw new Error("it was not rejected");
}

export async function collect(values) {
  const all = [];
  for await (const value of values) all.push(value);
  return all;
}
