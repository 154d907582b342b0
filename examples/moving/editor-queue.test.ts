import assert from "node:assert/strict";
import { test } from "node:test";
import { AtCapacity, Invalid, WaitTimeout } from "laneway";
import { EditorQueue, type Snapshot } from "./editor-queue.js";

/** A block that ends when the test says so. */
function gate(): { open: () => void; passed: Promise<void> } {
  let open = () => {};
  const passed = new Promise<void>((resolve) => (open = resolve));
  return { open, passed };
}

/** Waits for a state of the queue. */
function until(queue: EditorQueue, holds: (snapshot: Snapshot) => boolean): Promise<void> {
  return new Promise((resolve) => {
    const stop: { now?: () => void } = {};
    const listener = (snapshot: Snapshot) => {
      if (!holds(snapshot)) return;
      stop.now?.();
      resolve();
    };
    stop.now = queue.onChange(listener);
  });
}

test("an editor's queue runs one request, then the others by source", async (t) => {
  const queue = await EditorQueue.open({ limit: 1 });
  t.after(() => queue.close());
  const [first, order] = [gate(), [] as string[]];
  const signal = new AbortController();
  const running = queue.run({ label: "first", signal: signal.signal }, () => first.passed);
  await until(queue, ({ running }) => running === 1);
  const later = (label: string, source: "user" | "background") =>
    queue.run({ label, source }, async () => void order.push(label));
  const index = later("index", "background");
  await until(queue, ({ waiting }) => waiting === 1);
  const ask = later("ask", "user");
  const dropped = later("dropped", "user");
  await until(queue, ({ waiting }) => waiting === 3);
  assert.equal(queue.statusLine(), "Agent: 1/1 (3 queued)");
  assert.deepEqual(queue.waitingRequests().map(({ label }) => label), ["index", "ask", "dropped"]);

  // Other programs see the same requests, by id and label.
  const listed = new Map<string, string | null | undefined>();
  for await (const task of queue.client.tasks({ lane: "editor" })) listed.set(task.id, task.label);
  for (const { id, label } of queue.waitingRequests()) assert.equal(listed.get(id), label);
  assert.deepEqual([...listed.values()].sort(), ["ask", "dropped", "first", "index"]);

  const { id } = queue.waitingRequests()[2]!;
  assert.ok(queue.cancel(id));
  assert.ok(!queue.cancel(id));
  await assert.rejects(dropped, /withdrawn/);
  await assert.rejects(queue.run({ label: "brief", timeoutMs: 1 }, async () => "never"), WaitTimeout);
  await until(queue, ({ waiting }) => waiting === 2);

  // The limit stays when a new one is invalid.
  await assert.rejects(queue.setLimit(0), Invalid);
  // The signal of a request ends its wait, not its run.
  signal.abort();
  first.open();
  await Promise.all([running, index, ask]);
  assert.deepEqual(order, ["ask", "index"]);
  await until(queue, ({ running, waiting }) => running + waiting === 0);
  assert.equal(queue.statusLine(), "Agent: 0/1");
});

test("a higher limit starts waiting requests at once, and ten times the limit may wait", async (t) => {
  const queue = await EditorQueue.open({ limit: 1 });
  t.after(() => queue.close());
  const all = gate();
  const requests = Array.from({ length: 11 }, (_, n) => queue.run({ label: `${n}` }, () => all.passed));
  await until(queue, ({ running, waiting }) => running === 1 && waiting === 10);
  const full = await queue.run({ label: "one too many" }, async () => undefined).catch((error: unknown) => error);
  assert.ok(full instanceof AtCapacity && (full.retryAfter ?? 0) > 0);
  await queue.setLimit(3);
  await until(queue, ({ running, limit }) => running === 3 && limit === 3);
  await queue.setLimit(1);
  assert.equal(queue.snapshot().running, 3);
  all.open();
  await Promise.all(requests);
});
