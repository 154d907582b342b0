// A worker of a fleet: start as many as you like, on any machines.
//
//   node worker-fleet.js URL          ends on SIGTERM when what it runs has ended

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { Client, DoNotRetry, Worker } from "../src/index.js";

const worker = new Worker(new Client(process.argv[2]!), { lanes: ["external"], concurrency: 2 });

worker.handler<{ words?: string[] }>("shell", async ({ payload, signal }) => {
  const [program, ...words] = payload.words ?? [];
  if (program === undefined) throw new DoNotRetry("the payload needs a list of words");
  // Cancelled, or the lease is lost: what was started here ends here.
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
