// Agents, tasks, sessions and lanes against a real server.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { inspect } from "node:util";
import {
  AtCapacity,
  BY_CODE,
  Client,
  IdempotencyConflict,
  Invalid,
  Laneway,
  type LanewayEvent,
  type Local,
  NotFound,
  Refusal,
  RunFailed,
  RunTimedOut,
  Unreachable,
} from "../src/index.js";
import { CONFIG, all, fresh } from "./server.js";

let server: Local;
let client: Client;
before(async () => {
  server = await Laneway.local({ config: CONFIG });
  client = server.client();
});
after(() => server.close());

test("a printed client does not show its token", () => {
  const printed = inspect(new Client("http://127.0.0.1:7717", { token: "id.secret" }), { depth: 10, showHidden: true });
  assert.match(printed, /127\.0\.0\.1:7717/);
  assert.doesNotMatch(printed, /secret/);
  assert.doesNotMatch(inspect(server), /ChildProcess/);
});

test("awaiting a turn gives the answer and iterating gives its events", async () => {
  assert.equal((await client.agent("upper").chat("hello", { session: fresh("ann") })).response, "HELLO");
  const seen: LanewayEvent[] = [];
  for await (const event of client.agent("upper").chat("hello", { session: fresh("ann") })) seen.push(event);
  assert.equal(seen[0]?.event, "accepted");
  assert.deepEqual(seen.slice(-2).map(({ event }) => event), ["completed", "done"]);
  const completed = seen.find((event) => event.event === "completed");
  assert.equal(completed?.data.result, "HELLO");
});

test("a full lane refuses with a retry time", async () => {
  const slow = client.agent("slow");
  const turns = [];
  for (let n = 0; n < 4; n += 1) turns.push(await slow.submit("x"));
  await assert.rejects(slow.chat("one more").answer(), (error) => {
    assert.ok(error instanceof AtCapacity);
    assert.equal(error.lane, "agent:slow");
    assert.equal(error.problem.queue_length, 3);
    assert.ok(error.retryAfter! > 0);
    return true;
  });
  assert.equal((await slow.queue()).queue_length, 3);
  assert.equal((await slow.clear()).cleared_count, 3);
  await client.cancel(turns[0]!.execution.id);
  assert.equal((await client.wait(turns[0]!.execution.id)).status, "cancelled");
});

test("leaving the loop early and aborting both cancel the turn", async () => {
  for (const how of ["leave", "abort"]) {
    const stop = new AbortController();
    let task = "";
    const read = async () => {
      for await (const { event, data } of client.agent("slow").chat("x", { session: fresh("gone"), signal: stop.signal })) {
        task = (data as { task_id?: string }).task_id ?? task;
        if (event !== "started") continue;
        if (how === "leave") break;
        stop.abort(new Error("enough"));
      }
    };
    if (how === "leave") await read();
    else await assert.rejects(read, /enough/);
    assert.equal((await client.wait(task)).status, "cancelled");
  }
});

test("each refusal has its own error", async () => {
  const cases = [
    ["broken", {}, RunFailed],
    ["slow", { timeout_ms: 50 }, RunTimedOut],
    ["missing", {}, NotFound],
    ["upper", { priority: 77 }, Invalid],
  ] as const;
  for (const [agent, how, expected] of cases) {
    await assert.rejects(client.agent(agent).chat("x", { session: fresh("s"), ...how }).answer(), (error) => {
      assert.ok(error instanceof Refusal);
      assert.equal(error.constructor, expected);
      assert.equal(BY_CODE[error.code], expected);
      return true;
    });
  }
});

test("the same key is the same task, and another body is refused", async () => {
  const idempotencyKey = fresh("key");
  const first = await client.submit("read", { n: 1 }, { lanes: ["main"], idempotencyKey });
  const second = await client.submit("read", { n: 1 }, { lanes: ["main"], idempotencyKey });
  assert.equal(first.id, second.id);
  assert.equal(second.replayed, true);
  await assert.rejects(client.submit("read", { n: 2 }, { lanes: ["main"], idempotencyKey }), IdempotencyConflict);
  assert.equal((await client.wait(first.id)).status, "completed");
});

test("a waiting task is explained, prioritised and cancelled", async () => {
  const lane = fresh("lane");
  await client.lane(lane).pause();
  const { id } = await client.submit("read", null, { lanes: [lane], group: lane });
  assert.equal((await client.explain(id)).blockers[0]?.kind, "paused");
  assert.equal((await client.prioritise(id, 7)).priority, 7);
  const found = [];
  for await (const task of client.tasks({ lane, status: "queued" })) found.push(task.id);
  assert.deepEqual(found, [id]);
  assert.equal((await client.cancel(id)).status, "cancelled_while_queued");
  assert.equal((await client.group(lane)).done, 1);
});

test("lanes are read, changed, paused and cleared", async () => {
  const name = fresh("a/b c");
  const lane = client.lane(name);
  assert.equal((await lane.change({ max_concurrency: 7, timeout: "2s" })).max_concurrency, 7);
  assert.equal((await lane.get()).settings.timeout, "2000ms");
  assert.equal((await lane.pause()).paused, true);
  for (let n = 0; n < 3; n += 1) await client.submit("read", null, { lanes: [name] });
  assert.equal(await lane.clear(), 3);
  await assert.rejects(lane.change({ max_concurrency: 0 }), Invalid);
  assert.equal((await lane.resume()).paused, false);
});

test("an agent is created, changed and removed", async () => {
  const agent = client.agent("made-in-typescript");
  const made = await agent.create({ echo: true, max_queued: 5 });
  assert.deepEqual([made.runner, made.origin, made.max_queued], ["echo", "api", 5]);
  assert.equal((await agent.chat("hello")).response, "hello");
  const changed = await agent.change({ max_concurrency: 2 });
  assert.deepEqual([changed.max_concurrency, changed.max_queued], [2, 5]);
  assert.deepEqual((await client.lane("agent:made-in-typescript").release()).released, []);
  await agent.remove();
  await assert.rejects(agent.get(), NotFound);
});

test("a session collects messages while it is busy", async () => {
  const session = client.session(fresh("chat/*%"));
  const first = await session.send("one", { agent: "slow" });
  const second = await session.send("two", { agent: "slow" });
  const third = await session.send("three", { agent: "slow", message_id: "m3", channel: "web" });
  const fourth = await session.send("three", { agent: "slow", message_id: "m3", channel: "web" });
  const outcomes = [first, second, third, fourth].map(({ outcome }) => outcome);
  assert.deepEqual(outcomes, ["started", "queued", "queued", "duplicate"]);
  await session.move(third.id, second.id);
  assert.deepEqual((await session.get()).messages.map(({ text }) => text), ["three", "two"]);
  await session.withdraw(second.id);
  assert.equal((await session.receipt(second.id)).status, "cancelled");
  assert.equal(await session.clear(), 1);
  await session.interrupt();
  assert.equal((await client.wait(first.task_id!)).status, "cancelled");
});

test("a waiting message is promoted into the running turn", async () => {
  const session = client.session(fresh("promote"));
  const events = await client.events({ session: session.key });
  const first = await session.send("one", { agent: "listener" });
  // The turn takes messages before it reports progress.
  for await (const { event } of events) if (event === "progress") break;
  const second = await session.send("two", { agent: "listener", mode: "followup" });
  const promoted = await session.promote(second.id);
  assert.deepEqual([second.outcome, promoted.outcome, promoted.task_id], ["queued", "steered", first.task_id]);
  assert.equal((await client.wait(first.task_id!)).result, "heard");
  assert.equal((await session.receipt(second.id)).status, "steered");
  await assert.rejects(session.promote(second.id), Refusal);
});

test("a schedule is created, changed, fired and removed", async () => {
  const schedule = client.schedule("nightly");
  const made = await schedule.create({ cron: "30 2 * * *", agent: "echo", message: "Tidy up", enabled: false });
  assert.deepEqual([made.name, made.agent, made.timezone, made.enabled, made.next_runs], ["nightly", "echo", "UTC", false, []]);
  const changed = await schedule.change({ enabled: true, timezone: "Europe/Berlin" });
  assert.deepEqual([changed.enabled, changed.timezone, changed.message, changed.next_runs.length], [true, "Europe/Berlin", "Tidy up", 3]);
  const fired = await schedule.run();
  assert.equal((await client.wait(fired.task_id!)).result, "Tidy up");
  assert.deepEqual((await all(schedule.runs())).map((one) => [one.task_id, one.trigger]), [[fired.task_id, "manual"]]);
  assert.equal((await schedule.get()).last_run?.status, "completed");
  assert.deepEqual((await all(client.schedules())).map(({ name }) => name), ["nightly"]);
  await assert.rejects(schedule.change({ cron: "31 31 31 2 *" }), Invalid);
  await schedule.remove();
  await assert.rejects(schedule.get(), NotFound);
});

test("a tool batch has results in the order of its calls", async () => {
  const tools = ["read", "read", "bash", "read", "write"];
  const { results } = await client.batch(fresh("batch"), tools.map((tool, n) => ({ tool, payload: { n } })));
  assert.deepEqual(results.map(({ tool }) => tool), tools);
  assert.ok(results.every(({ success }) => success));
});

test("a request carries the current trace", async () => {
  const trace = crypto.randomUUID().replaceAll("-", "");
  const traceparent = `00-${trace}-00f067aa0ba902b7-01`;
  const later = { lanes: [fresh("later")], run_after_ms: 60_000 };
  const first = await server.client({ trace: () => traceparent }).submit("read", null, later);
  const second = await client.submit("read", null, { ...later, traceparent });
  for (const { id } of [first, second]) {
    const told = (await client.task(id)).traceparent?.split("-");
    assert.equal(told?.[1], trace);
    assert.notEqual(told?.[2], "00f067aa0ba902b7");
    await client.cancel(id);
  }
});

test("a missing server is unreachable, and an abort is the caller's own", async () => {
  const missing = new Client("http://127.0.0.1:9", { retry: { limitMs: 0 } });
  await assert.rejects(missing.status(), Unreachable);
  await assert.rejects(client.status({ signal: AbortSignal.abort(new Error("mine")) }), /mine/);
});

test("a stream of events is open when it is awaited, and nothing after that is missed", async () => {
  const name = fresh("heard");
  const events = await client.events({ lane: name });
  const ofSession = await client.session(name).events();
  await client.lane(name).pause();
  await client.lane(name).resume();
  await client.session(name).send("hi", { agent: "upper" });
  const names = [];
  for await (const { event } of events) if (names.push(event) === 4) break;
  // It starts with the numbers of the lane.
  assert.deepEqual(names.slice(0, 2), ["changed", "paused"]);
  assert.ok(names.includes("resumed"));
  assert.equal((await ofSession.next()).value?.event, "message");
  await ofSession.return();
  // Without awaiting it, the first event opens it.
  for await (const { event } of client.taskEvents((await client.submit("read")).id)) if (event === "done") break;
});

test("a client of several replicas goes on with one that is there", async () => {
  const missing = "http://127.0.0.1:4";
  const several = new Client([missing, server.url], { retry: { limitMs: 0 } });
  // No server got this request, so it may be sent elsewhere although it is not safe to repeat.
  const { id } = await several.submit("read", 1);
  assert.equal(several.url, server.url);
  assert.equal((await several.wait(id)).result, 1);
  const listed = new Client(`${missing}, ${server.url}`);
  const events = await listed.events({ lane: "replicas" });
  await listed.lane("replicas").pause();
  assert.deepEqual([(await events.next()).value?.event, (await events.next()).value?.event], ["changed", "paused"]);
  await events.return();
  await listed.lane("replicas").resume();
  assert.deepEqual(await listed.withSlot(["three"], (slot) => slot.isLost), false);
  assert.throws(() => new Client([]), TypeError);
  assert.throws(() => new Client(`${server.url},nowhere`), TypeError);
  await assert.rejects(new Client([missing, missing], { retry: { limitMs: 0 } }).status(), Unreachable);
});

test("a client goes on with the next replica when its own is killed", async () => {
  const [first, second] = await Promise.all([Laneway.local({ config: CONFIG }), Laneway.local({ config: CONFIG })]);
  try {
    const several = new Client([first.url, second.url]);
    assert.equal((await several.agent("upper").chat("one", { session: "s" })).response, "ONE");
    await first.close();
    assert.equal((await several.agent("upper").chat("two", { session: "s" })).response, "TWO");
    assert.equal(several.url, second.url);
  } finally {
    await Promise.all([first.close(), second.close()]);
  }
});
