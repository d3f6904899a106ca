// A running Holdfast, and a proxy before it that loses answers. Run by clients/test-up.
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import net from "node:net";
import { promisify } from "node:util";
import { Client } from "holdfast-memory";

export const patienceMs = 60_000; // far above what is normal, for machines that are shared

function variable(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run this by clients/test-up`);
  return value;
}

export const baseUrl = variable("HOLDFAST_URL");
export const apiKey = variable("HOLDFAST_API_KEY");
export const client = new Client({ baseUrl, apiKey });

/** Each test has a user of its own. */
export const newUser = () => `typescript-${randomUUID()}`;

export const succeeded = (receipt) => client.events.wait(receipt.event_id, { waitMs: patienceMs });

/** A client of a new workspace without credits, with every permission. */
export async function newWorkspace() {
  const name = `w-${randomUUID()}`;
  await holdfast("workspace", "create", name);
  const all = ["memory:read", "memory:write", "operations:read", "operations:retry", "credits:read", "admin"];
  const permissions = all.flatMap((one) => ["--permission", one]);
  return new Client({ baseUrl, apiKey: (await holdfast("key", "create", "--workspace", name, ...permissions)).key });
}

async function holdfast(...command) {
  const { stdout } = await promisify(execFile)(variable("HOLDFAST_BINARY"), [...command, "--json"], { timeout: patienceMs });
  return JSON.parse(stdout);
}

/** Forwards connections; of the first losses it passes the request on, waits for the answer, and cuts both ends. */
export async function losingProxy(t, losses) {
  const to = new URL(baseUrl);
  const proxy = { lost: 0, url: "" };
  const open = new Set();
  const server = net.createServer((near) => {
    const losing = proxy.lost < losses;
    if (losing) proxy.lost++;
    const far = net.connect(Number(to.port), to.hostname);
    const cut = () => {
      near.destroy();
      far.destroy();
    };
    for (const end of [near, far]) {
      open.add(end);
      end.on("error", cut);
      end.on("close", cut);
    }
    near.pipe(far);
    if (losing) {
      far.once("data", cut); // the service has answered, so it has committed
    } else {
      far.pipe(near);
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(async () => {
    for (const end of open) end.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  proxy.url = `http://127.0.0.1:${server.address().port}`;
  return proxy;
}

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
