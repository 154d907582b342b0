// From p-queue to a lane: the same callback, with a limit across all machines.
//
//   node from-p-queue.js URL

import { setTimeout } from "node:timers/promises";
import PQueue from "p-queue";
import { Client } from "../src/index.js";

let inside = 0;
let most = 0;

async function work(): Promise<void> {
  most = Math.max(most, ++inside);
  await setTimeout(10);
  inside -= 1;
}

/** Starts twelve blocks at once, and returns how many ran at once at most. */
async function twelve(add: (block: () => Promise<void>) => Promise<unknown>): Promise<number> {
  most = 0;
  await Promise.all(Array.from({ length: 12 }, () => add(work)));
  return most;
}

// Before: the queue counts only in this process.
const queue = new PQueue({ concurrency: 3 });
console.log(`p-queue: ${await twelve((block) => queue.add(block))} at most`);

// After: the lane counts in all processes, shows waiting tasks, and can change at any time.
const client = new Client(process.argv[2]!);
await client.lane("calls").change({ max_concurrency: 3, max_queued: 100 });
console.log(`lane: ${await twelve((block) => client.withSlot(["calls"], block))} at most`);
