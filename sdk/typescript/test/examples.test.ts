// The examples work.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Laneway, type Local } from "../src/index.js";
import { WAIT_MAX_MS } from "./server.js";

let server: Local;
before(async () => {
  server = await Laneway.local({
    config: {
      lane: { main: { max_concurrency: 2, max_queued: 2 }, external: { max_concurrency: 8, handler: "external" } },
      queue: { query_max_concurrency: 4 },
    },
  });
});
after(() => server.close());

const program = (name: string) => fileURLToPath(new URL(`../examples/${name}`, import.meta.url));
async function example(name: string): Promise<string> {
  return (await promisify(execFile)(process.execPath, [program(name), server.url], { timeout: WAIT_MAX_MS })).stdout;
}

test("moving from p-queue", async () => {
  assert.equal(await example("from-p-queue.js"), "p-queue: 3 at most\nlane: 3 at most\n");
});

test("an agent loop reads in parallel and writes in order", async () => {
  assert.equal(await example("agent-loop.js"), 'turn 0: ["alpha","beta"]\nturn 1: [5,9]\nc.txt: alphabeta\n');
});

test("a fleet of workers shares the work and drains", async (t) => {
  const start = () => spawn(process.execPath, [program("worker-fleet.js"), server.url], { stdio: ["ignore", "pipe", "inherit"] });
  const fleet = Array.from({ length: 3 }, start);
  t.after(() => fleet.forEach((worker) => worker.kill("SIGKILL")));
  await Promise.all(fleet.map((worker) => once(worker.stdout, "data")));
  const client = server.client();
  const lanes = ["external"];
  const echoes = [];
  for (let n = 0; n < 12; n += 1) echoes.push(await client.submit("shell", { words: ["echo", `${n}`] }, { lanes }));
  const counted = await client.submit("count", { to: 10 }, { lanes });
  const wrong = await client.submit("shell", {}, { lanes });
  const results = await Promise.all(echoes.map(async ({ id }) => (await client.wait(id)).result));
  assert.deepEqual(results, echoes.map((_, n) => `${n}\n`));
  assert.equal((await client.wait(counted.id)).result, 45);
  assert.equal((await client.wait(wrong.id)).error, "the payload needs a list of words");
  const ended = fleet.map((worker) => once(worker, "exit"));
  for (const worker of fleet) worker.kill("SIGTERM");
  assert.deepEqual((await Promise.all(ended)).map(([code]) => code as number), [0, 0, 0]);
});

test("a chat handler in Express is protected", async (t) => {
  const app = spawn(process.execPath, [program("express-chat.js")], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, LANEWAY_URL: server.url },
  });
  t.after(async () => {
    const ended = once(app, "exit");
    app.kill("SIGTERM");
    await ended;
  });
  const [said] = (await once(app.stdout, "data")) as [Buffer];
  const url = `${String(said).trim()}/chat`;
  const headers = { "content-type": "application/json" };
  const ask = (n: number) =>
    fetch(url, { method: "POST", headers, body: JSON.stringify({ user: `user-${n}`, message: `hi ${n}` }) });
  const main = server.client().lane("main");
  await main.pause();
  let refusals = 0;
  let resumed = Promise.resolve<unknown>(undefined);
  const answers = await Promise.all(
    Array.from({ length: 6 }, async (_, n) => {
      const answer = await ask(n);
      // Two requests wait; the server refuses the others with a retry time.
      if (answer.status === 429 && ++refusals === 4) resumed = main.resume();
      return answer;
    }),
  );
  await resumed;
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 200, 429, 429, 429, 429]);
  const refused = answers.find(({ status }) => status === 429)!;
  assert.ok(Number(refused.headers.get("retry-after")) >= 1);
  const texts = await Promise.all(answers.filter(({ ok }) => ok).map((answer) => answer.json()));
  assert.ok(texts.every((text) => /^HI \d$/.test((text as { answer: string }).answer)));
  assert.equal((await main.get()).running, 0);
});
