// An agent loop whose tool calls go through lanes: reads run together, writes one after another.
//
//   node agent-loop.js URL            the tools run in this program, as a worker of the session's tool lanes

import { setTimeout } from "node:timers/promises";
import { Client, Worker, type wire } from "../src/index.js";

const files = new Map([
  ["a.txt", "alpha"],
  ["b.txt", "beta"],
]);
const session = "example-ts";
const client = new Client(process.argv[2]!);

const worker = new Worker(client, { lanes: [`session:${session}/*`], concurrency: 8, pollMs: 500 })
  .handler<{ path: string }>("read", async ({ payload }) => {
    await setTimeout(50);
    return files.get(payload.path);
  })
  .handler<{ path: string; text: string }>("write", ({ payload }) => {
    files.set(payload.path, (files.get(payload.path) ?? "") + payload.text);
    return files.get(payload.path)!.length;
  });

/** A stand-in for a model: the tool calls of each of its turns. */
function model(turn: number, results: unknown[]): wire.BatchCall[] {
  if (turn === 0) return [...files.keys()].map((path) => ({ tool: "read", payload: { path } }));
  if (turn === 1) return results.map((text) => ({ tool: "write", payload: { path: "c.txt", text } }));
  return [];
}

for (const lane of ["query", "execute"]) await client.setLaneHandler(lane, "external", { session });
const working = worker.run();
let results: unknown[] = [];
for (let turn = 0; ; turn += 1) {
  const calls = model(turn, results);
  if (calls.length === 0) break;
  results = (await client.batch(session, calls)).results.map(({ result }) => result);
  console.log(`turn ${turn}: ${JSON.stringify(results)}`);
}
console.log(`c.txt: ${files.get("c.txt")}`);
worker.drain();
await working;
