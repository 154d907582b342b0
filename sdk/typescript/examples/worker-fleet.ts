// A worker of a fleet: start any number of them, on any machines.
//
//   node worker-fleet.js URL          on SIGTERM, ends after its running attempts

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { Client, DoNotRetry, Worker } from "../src/index.js";

const worker = new Worker(new Client(process.argv[2]!), { lanes: ["external"], concurrency: 2 });

worker.handler<{ words?: string[] }>("shell", async ({ payload, signal }) => {
  const [program, ...words] = payload.words ?? [];
  if (program === undefined) throw new DoNotRetry("the payload needs a list of words");
  // The task was cancelled or its lease is lost, so end the process.
  const { stdout } = await promisify(execFile)(program, words, { signal });
  return stdout;
});

worker.handler<{ to: number }>("count", (task) => {
  let total = 0;
  for (let step = 0; step < task.payload.to; step += 1) {
    task.signal.throwIfAborted();
    total += step;
    task.progress({ step });
  }
  return total;
});

process.once("SIGTERM", () => worker.drain());
console.log("working");
await worker.run();
