// The transcripts in `fixtures/`: each call sends exactly the recorded request, and decodes the recorded answer. The server's own
// tests send the same requests to a real server.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync, readdirSync } from "node:fs";
import { type IncomingMessage, createServer } from "node:http";
import { test } from "node:test";
import { Client, Refusal, type Session } from "../src/index.js";
import { BY_CODE } from "../src/errors.js";

interface Asked {
  method: "GET" | "POST" | "PATCH" | "DELETE";
  path: string;
  headers?: Record<string, string>;
  body?: any;
  /** The first events of an endless stream. */
  take?: number;
}
interface Exchange {
  name: string;
  request: Asked;
  /** `frames` are those of a socket and `families` are metrics. The client has no calls for either. */
  response: { frames?: unknown; families?: unknown; status: number; headers: Record<string, string>; body?: any; events?: { event: string; id?: string; data: unknown }[] };
}

const FOLDER = new URL("../../../../fixtures/", import.meta.url);

/** A fixture with values for its placeholders. */
function filled(file: string): Exchange[] {
  const text = readFileSync(new URL(file, FOLDER), "utf8")
    .replaceAll('"<millis>"', "1500")
    .replaceAll('"<seconds>"', "2")
    .replaceAll("<time>", "2026-01-02T03:04:05.678Z")
    .replaceAll("<hash>", "0".repeat(64))
    .replaceAll(/<event:(\d+)>/g, "1-$1")
    .replaceAll(/<id:(\d+)>/g, (_, number: string) => `01900000-0000-7000-8000-${number.padStart(12, "0")}`)
    .replaceAll(/<token:(\d+)>/g, "lw_$1.secret")
    .replaceAll(/<token-id:(\d+)>/g, "lw_$1");
  return (JSON.parse(text) as { exchanges: Exchange[] }).exchanges;
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const piece of request) text += String(piece);
  return text;
}

/** Gives prepared answers in order, and records the requests. */
async function answering(script: Exchange[]) {
  const seen: Asked[] = [];
  const server = createServer((request, response) => {
    void textOf(request).then((text) => {
      const { status, headers, body, events } = script[seen.length]!.response;
      const asked = { method: request.method as Asked["method"], path: request.url!, headers: request.headers as Record<string, string> };
      seen.push({ ...asked, body: text === "" ? undefined : JSON.parse(text) });
      response.writeHead(status, headers);
      const frames = events?.map(({ event, id, data }) => {
        const place = id === undefined ? "" : `id: ${id}\n`;
        return `event: ${event}\ndata: ${JSON.stringify(data)}\n${place}\n`;
      });
      response.end(frames?.join("") ?? (body === undefined ? undefined : JSON.stringify(body)));
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { seen, url: `http://127.0.0.1:${port}`, close };
}

async function all<T>(items: AsyncIterable<T>, most = Infinity): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) if (found.push(item) >= most) break;
  return found;
}

/** Sends the request with the client's method for it. */
function call(client: Client, { method, path, headers = {}, body, take }: Asked): unknown {
  const url = new URL(path, "http://host");
  const [, , what = "", name = "", ...rest] = url.pathname.split("/").map(decodeURIComponent);
  const query = Object.fromEntries(url.searchParams);
  const key = headers["idempotency-key"] === undefined ? {} : { idempotencyKey: headers["idempotency-key"] };
  const after = headers["last-event-id"] === undefined ? {} : { after: headers["last-event-id"] };
  if (what === "sessions" && rest[0] === "messages" && rest.length > 1) return callMessage(client.session(name), method, rest.slice(1), body);
  switch (`${method} ${what}${name === "" ? "" : "/*"}${rest.map((part) => `/${part}`).join("")}`) {
    case "GET agents": return all(client.agents());
    case "GET lanes": return all(client.lanes());
    case "GET sessions": return all(client.sessions());
    case "GET workers": return all(client.workers());
    case "GET tasks": return all(client.tasks(query));
    case "GET dead-letters": return client.deadLetters();
    case "GET external-tasks": return client.pendingExternalTasks().then((tasks) => tasks.map(({ id }) => id));
    case "GET status": return client.status();
    case "GET tasks/*": return client.task(name);
    case "GET tasks/*/events": return all(client.taskEvents(name, after));
    case "GET events": return all(client.events(query, after), take);
    case "GET sessions/*/events": return all(client.session(name).events(after), take);
    case "POST sessions/*/steer": return client.session(name).steer(body.text);
    case "POST sessions/*/interrupt": return client.session(name).interrupt();
    case "GET tasks/*/explain": return client.explain(name);
    case "GET groups/*": return client.group(name);
    case "POST tasks": {
      const { kind, payload, ...options } = body;
      return client.submit(kind, payload, { ...options, ...key });
    }
    case "POST tasks/*": return name === "cancel" ? client.cancelWaiting(body) : client.batch(body.session, body.calls);
    case "PATCH tasks/*": return client.prioritise(name, body.priority);
    case "DELETE tasks/*": return client.cancel(name);
    case "POST dead-letters/*/redrive": return client.redrive(name);
    case "DELETE dead-letters": return client.discard(query);
    case "GET agents/*": return client.agent(name).get();
    case "GET agents/*/queue": return client.agent(name).queue();
    case "POST agents/*/queue/clear": return client.agent(name).clear();
    case "POST agents/*/queue/release": return client.agent(name).release();
    case "POST agents/*/task": return client.agent(name).task(body.message);
    case "POST agents/*/chat": return chat(client, name, headers, { ...body, ...key });
    case "GET lanes/*": return client.lane(name).get();
    case "PATCH lanes/*": return client.lane(name).change(body);
    case "POST lanes/*/pause": return client.lane(name).pause();
    case "POST lanes/*/resume": return client.lane(name).resume();
    case "POST lanes/*/drain": return client.lane(name).drain();
    case "POST lanes/*/clear": return client.lane(name).clear();
    case "GET sessions/*": return client.session(name).get();
    case "GET sessions/*/stats": return client.session(name).stats();
    case "PATCH sessions/*": return client.session(name).change(body);
    case "POST sessions/*/clear": return client.session(name).clear();
    case "POST sessions/*/messages": {
      const { text, ...message } = body;
      return client.session(name).send(text, message);
    }
  }
  // Heartbeats of workers and routes of operators have no method of their own.
  const isPlain = ["schedules", "tokens", "audit", "claim", "slots", "config", "history"].includes(what) || /(heartbeat|complete|healthz|readyz)$/.test(url.pathname);
  assert.ok(isPlain, `no method for ${method} ${path}`);
  return client.request(method, url.pathname, { query, ...(body === undefined ? {} : { body }) });
}

function callMessage(session: Session, method: string, [message = "", verb]: string[], body?: { before?: string }): unknown {
  if (verb === "move") return session.move(message, body?.before);
  if (verb === "send-now") return session.sendNow(message);
  return method === "DELETE" ? session.withdraw(message) : session.receipt(message);
}

function chat(client: Client, agent: string, headers: Record<string, string>, body: { message: string }): unknown {
  const { message, ...options } = body;
  const said = { sourceAgent: headers["x-source-agent"], parent: headers["x-laneway-parent"] };
  const named = Object.fromEntries(Object.entries(said).filter(([, value]) => value !== undefined));
  const turn = client.agent(agent).chat(message, { ...options, ...named });
  if ("accept" in headers) return all(turn);
  return "prefer" in headers ? turn.accepted() : turn.answer();
}

function sameRequest(asked: Asked, wanted: Asked): void {
  const place = (path: string) => {
    const url = new URL(path, "http://host");
    return [decodeURIComponent(url.pathname), [...url.searchParams].sort()];
  };
  assert.deepEqual([asked.method, ...place(asked.path)], [wanted.method, ...place(wanted.path)]);
  assert.deepEqual(asked.body, wanted.body);
  for (const [name, value] of Object.entries(wanted.headers ?? {})) assert.equal(asked.headers![name], value, name);
}

/** The expected result of the call for an answer. */
function meant({ request, response: { body, events } }: Exchange, value: unknown): unknown {
  if (events !== undefined) return events;
  if (typeof value === "number") return body.cancelled;
  if (!Array.isArray(value)) return body;
  return request.path === "/api/external-tasks" ? body.items.map(({ id }: { id: string }) => id) : body.items;
}

for (const file of readdirSync(FOLDER).filter((name) => name.endsWith(".json"))) {
  for (const exchange of filled(file).filter(({ response }) => !("frames" in response || "families" in response))) {
    test(`${file}: ${exchange.name}`, async () => {
      const { request, response } = exchange;
      const server = await answering([exchange]);
      const token = request.headers?.authorization?.replace("Bearer ", "");
      const client = new Client(server.url, { retry: { limitMs: 0 }, ...(token === undefined ? {} : { token }) });
      try {
        if (response.status < 400) {
          const value = await call(client, request);
          assert.deepEqual(value, meant(exchange, value));
        } else {
          await assert.rejects(async () => call(client, request), (refused) => {
            assert.ok(refused instanceof Refusal && refused.constructor === BY_CODE[response.body.code as keyof typeof BY_CODE]);
            assert.deepEqual(refused.problem, response.body);
            assert.equal(refused.retryAfter, "retry_after_ms" in response.body ? 1.5 : undefined);
            return true;
          });
        }
        assert.equal(server.seen.length, 1);
        sameRequest(server.seen[0]!, request);
      } finally {
        server.close();
      }
    });
  }
}

test("a slot needs only two requests", async () => {
  const script = filled("slots.json");
  const server = await answering(script);
  const { lanes, ...options } = script[0]!.request.body;
  await new Client(server.url).withSlot(lanes, { ...options, lease_ms: 60_000 }, (slot) => {
    assert.deepEqual([slot.id, slot.fence], [script[0]!.response.body.id, script[0]!.response.body.fence]);
  });
  server.close();
  assert.equal(server.seen.length, 2);
  delete server.seen[0]!.body.lease_ms;
  delete server.seen[0]!.body.worker;
  server.seen.forEach((asked, at) => sameRequest(asked, script[at]!.request));
});
