// The adapter of pg-boss: notified, and fetching on while the batches come back full.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { QUEUE, serve } from "./wire.mjs";

// Resolved from the folder that npm installed into, which is the working directory.
const require = createRequire(`${process.cwd()}/`);
const { PgBoss } = await import(pathToFileURL(require.resolve("pg-boss")));
const { version } = JSON.parse(readFileSync("node_modules/pg-boss/package.json"));

const BATCH = 500;
const BULK = 10_000;
const { PGHOST: host, PGPORT: port, PGUSER: user, PGDATABASE: database } = process.env;

async function started(max, options = {}) {
  const idle = { supervise: false, schedule: false, ...options };
  const boss = new PgBoss({ host, port: Number(port), user, database, max, ...idle });
  boss.on("error", console.error);
  await boss.start();
  return boss;
}
let worker;

serve({
  async prepare() {
    const boss = await started(2);
    await boss.createQueue(QUEUE, { notify: true });
    const settings = `batchSize ${BATCH}, burstWhenBatchFull, notify`;
    return { version: `${version}, Node ${process.versions.node}`, settings };
  },

  async bulk(payloads, { urgent, delay }) {
    const boss = await started(2);
    const startAfter = delay ? new Date(Date.now() + delay * 1000) : undefined;
    for (let first = 0; first < payloads.length; first += BULK) {
      const some = payloads.slice(first, first + BULK);
      const jobs = some.map((data) => ({ data, priority: urgent ? 1 : 0, startAfter }));
      await boss.insert(QUEUE, jobs);
    }
  },

  async producers(connections) {
    const boss = await started(connections);
    return Array(connections).fill((payload) => boss.send(QUEUE, payload));
  },

  async work(seen, { batch: batchSize = BATCH }) {
    worker = await started(4, { useListenNotify: true, supervise: true, schedule: true });
    const options = { batchSize, burstWhenBatchFull: true };
    await worker.work(QUEUE, options, async (jobs) => jobs.forEach(({ data }) => seen(data)));
  },

  stop: () => worker.stop(),
});
