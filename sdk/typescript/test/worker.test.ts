// Workers and polled external tasks.

import assert from "node:assert/strict";
import { type TestContext, after, before, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { AttemptFailed, Client, DoNotRetry, Laneway, type Local, NotClaimable, TaskRun, Worker } from "../src/index.js";
import type { TurnMessageView } from "../src/wire.js";
import { proxy } from "./proxy.js";
import { CONFIG, Restarting, fresh } from "./server.js";

let server: Local;
let client: Client;
const quiet = { log: () => undefined };
before(async () => {
  server = await Laneway.local({ config: CONFIG });
  client = server.client();
});
after(() => server.close());

/** Runs a worker, and drains it when the test ends. */
function start(t: TestContext, worker: Worker): Promise<void> {
  const running = worker.run();
  t.after(async () => {
    worker.drain();
    await running;
  });
  return running;
}

test("a worker runs several tasks at once up to its limit", async (t) => {
  let [inside, most] = [0, 0];
  let meet = () => {};
  const met = new Promise<void>((resolve) => (meet = resolve));
  const worker = new Worker(client, { pollMs: 100, concurrency: 2 }).handler<{ n: number }>("count", async ({ payload }) => {
    most = Math.max(most, ++inside);
    if (inside === 2) meet();
    // The first two attempts wait for each other, which shows that they run at once.
    await met;
    await setTimeout(5);
    inside -= 1;
    return { twice: payload.n * 2 };
  });
  const running = start(t, worker);
  const tasks = [];
  for (let n = 0; n < 6; n += 1) tasks.push(await client.submit("count", { n }));
  const results = await Promise.all(tasks.map(async ({ id }) => (await client.wait(id)).result));
  assert.deepEqual(results, [0, 2, 4, 6, 8, 10].map((twice) => ({ twice })));
  assert.equal(most, 2);
  worker.drain();
  await running;
});

test("a failure keeps what it produced", async (t) => {
  const output = { stdout: "no rule to make target", exit_code: 2 };
  const worker = new Worker(client, { pollMs: 100 }).handler("make", () => {
    throw new AttemptFailed("exit code 2", output);
  });
  const running = start(t, worker);
  const ended = await client.wait((await client.submit("make")).id);
  assert.deepEqual([ended.status, ended.error, ended.result], ["failed", "exit code 2", output]);
  worker.drain();
  await running;
  const polled = (await client.submit("poll")).id;
  const done = await client.completeExternalTask(polled, { success: false, result: output, error: "exit code 2" });
  assert.deepEqual([done.status, done.error, done.result], ["failed", "exit code 2", output]);
});

test("a report that the server refuses ends the attempt", async (t) => {
  const worker = new Worker(client, { pollMs: 100, ...quiet }).handler("long", () => "x".repeat(5 * 1024 * 1024));
  const running = start(t, worker);
  const ended = await client.wait((await client.submit("long")).id);
  assert.equal(ended.status, "failed");
  assert.match(String(ended.error), /its report was refused/);
  worker.drain();
  await running;
  const polled = (await client.submit("poll")).id;
  await assert.rejects(client.completeExternalTask(polled, { success: true, error: "a success has no error" }), { code: "INVALID" });
  const view = await client.task(polled);
  assert.deepEqual([view.status, /its report was refused/.test(String(view.error))], ["failed", true]);
});

test("a worker warns of tasks that it has no handler for", async (t) => {
  await client.lane("stranger").change({ handler: "external" });
  const task = await client.submit("stranger", null, { lanes: ["stranger"] });
  let warn: (text: string) => void = () => {};
  const warned = new Promise<string>((resolve) => (warn = resolve));
  const worker = new Worker(client, { lanes: ["str*er"], pollMs: 100, log: warn }).handler("known", () => null);
  const running = start(t, worker);
  assert.match(await warned, /no handler for: stranger$/);
  worker.drain();
  await running;
  await client.cancel(task.id);
});

test("what a handler asks for is a child of its task", async (t) => {
  const kind = fresh("asks");
  const worker = new Worker(client, { pollMs: 100 }).handler(kind, async (task) => {
    const later = await client.submit("never", null, { lanes: ["of-child"] });
    // The task holds the only slot of `one`, and lends it to its children.
    const held = await client.withSlot(["one"], { wait_ms: 0 }, async (slot) => (await client.task(slot.id)).parent);
    const answer = await client.agent("echo").chat("hello", { session: `of-${task.id}` });
    await client.batch(`of-${task.id}`, [{ tool: "read", payload: 1 }], { group: task.id });
    const parents = [held, (await client.task(answer.execution.id)).parent, (await client.task(later.id)).parent];
    for await (const call of client.tasks({ group: task.id })) parents.push(call.parent);
    return parents;
  });
  const running = start(t, worker);
  const { id } = await client.submit(kind, null, { lanes: ["external", "one"] });
  assert.deepEqual((await client.wait(id)).result, [id, id, id, id]);
  assert.equal(await client.cancelWaiting({ lane: "of-child" }), 1, "it outlives its parent");
  worker.drain();
  await running;
});

test("failures are retried unless the handler says not to", async (t) => {
  const attempts: number[] = [];
  const worker = new Worker(client, { pollMs: 100, lanes: ["again"] })
    .handler("flaky", ({ attempt }) => {
      attempts.push(attempt);
      if (attempt === 1) throw new Error("not yet");
      return "done";
    })
    .handler("hopeless", ({ attempt }) => {
      attempts.push(attempt);
      throw new DoNotRetry("never");
    });
  const running = start(t, worker);
  const first = await client.wait((await client.submit("flaky", null, { lanes: ["again"] })).id);
  assert.deepEqual([first.status, first.result, attempts.splice(0)], ["completed", "done", [1, 2]]);
  const second = await client.wait((await client.submit("hopeless", null, { lanes: ["again"] })).id);
  assert.deepEqual([second.status, second.error, attempts], ["failed", "never", [1]]);
  const letter = (await client.deadLetters()).find(({ kind }) => kind === "hopeless");
  assert.equal(letter?.error, "never");
  assert.equal((await client.redrive(letter!.id)).count, 1);
  worker.drain();
  await running;
});

test("progress is published and a cancelled task stops", async (t) => {
  const worker = new Worker(client, { pollMs: 100, leaseMs: 3000 }).handler("long", async (task) => {
    // Repeat it, because only clients that watch at that moment get the progress.
    for (;;) {
      task.progress({ percent: 40 });
      await setTimeout(50, undefined, { signal: task.signal });
    }
  });
  const running = start(t, worker);
  const { id } = await client.submit("long");
  let told: unknown;
  for await (const event of client.taskEvents(id)) {
    if (event.event !== "progress" || told !== undefined) continue;
    told = event.data.progress;
    assert.equal((await client.cancel(id)).status, "cancelling");
  }
  assert.deepEqual(told, { percent: 40 });
  assert.equal((await client.wait(id)).status, "cancelled");
  worker.drain();
  await running;
});

test("draining finishes running attempts and claims no further tasks", async (t) => {
  let started = () => {};
  let end = () => {};
  const hasStarted = new Promise<void>((resolve) => (started = resolve));
  const mayEnd = new Promise<void>((resolve) => (end = resolve));
  const worker = new Worker(client, { pollMs: 100 }).handler("held", async () => {
    started();
    await mayEnd;
    return "finished";
  });
  const running = start(t, worker);
  const first = await client.submit("held");
  await hasStarted;
  worker.drain();
  const second = await client.submit("held");
  end();
  await running;
  assert.equal((await client.task(first.id)).result, "finished");
  assert.equal((await client.task(second.id)).status, "queued");
  await client.cancel(second.id);
});

test("a draining worker runs the tasks of an open claim", async (t) => {
  let claims = () => {};
  const asked = new Promise<void>((resolve) => (claims = resolve));
  await using between = await proxy(server.url, (_, path) => void (path.endsWith("/claim") && claims()));
  await client.lane("parting").change({ handler: "external" });
  const worker = new Worker(new Client(between.url), { lanes: ["parting"] }).handler("parting", () => "at the last moment");
  const running = start(t, worker);
  await asked;
  worker.drain();
  const { id } = await client.submit("parting", null, { lanes: ["parting"] });
  await running;
  const { status, result, attempts } = await client.task(id);
  assert.deepEqual([status, result, attempts], ["completed", "at the last moment", 1]);
});

test("a worker pauses between claims that return at once", async () => {
  const asked: number[] = [];
  let enough = () => {};
  const listen = (_: string, path: string) => {
    if (!path.endsWith("/claim")) return undefined;
    if (asked.push(performance.now()) === 4) enough();
    // A draining server answers like this.
    return '{"tasks": []}' as const;
  };
  await using between = await proxy(server.url, listen);
  const worker = new Worker(new Client(between.url), { pollMs: 10_000 }).handler("nothing", () => undefined);
  enough = () => worker.drain();
  await worker.run();
  // The first pause is a tenth of a second, and each further one is twice as long.
  assert.ok(asked[3]! - asked[0]! >= 690, `${asked}`);
});

test("a claim with a too short or too long wait is refused", () => {
  for (const pollMs of [0, 61_000, Number.NaN]) assert.throws(() => new Worker(client, { pollMs }), /100 to 60 000/);
});

test("an external agent can be steered", async (t) => {
  const worker = new Worker(client, { pollMs: 100, lanes: ["agent:outside"], leaseMs: 3000 });
  worker.handler(
    "agent:outside",
    async (task) => {
      for (;;) {
        task.progress("listening");
        const said = task.steered();
        if (said.length > 0) return said.map(({ text, sender, sender_name, message_id }) => [text, sender, sender_name, message_id]);
        await setTimeout(50);
      }
    },
    { steering: true },
  );
  void start(t, worker);
  const session = client.session(fresh("steer"));
  const first = await session.send("begin", { agent: "outside", mode: "steer" });
  // The heartbeat with the progress also says that the turn takes steering.
  for await (const { event } of client.taskEvents(first.task_id!)) if (event === "progress") break;
  const ann = { sender: "u1", sender_name: "Ann", message_id: "m-2" };
  const second = await session.send("rather this", { agent: "outside", mode: "steer", ...ann });
  assert.equal(second.outcome, "steered");
  assert.deepEqual((await client.wait(first.task_id!)).result, [["rather this", "u1", "Ann", "m-2"]]);
});

test("a repeated offer is taken once and confirmed until the server answers", () => {
  const task = { attempt: 1, fence: 7, id: "t", kind: "k", lane: "l", lease_until: "2030-01-01T00:00:00Z", payload: null };
  const run = new TaskRun(task, true);
  const answer = (...steering: TurnMessageView[]) => {
    run.hear({ cancel_requested: false, lease_until: task.lease_until, steer: steering.map(({ text }) => text), steering });
  };
  const offer = [
    { id: "a", text: "left" },
    { id: "b", text: "right" },
  ];
  assert.deepEqual(run.say(), { takes_steering: true, steered: [] });
  answer(...offer);
  run.say();
  answer(...offer);
  assert.deepEqual(run.steered(), offer);
  // The answer to this heartbeat is lost, so the next one confirms both messages again.
  assert.deepEqual(run.say(), { takes_steering: true, steered: ["a", "b"] });
  assert.deepEqual(run.say(), { takes_steering: true, steered: ["a", "b"] });
  answer({ id: "c", text: "back" });
  assert.deepEqual(run.say(), { takes_steering: true, steered: [] });
  assert.deepEqual(run.steered(), [{ id: "c", text: "back" }]);
  assert.deepEqual(run.unnamed(), { steered: ["c"] });
  answer({ id: "c", text: "back" });
  assert.deepEqual(run.steered(), []);
});

test("a worker runs many attempts without a warning of Node", async (t) => {
  const warnings: Error[] = [];
  const warned = (warning: Error) => void warnings.push(warning);
  process.on("warning", warned);
  t.after(() => process.off("warning", warned));
  const lanes = [fresh("many")];
  await client.lane(lanes[0]!).change({ max_concurrency: 12, handler: "external" });
  const worker = new Worker(client, { pollMs: 100, lanes, concurrency: 12 });
  let [inside, open] = [0, () => {}];
  const all = new Promise<void>((resolve) => (open = resolve));
  worker.handler("many", async () => {
    // Each attempt waits until all run.
    if (++inside === 12) open();
    await all;
  });
  const running = start(t, worker);
  const tasks = await Promise.all(Array.from({ length: 12 }, () => client.submit("many", null, { lanes })));
  for (const { id } of tasks) assert.equal((await client.wait(id)).status, "completed");
  worker.drain();
  await running;
  assert.deepEqual(warnings, []);
});

test("watchers get the output of a handler that runs all kinds", async (t) => {
  const worker = new Worker(client, { pollMs: 100, lanes: ["agent:outside", "external"] });
  worker.handler("known", () => "its own");
  worker.handler("*", (task) => {
    for (const word of ["hello ", "there"]) task.delta(word);
    task.progress(1);
    task.usage({ output_tokens: 2 });
    return task.kind;
  });
  void start(t, worker);
  let text = "";
  const told: Record<string, unknown> = {};
  for await (const event of client.agent("outside").chat("hi", { session: fresh("delta") })) {
    if (event.event === "delta") text += event.data.text;
    if (event.event === "progress") told.progress = event.data.progress;
    if (event.event === "usage") told.usage = event.data.usage;
    // Output that no heartbeat has sent yet comes before the end.
    if (event.event === "completed") Object.assign(told, { text, result: event.data.result });
  }
  assert.deepEqual(told, { progress: 1, usage: { output_tokens: 2 }, text: "hello there", result: "agent:outside" });
  assert.equal((await client.wait((await client.submit("known")).id)).result, "its own");
});

test("output of a heartbeat without an answer goes out again", () => {
  const task = { attempt: 1, fence: 7, id: "t", kind: "k", lane: "l", lease_until: "2030-01-01T00:00:00Z", payload: null };
  const run = new TaskRun(task, false);
  run.delta("a");
  run.progress(1);
  assert.deepEqual(run.say(), { delta: "a", progress: 1 });
  run.delta("b");
  run.progress(2);
  assert.deepEqual(run.say(), { delta: "ab", progress: 2 });
  run.hear({ cancel_requested: false, lease_until: task.lease_until, steer: [] });
  assert.deepEqual([run.say(), run.hasOutput], [{}, false]);
});

test("a worker survives a kill of the server", async (t) => {
  const restarting = await Restarting.start();
  const other = restarting.running.client();
  let started = () => {};
  let end = () => {};
  const hasStarted = new Promise<void>((resolve) => (started = resolve));
  const mayEnd = new Promise<void>((resolve) => (end = resolve));
  const worker = new Worker(other, { pollMs: 100, concurrency: 4, leaseMs: 2000, ...quiet }).handler("step", async ({ payload }) => {
    if (payload === 0) {
      started();
      await mayEnd;
    }
    return payload;
  });
  const running = start(t, worker);
  const first = await other.submit("step", 0, { idempotencyKey: "step-0" });
  await hasStarted;
  await restarting.kill();
  // The client submits while the server is away, and the server accepts when it is back.
  const asking = other.submit("step", 1, { idempotencyKey: "step-1" });
  await restarting.again();
  const second = await asking;
  end();
  const views = [await other.wait(first.id), await other.wait(second.id)];
  assert.deepEqual(views.map(({ status, result }) => [status, result]), [
    ["completed", 0],
    ["completed", 1],
  ]);
  worker.drain();
  await running;
  await restarting.running.close();
});

test("accepted tasks survive a kill", async () => {
  const restarting = await Restarting.start();
  const other = restarting.running.client();
  const ids = [];
  for (let n = 0; n < 20; n += 1) ids.push((await other.submit("later", { n }, { lanes: ["external"] })).id);
  await restarting.kill();
  await restarting.again();
  const pending = await other.pendingExternalTasks({ lane: "external" });
  assert.deepEqual(pending.map(({ id }) => id), ids);
  assert.deepEqual(pending.map(({ payload }) => payload), ids.map((_, n) => ({ n })));
  await restarting.running.close();
});

test("completing a polled task claims it", async () => {
  const session = fresh("polled");
  const mine = server.client();
  const other = server.client();
  await mine.setLaneHandler("execute", "external", { session, timeoutMs: 60_000 });
  const lanes = [`session:${session}/execute`];
  const ids: string[] = [];
  for (let n = 0; n < 3; n += 1) ids.push((await mine.submit("tool", { n }, { lanes, wait_timeout_ms: 60_000 })).id);
  const pending = await mine.pendingExternalTasks({ session });
  assert.deepEqual(pending.map(({ id }) => id), ids);
  assert.ok(!pending[0]!.isTimedOut() && pending[0]!.remainingMs! <= 60_000);
  assert.equal((await mine.queueStats(session)).external_pending, 3);
  assert.ok((await mine.queueStats()).external_pending >= 3);
  // The client claims exactly this task; another client can claim the one before it.
  assert.equal((await mine.completeExternalTask(ids[1]!, { success: true, result: 1 })).status, "completed");
  const left = await mine.pendingExternalTasks({ session });
  assert.deepEqual(left.map(({ id, claimed }) => [id, claimed]), [[ids[0], false], [ids[2], false]]);
  await assert.rejects(other.completeExternalTask(ids[1]!), NotClaimable);
  const failed = await other.completeExternalTask(ids[0]!, { success: false, error: "no luck", retryable: false });
  assert.deepEqual([failed.status, failed.error], ["failed", "no luck"]);
  assert.equal((await mine.completeExternalTask(ids[2]!, { success: true, result: "last" })).result, "last");
  await assert.rejects(mine.completeExternalTask(ids[2]!), NotClaimable);
  const metrics = await mine.queueMetrics();
  assert.ok(Object.values(metrics.lanes).some(({ counters }) => counters.completed > 0));
  mine.close();
});
