// What is published.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const here = fileURLToPath(new URL("..", import.meta.url));
const run = promisify(execFile);

test("dist, README and LICENSE are published, and nothing else", async () => {
  const { stdout } = await run("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], { cwd: here, timeout: 60_000 });
  const files = JSON.parse(stdout)[0].files.map((file) => file.path);
  const beside = files.filter((path) => !/^dist\/[a-z-]+\.(js|d\.ts)$/.test(path)).sort();
  assert.deepEqual(beside, ["LICENSE", "README.md", "package.json"]);
  assert.ok(files.includes("dist/index.js") && files.includes("dist/index.d.ts"));
});

test("there are no dependencies, and the license is the repository's", async () => {
  const about = JSON.parse(await readFile(`${here}package.json`, "utf8"));
  assert.deepEqual([about.dependencies, about.peerDependencies, about.optionalDependencies], [undefined, undefined, undefined]);
  assert.equal(await readFile(`${here}LICENSE`, "utf8"), await readFile(`${here}../../LICENSE`, "utf8"));
});

test("browsers need nothing of Node", async () => {
  const browser = await readFile(`${here}dist/random-web.js`, "utf8");
  assert.ok(!browser.includes("import") && browser.includes("crypto.getRandomValues"));
  const { imports } = JSON.parse(await readFile(`${here}package.json`, "utf8"));
  assert.deepEqual(imports, { "#random": { node: "./dist/random-node.js", default: "./dist/random-web.js" } });
  for (const file of await readdir(`${here}dist`)) {
    if (file !== "random-node.js") assert.ok(!/from "node:/.test(await readFile(`${here}dist/${file}`, "utf8")), file);
  }
});

test("a caller's strict compiler takes the types", async () => {
  const options = ["--noEmit", "--strict", "--target", "ES2022", "--module", "NodeNext", "--lib", "ES2022,DOM"];
  await run(process.execPath, ["node_modules/typescript/bin/tsc", ...options, "tests/consumer.ts"], { cwd: here, timeout: 120_000 });
});
