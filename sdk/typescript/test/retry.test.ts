// Which requests the client repeats, and when.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import { AtCapacity, Client, UnexpectedAnswer, Unreachable } from "../src/index.js";
import { refusal } from "../src/errors.js";
import { readEvents } from "../src/events.js";
import { patience } from "../src/patience.js";
import { USUAL, pauseAfter } from "../src/retry.js";
import type { Problem } from "../src/wire.js";

function problem(fields: Partial<Problem> = {}): Problem {
  const detail = "busy";
  const usual = { title: "At capacity", status: 429, code: "AT_CAPACITY", retryable: true, phase: "setup", reason: "AT_CAPACITY" };
  return { type: "urn:laneway:problem:at-capacity", detail, error: detail, message: detail, ...usual, ...fields };
}

test("pauses honour the server's time and the total limit", () => {
  const cases: [Partial<Problem>, number, number, number, number | undefined][] = [
    [{ retry_after: 2, retry_after_ms: 1500 }, 1, 0, 0, 1500],
    [{ retry_after: 2, retry_after_ms: 1500 }, 1, 0, 1, 1875],
    [{}, 1, 0, 0, 100],
    [{}, 3, 0, 0, 400],
    [{}, 20, 0, 0, 5000],
    [{ retry_after_ms: 1500 }, 1, 29_000, 0, undefined],
    [{ retryable: false }, 1, 0, 0, undefined],
    [{ phase: "run", code: "RUN_TIMED_OUT" }, 1, 0, 0, undefined],
  ];
  for (const [fields, tries, spent, chance, expected] of cases) {
    assert.equal(pauseAfter(USUAL, refusal(problem(fields)), tries, spent, chance), expected);
  }
  assert.equal(pauseAfter(USUAL, new Unreachable("x"), 1, 0, 0), 100);
  assert.equal(pauseAfter(USUAL, new UnexpectedAnswer(500, ""), 1, 0, 0), undefined);
});

/** A server that refuses two requests of each method, accepts the third, and records them. */
async function refusingTwice() {
  const seen: { method: string; trace: unknown; at: number }[] = [];
  const server = createServer((request, response) => {
    seen.push({ method: request.method!, trace: request.headers.traceparent, at: performance.now() });
    const isRefused = seen.filter(({ method }) => method === request.method).length <= 2;
    response.writeHead(isRefused ? 429 : 200, { "content-type": isRefused ? "application/problem+json" : "application/json" });
    response.end(JSON.stringify(isRefused ? problem({ retry_after_ms: 100 }) : {}));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  return { seen, server, client: new Client(`http://127.0.0.1:${port}`) };
}

test("a GET is repeated after the server's time and in one trace; a POST only with a key", async () => {
  const { seen, server, client } = await refusingTwice();
  await client.status();
  assert.equal(seen.length, 3);
  assert.equal(new Set(seen.map(({ trace }) => trace)).size, 1);
  // A timer may be slightly early by the other clock.
  assert.ok(seen[1]!.at - seen[0]!.at >= 98 && seen[2]!.at - seen[1]!.at >= 98);
  await assert.rejects(client.submit("x"), (error) => error instanceof AtCapacity && error.retryAfter === 0.1);
  assert.equal(seen.length, 4);
  await client.submit("x", null, { idempotencyKey: "k" });
  assert.equal(seen.length, 6);
  server.close();
});

test("a stream is read however it is split", async () => {
  const text = 'event: delta\r\ndata: {"text":\ndata: "ä"}\nid: 7\n\n: alive\n\nevent: done\ndata: {}\n\n';
  const bytes = new TextEncoder().encode(text);
  for (let size = 1; size <= bytes.length; size += 1) {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size));
        controller.close();
      },
    });
    const events = [];
    for await (const event of readEvents(body)) events.push(event);
    assert.deepEqual(events, [
      { event: "delta", id: "7", data: { text: "ä" } },
      { event: "done", data: {} },
    ]);
  }
});

test("an answer has its time limit, unless the program has set its own dispatcher", () => {
  assert.equal(patience(0)!.dispatcher, patience(0)!.dispatcher, "one pool of connections");
  assert.equal(patience(500)!.dispatcher, patience(500)!.dispatcher);
  assert.notEqual(patience(500)!.dispatcher, patience(0)!.dispatcher);
  const globals = globalThis as Record<symbol, unknown>;
  const key = Symbol.for("undici.globalDispatcher.1");
  const usual = globals[key];
  class ProxyAgent {}
  globals[key] = new ProxyAgent();
  try {
    assert.equal(patience(0), undefined);
    assert.equal(patience(500), undefined);
  } finally {
    globals[key] = usual;
  }
  assert.ok(patience(0) !== undefined);
});

test("a missing answer times out, also with a fetch that is not Node's own", async () => {
  const silent = createServer(() => undefined).listen(0, "127.0.0.1");
  await once(silent, "listening");
  const url = `http://127.0.0.1:${(silent.address() as { port: number }).port}`;
  for (const other of [{}, { fetch: (...asked: Parameters<typeof fetch>) => fetch(...asked) }]) {
    const client = new Client(url, { timeoutMs: 100, retry: { limitMs: 0 }, ...other });
    await assert.rejects(client.status(), Unreachable);
    await assert.rejects(client.status({ signal: AbortSignal.timeout(20) }), { name: "TimeoutError" });
  }
  silent.closeAllConnections();
  silent.close();
});

test("another fetch gets no option of Node's own fetch", async () => {
  const seen: RequestInit[] = [];
  const client = new Client("http://127.0.0.1:1", {
    fetch: (_, init) => {
      seen.push(init ?? {});
      return Promise.resolve(Response.json({ running: 0 }));
    },
  });
  await client.status();
  assert.ok(!("dispatcher" in seen[0]!));
});

test("a request with a body does not follow a redirect", async () => {
  let asked = 0;
  const elsewhere = createServer((_, answer) => {
    asked += 1;
    answer.writeHead(308, { location: "http://127.0.0.1:1/" }).end();
  }).listen(0, "127.0.0.1");
  await once(elsewhere, "listening");
  const client = new Client(`http://127.0.0.1:${(elsewhere.address() as { port: number }).port}`);
  // The client does not repeat it either, because the answer would be the same.
  await assert.rejects(client.submit("x", null, { idempotencyKey: "k" }), /the address of the server itself/);
  assert.equal(asked, 1);
  elsewhere.close();
});
