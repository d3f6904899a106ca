// Runs a queue with jobs that do nothing: node queue.mjs graphile-worker|pg-boss DATABASE_URL SECONDS BYTES.
// Sixteen callers add jobs one by one for SECONDS while the worker works; what is left is worked off. The last line is
// {"jobs": n, "seconds": s}, from the first job to the last one's end.
const [name, url, seconds, bytes] = process.argv.slice(2);
const callers = 16;
const text = "x".repeat(Number(bytes));
let finished = 0;
const quiet = { error: console.error, warn() {}, info() {}, debug() {} };

const queues = {
  async "graphile-worker"() {
    const { run, Logger, makeWorkerUtils } = await import("graphile-worker");
    const logger = new Logger(() => () => {});
    const options = { connectionString: url, logger, noHandleSignals: true };
    const utils = await makeWorkerUtils(options);
    await utils.migrate();
    const runner = await run({
      ...options, concurrency: callers, pollInterval: 50, maxPoolSize: callers + 4, taskList: { job: async () => { finished++; } },
    });
    return {
      add: () => utils.addJob("job", { text }),
      stop: async () => { await runner.stop(); await utils.release(); },
    };
  },
  async "pg-boss"() {
    const { default: Boss } = await import("pg-boss");
    const boss = new Boss({ connectionString: url, max: callers + 4, supervise: false, schedule: false });
    boss.on("error", quiet.error);
    await boss.start();
    await boss.createQueue("job");
    // Its shortest pause between two looks is half a second, so that it takes many jobs at each.
    await boss.work("job", { batchSize: 1000, pollingIntervalSeconds: 0.5 }, async (jobs) => { finished += jobs.length; });
    return { add: () => boss.send("job", { text }), stop: () => boss.stop({ graceful: false, wait: false }) };
  },
};

const queue = await queues[name]();
const began = performance.now();
const end = began + Number(seconds) * 1000;
let added = 0;
await Promise.all(Array.from({ length: callers }, async () => {
  while (performance.now() < end) {
    await queue.add();
    added++;
  }
}));
const most = performance.now() + 120_000; // what was added in seconds is done in less than minutes
while (finished < added) {
  if (performance.now() > most) throw new Error(`${added - finished} of ${added} jobs are not done`);
  await new Promise((resolve) => setTimeout(resolve, 5));
}
console.log(JSON.stringify({ jobs: added, seconds: (performance.now() - began) / 1000 }));
await queue.stop();
process.exit(0);
