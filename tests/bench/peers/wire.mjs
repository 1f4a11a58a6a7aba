// What every adapter program in JavaScript does alike; wire.py says what the commands mean.
import { createInterface } from "node:readline";
import { writeSync } from "node:fs";

export const QUEUE = "bench";
const WARM_UP = 0.3;
export const monotonic = () => Number(process.hrtime.bigint()) / 1e9;

const payload = (n) => ({ n, to: "ada@example.com", note: "hello" });
const starts = [];
const seen = ({ n }) => starts.push([n, monotonic()]);
const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

const commands = (peer) => ({
  prepare: () => peer.prepare(),

  async bulk({ first, jobs, ...options }) {
    const payloads = Array.from({ length: jobs }, (_, i) => payload(first + i));
    const began = monotonic();
    await peer.bulk(payloads, options);
    return { seconds: monotonic() - began };
  },

  async single({ first, connections, seconds }) {
    const producers = await peer.producers(connections);
    let next = first;
    const atOnce = (deadline) =>
      Promise.all(
        producers.map(async (enqueue) => {
          while (monotonic() < deadline) await enqueue(payload(next++));
        }),
      );
    await atOnce(monotonic() + WARM_UP);
    const [from, began] = [next, monotonic()];
    await atOnce(began + seconds);
    return { jobs: next - from, seconds: monotonic() - began };
  },

  async paced({ first, jobs, every }) {
    const [enqueue] = await peer.producers(1);
    const calls = [];
    for (let n = first; n < first + jobs; n++) {
      await pause(every * (0.6 + 0.8 * Math.random()));
      const began = monotonic();
      await enqueue(payload(n));
      calls.push([n, began, monotonic()]);
    }
    return { calls };
  },

  async work(options) {
    await peer.work(seen, options);
    return {};
  },

  handled: () => ({ jobs: starts.length, first: starts.length ? starts[0][1] : null }),
  starts: () => ({ starts }),

  async stop() {
    await peer.stop();
    return {};
  },
});

export async function serve(peer) {
  // The answers have stdout to themselves.
  console.log = console.info = console.debug = console.error;
  const known = commands(peer);
  for await (const line of createInterface({ input: process.stdin })) {
    const { do: name, ...given } = JSON.parse(line);
    let answer;
    try {
      answer = await known[name](given);
    } catch (error) {
      console.error(error);
      answer = { error: String(error) };
    }
    write(JSON.stringify(answer) + "\n");
  }
  process.exit(0);
}

function write(text) {
  for (let rest = Buffer.from(text); rest.length; ) {
    try {
      rest = rest.subarray(writeSync(1, rest));
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
    }
  }
}
