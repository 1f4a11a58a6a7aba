// The adapter of Graphile Worker, with the settings of the figures in its own documentation.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { QUEUE, serve } from "./wire.mjs";

// Resolved from the folder that npm installed into, which is the working directory.
const require = createRequire(`${process.cwd()}/`);
const { run, makeWorkerUtils, runMigrations, Logger } = require("graphile-worker");
const { version } = JSON.parse(readFileSync("node_modules/graphile-worker/package.json"));
const { Pool } = require("pg");

process.env.NO_LOG_SUCCESS = "1";
const logger = new Logger(() => () => {});
const JOBS = 24;
const LOCAL = 500;
const BULK = 10_000;
const batching = (size) => ({
  concurrentJobs: JOBS,
  maxPoolSize: JOBS + 1,
  localQueue: { size },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
});

const utils = (max) => makeWorkerUtils({ pgPool: new Pool({ max }), logger });
let worker;

serve({
  async prepare() {
    await runMigrations({ pgPool: new Pool({ max: 1 }), logger });
    const settings =
      `concurrentJobs ${JOBS}, localQueue.size ${LOCAL},` +
      " completeJobBatchDelay 0, no log line a job; no history";
    return { version: `${version}, Node ${process.versions.node}`, settings };
  },

  async bulk(payloads, { urgent, delay }) {
    const client = await utils(1);
    const priority = urgent ? -1 : 0;
    const runAt = delay ? new Date(Date.now() + delay * 1000) : undefined;
    for (let first = 0; first < payloads.length; first += BULK) {
      const some = payloads.slice(first, first + BULK);
      await client.addJobs(
        some.map((payload) => ({ identifier: QUEUE, payload, priority, runAt })),
      );
    }
  },

  async producers(connections) {
    const client = await utils(connections);
    return Array(connections).fill((payload) => client.addJob(QUEUE, payload));
  },

  async work(seen, { batch = LOCAL }) {
    worker = await run({
      preset: { worker: batching(batch) },
      pgPool: new Pool({ max: JOBS + 1 }),
      logger,
      taskList: { [QUEUE]: async (payload) => void seen(payload) },
    });
  },

  stop: () => worker.stop(),
});
