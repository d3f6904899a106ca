// Drives the unmodified mem0 clients against a Holdfast of the real binaries; ends with 1 if anything was not as it has
// to be. Start it with `make conformance`.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

// The clients report home unless told not to, and keep files in the user's directory.
const scratch = mkdtempSync(path.join(tmpdir(), "holdfast-mem0-"));
process.env.MEM0_TELEMETRY = "false";
process.env.MEM0_DIR = scratch;

const { Report } = await import("./report.mjs");
const { System } = await import("./system.mjs");
const { version3 } = await import("./v3.mjs");
const { version2 } = await import("./v2.mjs");
const { faults } = await import("./faults.mjs");

// bound ends a run that hangs, so that nothing waits for it for ever.
const bound = setTimeout(() => {
  console.error("conformance: not done after 5 minutes");
  process.exit(1);
}, 300_000);
bound.unref();

let failed = 0, checked = 0;
const system = await System.start();
try {
  const worker = system.worker();
  for (const [title, suite] of [
    ["mem0ai 3.3.1", version3], ["mem0ai 2.4.6", version2],
    ["mem0ai 3.3.1 when things go wrong", (s, r) => faults(s, worker, r)],
  ]) {
    console.log(`\n${title}`);
    const report = new Report(title);
    await suite(system, report);
    failed += report.failed;
    checked += report.count;
  }
} finally {
  await system.stop();
  rmSync(scratch, { recursive: true, force: true });
}
console.log(`\nconformance: ${checked} checks, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
