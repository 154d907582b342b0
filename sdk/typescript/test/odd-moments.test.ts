// Aborts, lost requests and gateways: no slot is lost, and no caller waits for a lease to lapse.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { Client, Laneway, type Local, UnexpectedAnswer, Unreachable, Worker } from "../src/index.js";
import { proxy, theFirst } from "./proxy.js";
import { CONFIG, fresh } from "./server.js";

let server: Local;
let client: Client;
before(async () => {
  server = await Laneway.local({ config: CONFIG });
  client = server.client();
});
after(() => server.close());

for (const what of ["502", "lose"] as const) {
  test(`a lost release is repeated (${what})`, async () => {
    await using between = await proxy(server.url, theFirst(2, what, "POST", "/complete"));
    await new Client(between.url).withSlot(["one"], { lease_ms: 600_000 }, () => undefined);
    // The slot is free long before the lease would lapse.
    await client.withSlot(["one"], { wait_ms: 60_000 }, () => undefined);
  });
}

for (const afterMs of [0, 1, 5, 50]) {
  test(`a wait aborted after ${afterMs} ms leaves the lane`, async () => {
    {
      await using _ = await client.slot(["one"], { lease_ms: 600_000 });
      await assert.rejects(client.slot(["one"], { lease_ms: 600_000, signal: AbortSignal.timeout(afterMs) }), { name: "TimeoutError" });
    }
    await client.withSlot(["one"], { wait_ms: 60_000 }, () => undefined);
  });
}

test("a signal that is aborted before the call prevents the request", async () => {
  const stopped = AbortSignal.abort(new Error("not now"));
  for (const call of [
    () => client.status({ signal: stopped }),
    () => client.slot(["main"], { signal: stopped }),
    () => client.submit("x", null, { lanes: ["external"], signal: stopped }),
    () => client.agent("echo").chat("hi", { signal: stopped }),
    () => client.wait("01900000-0000-7000-8000-000000000001", { signal: stopped }),
    () => client.lanes({ signal: stopped }).next(),
    () => client.events({}, { signal: stopped }).next(),
    () => Laneway.local({ signal: stopped }),
  ]) {
    await assert.rejects(async () => call(), /not now/, String(call));
  }
});

test("leaving the loop early cancels the turn", async () => {
  let task = "";
  for await (const event of client.agent("slow").chat("wait", { session: fresh("left") })) {
    task = event.data.task_id!;
    if (event.event === "started") break;
  }
  assert.equal((await client.wait(task)).status, "cancelled");
});

test("a turn works like a promise", async () => {
  let ended = false;
  const turn = client.agent("broken").chat("x", { session: fresh("bad") });
  const code = await turn.finally(() => (ended = true)).catch((error: { code: string }) => error.code);
  assert.deepEqual([code, ended], ["RUN_FAILED", true]);
  assert.equal(await client.agent("broken").chat("x", { session: fresh("bad") }).catch(() => "caught"), "caught");
});

test("a request that a gateway could not deliver is repeated where that is safe", async () => {
  await using gets = await proxy(server.url, theFirst(2, "502", "GET", "/status"));
  assert.equal(typeof (await new Client(gets.url).status()).running, "number");
  await using posts = await proxy(server.url, theFirst(1, "502", "POST", "/tasks"));
  const submitted = new Client(posts.url).submit("x", null, { lanes: ["external"] });
  await assert.rejects(submitted, (error) => error instanceof UnexpectedAnswer && error.status === 502);
});

test("an answer that stops in the middle times out", async () => {
  await using between = await proxy(server.url, theFirst(9, "stall", "GET", "/status"));
  const impatient = new Client(between.url, { timeoutMs: 200, retry: { limitMs: 0 } });
  await assert.rejects(impatient.status(), Unreachable);
});

test("an address without a server is reported as such", async () => {
  for (const nonsense of ["localhost:7717", "ftp://host", "http://", ""]) {
    assert.throws(() => new Client(nonsense), /http:\/\/127\.0\.0\.1:7717/);
  }
  await using between = await proxy(server.url, () => undefined);
  const elsewhere = new Client(`${between.url}/docs?`, { retry: { limitMs: 0 } });
  await assert.rejects(elsewhere.status(), UnexpectedAnswer);
});

test("a result that is not JSON fails the task and not the worker", async () => {
  const worker = new Worker(client, { pollMs: 100, lanes: ["external"] });
  worker.handler("unsayable", () => ({ big: 1n }));
  worker.handler("half-said", (task) => {
    assert.throws(() => task.progress(1n), TypeError);
    return "told at once";
  });
  const running = worker.run();
  const first = await client.wait((await client.submit("unsayable", null, { lanes: ["external"] })).id);
  assert.equal(first.status, "failed");
  assert.match(String(first.error), /JSON/);
  const second = await client.wait((await client.submit("half-said", null, { lanes: ["external"] })).id);
  assert.equal(second.result, "told at once");
  worker.drain();
  await running;
});

const index = new URL("../src/index.js", import.meta.url).href;

test("an interrupted program keeps its server until it ends, and leaves no processes or files", async () => {
  const code = `
    import { Laneway } from ${JSON.stringify(index)};
    const queue = await Laneway.local();
    const client = queue.client();
    const slot = await client.slot(["main"]);
    process.once("SIGINT", async () => {
      await slot.release();
      console.log("running", (await client.lane("main").get()).running);
      process.exit(0);
    });
    console.log(queue.home);
    setInterval(() => {}, 1000);
  `;
  const program = spawn(process.execPath, ["--input-type=module", "-e", code], {
    stdio: ["ignore", "pipe", "inherit"],
    detached: true,
  });
  const closed = once(program, "close");
  const lines = createInterface({ input: program.stdout })[Symbol.asyncIterator]();
  const { value: home } = (await lines.next()) as { value: string };
  assert.ok(existsSync(home));
  // Send the signal to the whole process group, as a terminal does.
  process.kill(-program.pid!, "SIGINT");
  assert.equal((await lines.next()).value, "running 0");
  await closed;
  while (existsSync(home)) await setTimeout(20);
});

test("the watcher of a server ends with it", async () => {
  const queue = await Laneway.local();
  queue.process.ref();
  queue.watcher.ref();
  const left = once(queue.watcher, "exit");
  queue.process.kill("SIGKILL");
  // A watcher that is left could end another process with the same id.
  assert.deepEqual(await left, [0, null]);
  await queue.close();
});

test("a server that cannot start reports the reason", async () => {
  const listen = server.url.replace("http://", "");
  await assert.rejects(Laneway.local({ listen }), /in use/);
});
