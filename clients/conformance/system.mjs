// A Holdfast of the real binaries for one run: `holdfast up` without workers, and workers of its own that can be killed.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as after } from "node:timers/promises";

const bin = path.resolve(import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname), "../../bin");

// startBound covers initdb on a slow disk; stopBound what a shutdown may take before the process is killed.
const startBound = 120_000;
const stopBound = 30_000;

/** One child process; its standard error is kept for the report of a failure. */
class Child {
  constructor(name, args, env) {
    this.stderr = "";
    this.process = spawn(path.join(bin, name), args, { env, stdio: ["ignore", "pipe", "pipe"] });
    this.process.stderr.on("data", (d) => { this.stderr = (this.stderr + d).slice(-20_000); });
    this.exited = once(this.process, "exit");
  }

  kill(signal) { this.process.kill(signal); }

  async stop() {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    this.process.kill("SIGTERM");
    const timer = setTimeout(() => this.process.kill("SIGKILL"), stopBound);
    await this.exited;
    clearTimeout(timer);
  }
}

export class System {
  #up; #dir; #env; #workers = new Set();

  /** Starts everything but workers. Resolves once the API takes requests. */
  static async start() {
    const s = new System();
    // A directory that the account PostgreSQL runs as can reach, whoever runs this.
    s.#dir = mkdtempSync(path.join(existsSync("/var/tmp") ? "/var/tmp" : tmpdir(), "holdfast-conformance-"));
    chmodSync(s.#dir, 0o711); // it may be entered; what is in it is private
    s.#env = Object.fromEntries(Object.entries(process.env).filter(([k]) => !k.startsWith("HOLDFAST_")));
    Object.assign(s.#env, {
      HOLDFAST_STATE_DIR: path.join(s.#dir, "state"), HOLDFAST_LISTEN: "127.0.0.1:0", HOLDFAST_ADMIN_LISTEN: "off",
      HOLDFAST_LOG_LEVEL: "warn", HOLDFAST_LEASE_TTL: "2s", HOLDFAST_REPAIR_INTERVAL: "1s", HOLDFAST_WORKER_POLL: "1s",
      // The requests that one run sends within seconds are many for one workspace.
      HOLDFAST_RATE_LIMIT: "0", HOLDFAST_WEBHOOK_ALLOW_NETWORKS: "127.0.0.0/8", HOLDFAST_WEBHOOK_ALLOW_HTTP: "true",
    });
    s.#up = new Child("holdfast", ["--json", "up", "--workers", "0"], s.#env);
    const ready = new Promise((resolve) => createInterface(s.#up.process.stdout).once("line", resolve));
    const line = await Promise.race([
      ready, s.#up.exited.then(() => null), after(startBound, null, { ref: false }),
    ]);
    if (line === null) {
      await s.stop();
      throw new Error(`holdfast up did not start:\n${s.#up.stderr}`);
    }
    const running = JSON.parse(line);
    s.api = running.api;
    s.key = running.key;
    Object.assign(s.#env, { HOLDFAST_DATABASE_URL: running.database_url, HOLDFAST_NATS_URL: running.nats_url });
    return s;
  }

  /** Starts a worker with the offline extractor, or with settings that say otherwise. */
  worker(settings = {}) {
    const w = new Child("worker", [], { ...this.#env, ...settings });
    this.#workers.add(w);
    return w;
  }

  /** Runs one of the operator's commands and answers what it printed as JSON. */
  async operate(...args) {
    const c = new Child("holdfast", ["--json", ...args], this.#env);
    let out = "";
    c.process.stdout.on("data", (d) => { out += d; });
    const [code] = await c.exited;
    if (code !== 0) throw new Error(`holdfast ${args.join(" ")} ended with ${code}: ${c.stderr}`);
    return JSON.parse(out);
  }

  /** Asks the native API. */
  async native(method, route, body, headers = {}) {
    const answer = await fetch(this.api + route, {
      method, body: body === undefined ? undefined : JSON.stringify(body),
      headers: { Authorization: `Bearer ${this.key}`, "Content-Type": "application/json", ...headers },
    });
    return { status: answer.status, body: await answer.json() };
  }

  /** What the workspace has left, held credits included. */
  async credits() {
    const { body } = await this.native("GET", "/v1/credits");
    return body.available + body.held;
  }

  async stop() {
    await Promise.all([...this.#workers].map((w) => w.stop()));
    await this.#up?.stop();
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

/** A model server that takes a call and never answers it. `called` resolves when the first call is there. */
export async function silentModel() {
  let arrived;
  const called = new Promise((resolve) => { arrived = resolve; });
  const server = createServer((request) => { request.resume(); arrived(); });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    called, url: `http://127.0.0.1:${server.address().port}/v1`,
    close: () => { server.closeAllConnections(); server.close(); },
  };
}

/** A proxy that forwards requests, and keeps back the answers to those that `lose` picks. */
export async function losingProxy(api, lose) {
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const headers = { ...request.headers };
    delete headers.host; delete headers["content-length"]; delete headers.connection; delete headers["transfer-encoding"];
    const answer = await fetch(api + request.url, {
      method: request.method, headers, body: body.length > 0 ? body : undefined,
    });
    const text = await answer.text();
    if (lose(request.method, request.url)) return; // the caller never hears of it
    response.writeHead(answer.status, { "Content-Type": answer.headers.get("content-type") ?? "application/json" });
    response.end(text);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    close: () => { server.closeAllConnections(); server.close(); },
  };
}
