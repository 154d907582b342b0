// Cancels and messages reach workers and slot holders at once. With these leases the next heartbeat is due in minutes.

import assert from "node:assert/strict";
import { type TestContext, after, before, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { Client, Laneway, LeaseLost, type Local, Refusal, TaskRun, Worker } from "../src/index.js";
import { CONFIG } from "./server.js";

let server: Local;
let client: Client;
const leaseMs = 600_000;
before(async () => {
  server = await Laneway.local({ config: CONFIG });
  client = server.client();
});
after(() => server.close());

/** Runs a worker, and drains it when the test ends. */
function start(t: TestContext, worker: Worker): void {
  const running = worker.run();
  t.after(async () => {
    worker.drain();
    await running;
  });
}

/** Says that the turn takes steering, until the test has seen it: progress is not kept for later watchers. */
async function announce(task: TaskRun, isSeen: () => boolean): Promise<void> {
  for (; !isSeen(); await setTimeout(5)) task.progress("takes steering");
}

/** Resolves when the signal is aborted. */
function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
    if (signal.aborted) resolve();
  });
}

test("a running attempt hears of a cancel", async (t) => {
  let begin = () => {};
  const worker = new Worker(client, { leaseMs, pollMs: 100 }).handler("endless", async ({ signal }) => {
    begin();
    await aborted(signal);
  });
  start(t, worker);
  for (let time = 0; time < 2; time += 1) {
    const begun = new Promise<void>((resolve) => (begin = resolve));
    const task = await client.submit("endless");
    await begun;
    await client.cancel(task.id);
    assert.equal((await client.wait(task.id)).status, "cancelled");
  }
});

test("a new turn starts after the interrupted one has stopped", async (t) => {
  const history: string[] = [];
  let begin = () => {};
  const begun = new Promise<void>((resolve) => (begin = resolve));
  let finish = () => {};
  const finished = new Promise<void>((resolve) => (finish = resolve));
  const handler = async ({ payload, signal }: TaskRun<{ text: string }>) => {
    const text = payload.text;
    history.push(`starts ${text}`);
    begin();
    if (text === "one") await aborted(signal);
    history.push(`ends ${text}`);
    if (text === "two") finish();
  };
  start(t, new Worker(client, { lanes: ["agent:outside"], leaseMs, concurrency: 4, pollMs: 100 }).handler("agent:outside", handler));
  const session = client.session("pushed");
  await session.send("one", { agent: "outside", debounce_ms: 0 });
  await begun;
  await session.send("two", { agent: "outside", mode: "interrupt" });
  await finished;
  assert.deepEqual(history, ["starts one", "ends one", "starts two", "ends two"]);
});

test("a running turn hears a message", async (t) => {
  let isSeen = false;
  const handler = async (task: TaskRun) => {
    await announce(task, () => isSeen);
    for (;;) {
      await setTimeout(5);
      const heard = task.steered();
      if (heard.length > 0) return heard.map(({ text }) => text);
    }
  };
  start(t, new Worker(client, { lanes: ["agent:outside"], leaseMs, pollMs: 100 }).handler("agent:outside", handler, { steering: true }));
  const session = client.session("steered-at-once");
  const first = await session.send("one", { agent: "outside", mode: "steer" });
  for await (const { event } of client.taskEvents(first.task_id!)) if (event === "progress") break;
  isSeen = true;
  const second = await session.send("two", { agent: "outside", mode: "steer" });
  assert.deepEqual([second.outcome, (await client.wait(first.task_id!)).result], ["steered", ["two"]]);
});

test("a message that a running turn has taken cannot be withdrawn", async (t) => {
  let [isSeen, isOver] = [false, false];
  const handler = async (task: TaskRun) => {
    await announce(task, () => isSeen);
    while (!isOver) {
      task.steered();
      await setTimeout(5);
    }
  };
  start(t, new Worker(client, { lanes: ["agent:outside"], leaseMs, pollMs: 100 }).handler("agent:outside", handler, { steering: true }));
  const session = client.session("taken-at-once");
  const first = await session.send("one", { agent: "outside", mode: "steer" });
  for await (const { event } of client.taskEvents(first.task_id!)) if (event === "progress") break;
  isSeen = true;
  const heard = await session.events();
  const second = await session.send("two", { agent: "outside", mode: "steer" });
  for await (const { event } of heard) if (event === "steered") break;
  await assert.rejects(session.withdraw(second.id!), Refusal);
  assert.equal((await session.receipt(second.id!)).status, "steered");
  isOver = true;
});

test("the holder of a slot hears of a cancel", async () => {
  const block = client.withSlot(["pushed"], { lease_ms: leaseMs }, async (slot) => {
    await client.cancel(slot.id);
    await setTimeout(60_000, undefined, { signal: slot.signal });
  });
  await assert.rejects(block, LeaseLost);
  // It has confirmed, so the lane is free.
  await client.withSlot(["pushed"], { wait_ms: 0 }, () => undefined);
});
