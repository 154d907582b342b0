// Slots: the limit of the lane always holds, and no slot is lost.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { AtCapacity, Cancelled, type Client, Laneway, LeaseLost, type Local, Lost, Refusal, WaitTimeout } from "../src/index.js";
import { leaseLength } from "../src/leases.js";
import { CONFIG, Restarting, WAIT_MAX_MS, all } from "./server.js";

let server: Local;
let client: Client;
before(async () => {
  server = await Laneway.local({ config: CONFIG });
  client = server.client();
});
after(() => server.close());

function guarded(...words: string[]) {
  const program = fileURLToPath(new URL("guarded.js", import.meta.url));
  return spawn(process.execPath, [program, ...words], { stdio: ["ignore", "pipe", "inherit"] });
}

test("of 200 blocks of 4 processes at most 3 run at once", async () => {
  const log = join(mkdtempSync(join(tmpdir(), "laneway-test-")), "log");
  writeFileSync(log, "");
  const processes = Array.from({ length: 4 }, () => guarded(server.url, "three", "50", log));
  const codes = await Promise.all(processes.map(async (process) => (await once(process, "exit"))[0] as number));
  assert.deepEqual(codes, [0, 0, 0, 0]);
  const marks = readFileSync(log, "utf8");
  let [inside, most] = [0, 0];
  for (const mark of marks) {
    inside += mark === "+" ? 1 : -1;
    most = Math.max(most, inside);
  }
  assert.equal(marks.length, 400);
  assert.deepEqual([inside, most], [0, 3]);
});

test("the slot of a killed process is free after its lease", async () => {
  const holder = guarded(server.url, "one", "hold", "6000");
  await once(holder.stdout, "data");
  await assert.rejects(client.slot(["one"], { wait_ms: 0 }), AtCapacity);
  holder.kill("SIGKILL");
  await once(holder, "exit");
  // The slot is not free at once, because the last heartbeat is at most a third of the lease old.
  await assert.rejects(client.slot(["one"], { wait_ms: 0 }), AtCapacity);
  await client.withSlot(["one"], { wait_ms: 60_000 }, () => undefined);
});

test("a slot has the id and the label of its caller, and can be cancelled by that id while it waits", async () => {
  const [id, waiting] = [crypto.randomUUID(), crypto.randomUUID()];
  await using held = await client.slot(["labelled"], { id, label: "Refactor" });
  assert.deepEqual([held.id, (await client.task(id)).label], [id, "Refactor"]);
  await assert.rejects(client.slot(["main"], { id }), (error) => error instanceof Refusal && error.status === 409);
  const second = assert.rejects(client.slot(["labelled"], { id: waiting, label: "second" }), Cancelled);
  for await (const event of await client.events({ lane: "labelled" })) if (event.event === "changed" && event.data.waiting === 1) break;
  assert.deepEqual((await all(client.tasks({ lane: "labelled", status: "queued" }))).map(({ label }) => label), ["second"]);
  assert.equal((await client.cancel(waiting)).status, "cancelled_while_queued");
  await second;
});

test("a lease is renewed for as long as the block runs", async () => {
  await using held = await client.slot(["one"], { lease_ms: 4000 });
  await assert.rejects(client.slot(["one"], { wait_ms: 6000 }), WaitTimeout);
  assert.equal(held.isLost, false);
});

test("a lost lease rejects the block and aborts its signal", async () => {
  let signal: AbortSignal | undefined;
  const block = client.withSlot(["one"], { lease_ms: 3000 }, async (slot) => {
    signal = slot.signal;
    await client.cancel(slot.id);
    await setTimeout(WAIT_MAX_MS, undefined, { signal: slot.signal });
  });
  await assert.rejects(block, LeaseLost);
  assert.ok(signal?.reason instanceof LeaseLost);
  await client.withSlot(["one"], { wait_ms: 60_000 }, () => undefined);
});

test("the caller's own signal also ends the block and gives the slot back", async () => {
  const stop = new AbortController();
  let seen: AbortSignal | undefined;
  const block = client.withSlot(["one"], { signal: stop.signal }, async (slot) => {
    seen = slot.signal;
    stop.abort(new Error("enough"));
    // The call ends whether or not the block listens to the signal.
    await new Promise(() => undefined);
  });
  await assert.rejects(block, /enough/);
  assert.match(String(seen?.reason), /enough/);
  const free = await client.slot(["one"], { wait_ms: 0, signal: AbortSignal.timeout(WAIT_MAX_MS) });
  assert.deepEqual([free.signal.aborted, free.isLost], [false, false]);
  await free.release();
});

test("a block does not start if its caller has aborted before", async () => {
  const stop = new AbortController();
  const slot = await client.slot(["one"], { signal: stop.signal });
  stop.abort(new Error("too late"));
  let hasBegun = false;
  await assert.rejects(slot.guard(() => void (hasBegun = true)), /too late/);
  assert.deepEqual([hasBegun, slot.isLost, slot.signal.aborted], [false, false, true]);
  await client.withSlot(["one"], { wait_ms: 0 }, () => undefined);
});

test("a block that throws gives its slot back, and the caller gets the error", async () => {
  const mine = new Error("mine");
  await assert.rejects(client.withSlot(["one"], () => Promise.reject(mine)), (error) => error === mine);
  await client.withSlot(["one"], { wait_ms: 0 }, () => undefined);
});

test("an aborted wait leaves the lane", async () => {
  await using _ = await client.slot(["one"]);
  const stop = new AbortController();
  const waiting = client.slot(["one"], { signal: stop.signal });
  while ((await client.lane("one").get()).waiting === 0);
  stop.abort(new Error("enough"));
  await assert.rejects(waiting, /enough/);
  while ((await client.lane("one").get()).waiting > 0);
});

test("a slot survives a kill and a restart of the server", async () => {
  const restarting = await Restarting.start();
  const other = restarting.running.client();
  await other.withSlot(["one"], async () => {
    await restarting.kill();
    await restarting.again();
    await assert.rejects(other.slot(["one"], { wait_ms: 0 }), Refusal);
  });
  await other.withSlot(["one"], { wait_ms: 0 }, () => undefined);
  await restarting.running.close();
});

test("a slot is lost when its server is away for longer than the lease", async () => {
  const restarting = await Restarting.start();
  const other = restarting.running.client();
  const block = other.withSlot(["one"], { lease_ms: 300 }, async (slot) => {
    await restarting.kill();
    await setTimeout(WAIT_MAX_MS, undefined, { signal: slot.signal });
  });
  await assert.rejects(block, LeaseLost);
  await restarting.again();
  await other.withSlot(["one"], { wait_ms: 60_000 }, () => undefined);
  await restarting.running.close();
});

test("a turn whose server is killed is lost", async () => {
  const restarting = await Restarting.start();
  const other = restarting.running.client();
  const answer = other.agent("slow").chat("x", { session: "doomed", idempotencyKey: "doomed" }).answer();
  answer.catch(() => undefined);
  while ((await other.status()).running === 0);
  await restarting.kill();
  await restarting.again();
  await assert.rejects(answer, (lost) => lost instanceof Lost && lost.problem.phase === "run");
  await restarting.running.close();
});

test("the length of a lease follows the server's clock and is never too long", () => {
  const headers = new Headers({ date: "Sun, 15 Nov 2026 12:00:00 GMT" });
  assert.equal(leaseLength(undefined, "2026-11-15T12:00:30.500Z", headers), 29_500);
  assert.equal(leaseLength(5000, "2026-11-15T12:00:30.500Z", headers), 5000);
});
