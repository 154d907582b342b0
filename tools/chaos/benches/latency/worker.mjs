// The worker in TypeScript: `worker.mjs URL PORT`.

import dgram from "node:dgram";
import { setTimeout } from "node:timers/promises";
import { Client, Worker } from "../../../../sdk/typescript/dist/index.js";

const [url, port] = process.argv.slice(2);
const hearsEveryMs = 5;
const udp = dgram.createSocket("udp4");
const say = (text) => udp.send(text, Number(port), "127.0.0.1");

async function turn(task) {
  const text = task.payload.text;
  say(`begins ${text}`);
  while (!task.signal.aborted) {
    for (const message of task.steered()) say(`takes ${message.text}`);
    await setTimeout(hearsEveryMs);
  }
  say(`stops ${text}`);
}

const worker = new Worker(new Client(url), { lanes: ["agent:typescript"] });
console.log("ready");
await worker.handler("agent:typescript", turn, { steering: true }).run();
