import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { Client, Laneway } from "laneway";
import { type Run, listen } from "./admission-limit.js";

const ROUNDS = 100;
const LANES = { tasks: { max_concurrency: 10, max_queued: 0 } };

/** A Redis server that ends with the test, and its directory. */
async function redis(t: { after: (end: () => unknown) => void }): Promise<[store: string, dir: string]> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as { port: number };
  probe.close();
  await once(probe, "close");
  const dir = mkdtempSync(join(tmpdir(), "laneway-redis-"));
  const words = ["--port", `${port}`, "--bind", "127.0.0.1", "--dir", dir, "--appendonly", "yes", "--save", ""];
  const server = spawn("redis-server", words, { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(server, "exit");
  t.after(async () => {
    server.kill("SIGKILL");
    await ended;
    rmSync(dir, { recursive: true, force: true });
  });
  for await (const line of createInterface(server.stdout)) if (line.includes("Ready to accept connections")) break;
  server.stdout.resume();
  return [`redis://127.0.0.1:${port}/0`, dir];
}

test("of thirty tasks on three replicas ten run, in every round", async (t) => {
  const [store, dir] = await redis(t);
  // Replicas share the store; each keeps its audit log in a directory of its own.
  const configOf = (n: number) => ({ lane: LANES, server: { state: join(dir, `replica-${n}`) } });
  const replicas = await Promise.all([0, 1, 2].map((n) => Laneway.local({ store, config: configOf(n) })));
  t.after(() => Promise.all(replicas.map((replica) => replica.close())));
  const urls = replicas.map(({ url }) => url);
  let [open, inside, most] = [() => {}, 0, 0];
  let opened: Promise<void>;
  const run: Run = async (task, report, lost) => {
    most = Math.max(most, ++inside);
    await report("begun");
    await opened;
    inside -= 1;
    assert.ok(!lost.aborted);
    return task.toUpperCase();
  };
  // Each task server asks the Laneway server at its side first.
  const servers = await Promise.all(urls.map((_, n) => listen(new Client([...urls.slice(n), ...urls.slice(0, n)]), run)));
  t.after(() => servers.forEach((server) => server.close()));

  const wrong = await fetch(`${servers[0]!.url}/tasks`, { method: "POST", body: "no JSON" });
  assert.equal(wrong.status, 400);
  for (let round = 0; round < ROUNDS; round += 1) {
    opened = new Promise<void>((resolve) => (open = resolve));
    const ask = (n: number) =>
      fetch(`${servers[n % 3]!.url}/tasks`, { method: "POST", body: JSON.stringify({ task: `t${n}` }) });
    const answers = await Promise.all(Array.from({ length: 30 }, (_, n) => ask(n)));
    const refused = answers.filter(({ status }) => status === 429);
    assert.equal(answers.filter(({ status }) => status === 200).length, 10, `round ${round}: ${answers.map(({ status }) => status)}`);
    assert.equal(refused.length, 20);
    assert.ok(refused.every(({ headers }) => Number(headers.get("retry-after")) >= 1));
    open();
    const texts = await Promise.all(answers.map((answer) => answer.text()));
    assert.equal(texts.filter((text) => /event: complete\ndata: T\d+/.test(text)).length, 10);
    assert.ok(texts.every((text, n) => answers[n]!.ok || JSON.parse(text).error.code === "AT_CAPACITY"));
    // The limit holds when one of the replicas is gone, and its task server goes on with the others.
    if (round === ROUNDS / 2) await replicas[0]!.close();
  }
  assert.equal(most, 10);

  // A reader that leaves a stream gives its slot back.
  opened = new Promise<void>(() => {});
  const leaving = new AbortController();
  const body = JSON.stringify({ task: "left" });
  const left = await fetch(`${servers[1]!.url}/tasks`, { method: "POST", body, signal: leaving.signal });
  assert.equal(left.status, 200);
  const client = new Client(urls.slice(1));
  const events = await client.events({ lane: "tasks" });
  assert.equal((await client.lane("tasks").get()).running, 1);
  leaving.abort();
  for await (const { event, data } of events) if (event === "changed" && "running" in data && data.running === 0) break;
});
