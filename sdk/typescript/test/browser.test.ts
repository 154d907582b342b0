// The SDK in a real browser: a page loads the built modules unchanged.
//
// Browsers let a page read only answers of its own origin, and the server allows no other origins. So the page and the server need
// one address. Here a small proxy has it.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { type IncomingMessage, type ServerResponse, createServer, request as forward } from "node:http";
import { after, before, test } from "node:test";
import { type Browser, type Page, chromium } from "playwright-core";
import { Laneway, type Local } from "../src/index.js";
import { CONFIG, WAIT_MAX_MS } from "./server.js";

const FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update"];
const BUILT = new URL("../../dist/", import.meta.url);

let queue: Local;
let browser: Browser;
let page: Page;
const errors: string[] = [];
const proxy = createServer((asked, answer) => void serve(asked, answer));

async function serve(asked: IncomingMessage, answer: ServerResponse): Promise<void> {
  if (asked.url!.startsWith("/api/")) {
    const { hostname, port } = new URL(queue.url);
    const onward = forward({ hostname, port, method: asked.method, path: asked.url, headers: asked.headers }, (told) => {
      answer.writeHead(told.statusCode!, told.headers);
      told.pipe(answer);
    });
    // When the client disconnects from the proxy, the proxy disconnects from the server.
    answer.on("close", () => onward.destroy());
    onward.on("error", () => answer.destroy());
    asked.pipe(onward);
  } else if (asked.url!.startsWith("/sdk/")) {
    answer.writeHead(200, { "content-type": "text/javascript" }).end(await readFile(new URL(asked.url!.slice(5), BUILT)));
  } else {
    answer.writeHead(200, { "content-type": "text/html" }).end('<!doctype html><link rel="icon" href="data:,"><title>SDK</title>');
  }
}

before(async () => {
  queue = await Laneway.local({ config: CONFIG });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  browser = await chromium.launch({ executablePath, headless: true, args: FLAGS, timeout: WAIT_MAX_MS });
  page = await browser.newPage();
  page.setDefaultTimeout(WAIT_MAX_MS);
  page.on("pageerror", (error) => errors.push(String(error)));
  await page.goto(`http://127.0.0.1:${(proxy.address() as { port: number }).port}/`);
});

after(async () => {
  await browser.close();
  proxy.closeAllConnections();
  proxy.close();
  await queue.close();
});

/** Runs a function in the page, with a client and the exports of the SDK. */
function inPage(script: string): Promise<unknown> {
  return page.evaluate(`(async () => {
    const sdk = await import("/sdk/index.js");
    const client = new sdk.Client(location.origin);
    ${script}
  })()`);
}

test("a turn gets an answer and streams its events", async () => {
  const told = await inPage(`
    const { response } = await client.agent("echo").chat("hello", { session: "browser" });
    const names = [];
    for await (const event of client.agent("upper").chat("hello", { session: "browser" })) names.push(event.event);
    return { response, names };
  `);
  assert.deepEqual(told, { response: "hello", names: ["accepted", "started", "delta", "completed", "done"] });
});

test("a slot guards a block, and a second one is refused with its own error", async () => {
  const told = await inPage(`
    const names = await client.withSlot(["one"], async () => {
      const running = (await client.lane("one").get()).running;
      const busy = await client.slot(["one"], { wait_ms: 0 }).catch((error) => error);
      return [running, busy instanceof sdk.AtCapacity || busy instanceof sdk.WaitTimeout];
    });
    return [...names, (await client.lane("one").get()).running];
  `);
  assert.deepEqual(told, [1, true, 0]);
});

test("an aborted signal ends the turn, here and on the server", async () => {
  const told = await inPage(`
    const stop = new AbortController();
    let task;
    const failed = await (async () => {
      for await (const event of client.agent("slow").chat("wait", { session: "aborted", signal: stop.signal })) {
        task = event.data.task_id;
        if (event.event === "started") stop.abort();
      }
    })().catch((error) => error.name);
    return { failed, status: (await client.wait(task)).status };
  `);
  assert.deepEqual(told, { failed: "AbortError", status: "cancelled" });
  assert.deepEqual(errors, []);
});
