// A process of the slot test: enters a guarded block many times at once, and records each entry and exit.
//
//   node guarded.js URL LANE BLOCKS LOG        each block appends "+" after it enters and "-" before it leaves
//   node guarded.js URL LANE hold LEASE_MS     takes one slot, prints a line, and holds the slot until it is killed

import { openSync, writeSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { Client } from "../src/index.js";

const [url, lane, how, last] = process.argv.slice(2) as [string, string, string, string];
const client = new Client(url);
if (how === "hold") {
  await client.withSlot([lane], { lease_ms: Number(last) }, async () => {
    console.log("held");
    await setTimeout(600_000);
  });
} else {
  // The system orders all one-byte writes to a file that is open for appending.
  const file = openSync(last, "a");
  const block = () =>
    client.withSlot([lane], async () => {
      writeSync(file, "+");
      await setTimeout(2);
      writeSync(file, "-");
    });
  await Promise.all(Array.from({ length: Number(how) }, block));
}
