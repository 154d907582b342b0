// What happens shows by itself; a connection that was lost heals; long lists stay smooth; the keyboard is enough.

import assert from "node:assert/strict";
import http from "node:http";
import { after, afterEach, before, test } from "node:test";
import { closeAll, goTo, leave, open, settles, visit } from "./browser.js";
import { Server } from "./server.js";

let server;
let browser;
const LONG = 10_000;
const TRIES_MAX = 20;

before(async () => {
  [server, browser] = await Promise.all([Server.start(), open()]);
});
after(async () => {
  await browser?.close();
  await server?.end();
});
afterEach(() => closeAll(browser));

/** Notes, on the clock of the page, when it hears of a task that has come to the lane and when each place in line is first drawn. */
async function watch() {
  window.heard = [];
  window.drawn = {};
  const look = () => {
    for (const place of document.querySelectorAll(".c-place")) window.drawn[place.textContent] ??= performance.now();
  };
  new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
  const answer = await fetch("api/events");
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  const listen = async () => {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      for (const event of value.split("\n\n")) if (/event: ?accepted/.test(event) && event.includes("live")) window.heard.push(performance.now());
    }
  };
  listen();
}

/** How long after the page heard of it a place was drawn, less what the same questions take here and now. */
async function late(place) {
  while (window.heard.length < place) await new Promise((resolve) => { setTimeout(resolve, 10); });
  const start = performance.now();
  const ask = (path) => fetch(path).then((answer) => answer.json());
  const [, , { items }] = await Promise.all(["api/lanes/live", "api/tasks?lane=live&status=running&limit=500", "api/tasks?lane=live&status=queued&limit=500"].map(ask));
  await ask(`api/tasks/${items[0].id}/explain`);
  return window.drawn[`#${place}`] - window.heard[place - 1] - (performance.now() - start);
}

test("a change on the server shows within a second, without a reload", async () => {
  const page = await visit(browser, `${server.url}/#/lanes/live`);
  await page.getByText("No task waits.").waitFor();
  await page.evaluate(() => { window.wasNotReloaded = true; });
  await server.ask("PATCH", "/api/lanes/live", { max_concurrency: 1 });
  await server.task("slow", ["live"]);
  await page.evaluate(watch);
  // The first of many that is quick enough: a machine that does something else for a moment says nothing about the page.
  const taken = [];
  for (let place = 1; place <= TRIES_MAX && !taken.some((each) => each < 1000); place += 1) {
    await server.task("slow", ["live"]);
    await page.getByText(`#${place}`, { exact: true }).waitFor();
    taken.push(await page.evaluate(late, place));
  }
  assert.ok(taken.some((each) => each < 1000), `it took ${taken} ms`);
  assert.equal(await page.evaluate(() => window.wasNotReloaded), true);
  await server.ask("POST", "/api/lanes/live/clear");
  await page.getByText("No task waits.").waitFor();
  await leave(page);
});

test("numbers that move do not move the page", async () => {
  const page = await visit(browser, `${server.url}/#/`);
  const tile = page.locator(".tile").first();
  await tile.waitFor();
  const place = async () => JSON.stringify(await page.locator(".tiles, .lane-rows > :first-child").evaluateAll(
    (all) => all.map((one) => { const { x, y, width } = one.getBoundingClientRect(); return [x, y, width]; })));
  const before = await place();
  for (let index = 0; index < 4; index += 1) await server.ask("POST", "/api/agents/echo/chat", { message: `${index}` });
  await page.locator(".tile", { hasText: "Throughput" }).getByText("4 done").waitFor();
  await settles(place, before);
  await leave(page);
});

test("ten thousand waiting tasks are listed with a hundred rows drawn", async () => {
  await server.ask("PATCH", "/api/lanes/long", { max_concurrency: 1, max_queued: 20000 });
  await server.ask("POST", "/api/lanes/long/pause");
  await server.fill("long", LONG);
  const page = await visit(browser, `${server.url}/#/lanes/long`);
  const list = page.getByRole("list", { name: "The line of long" });
  await page.waitForFunction((long) => document.querySelector("[role=listitem]")?.getAttribute("aria-setsize") === String(long), LONG);
  assert.ok((await list.getByRole("listitem").count()) < 100);
  const steps = await page.evaluate(async () => {
    const box = document.querySelector(".scroll");
    const taken = [];
    const frame = async () => {
      const start = performance.now();
      await new Promise(requestAnimationFrame);
      return performance.now() - start;
    };
    for (let step = 0; step < 40; step += 1) {
      // What a frame takes here in which nothing is scrolled is not the list's fault.
      const idle = await frame();
      box.scrollTop = (box.scrollHeight * step) / 40;
      taken.push((await frame()) - idle);
    }
    box.scrollTop = box.scrollHeight;
    return taken.sort((one, other) => one - other);
  });
  await page.getByText(`#${LONG}`, { exact: true }).waitFor();
  assert.ok(steps[steps.length / 2] < 250, `half of the steps of scrolling took more than ${steps[steps.length / 2]} ms`);
  await goTo(page, server, "tasks?status=queued&lane=long");
  await page.getByText("200 shown; scroll for more").waitFor();
  for (const shown of ["400", "600"]) {
    await page.locator(".scroll").evaluate((box) => { box.scrollTop = box.scrollHeight; });
    await page.getByText(`${shown} shown`).waitFor();
  }
  await leave(page);
  const first = await visit(browser, `${server.url}/#/`);
  await first.locator(".tile", { hasText: "Waiting" }).getByText("10,000").waitFor();
  await leave(first);
  await server.ask("POST", "/api/lanes/long/clear");
});

test("the keyboard is enough: / filters, j and k move, ? helps, g goes", async () => {
  const page = await visit(browser, `${server.url}/#/lanes`);
  await page.getByText("global").first().waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("mai");
  await page.waitForURL(/filter=mai/);
  await page.keyboard.press("Escape");
  await settles(async () => (await page.locator("[role=listitem] .c-lane-name").allTextContents()).every((name) => name.includes("mai")), true);
  await page.keyboard.press("j");
  await settles(async () => /main/.test(await page.evaluate(() => document.activeElement.textContent)), true);
  await page.keyboard.press("Enter");
  await page.waitForURL(/#\/lanes\/main/);
  await page.keyboard.press("?");
  await page.getByRole("heading", { name: "Keyboard" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("heading", { name: "Keyboard" }).waitFor({ state: "detached" });
  await page.keyboard.press("g");
  await page.keyboard.press("t");
  await page.waitForURL(/#\/tasks/);
  await page.getByRole("heading", { name: "Tasks" }).waitFor();
  await leave(page);
});

test("it works under a path of a proxy, and asks nothing outside it", async () => {
  const asked = [];
  const proxy = http.createServer((request, response) => {
    asked.push(request.url);
    if (!request.url.startsWith("/tools/laneway/")) return response.writeHead(404).end();
    const { method, headers } = request;
    const upstream = http.request(server.url + request.url.slice("/tools/laneway".length), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    response.on("close", () => upstream.destroy());
    upstream.on("error", () => response.destroy());
    request.pipe(upstream);
    return undefined;
  });
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const page = await visit(browser, `http://127.0.0.1:${proxy.address().port}/tools/laneway/#/lanes/main`);
  await page.getByText("live").waitFor();
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByRole("button", { name: "Pause" }).waitFor();
  assert.deepEqual(asked.filter((path) => !path.startsWith("/tools/laneway/")), []);
  await leave(page);
  proxy.closeAllConnections();
  proxy.close();
});

test("a server that restarts is seen to be away, and comes back by itself", async () => {
  // It breaks off what it is asked while it stops, or says that it does.
  const page = await visit(browser, `${server.url}/#/lanes`, { allowed: [/net::ERR_/, /status of 503/] });
  await page.locator(".connection.live").waitFor();
  await server.stop();
  await page.getByRole("alert").getByText("connection to the server is lost").waitFor();
  await server.run();
  await page.locator(".connection.live").waitFor();
  await page.getByRole("alert").waitFor({ state: "detached" });
  await server.ask("PATCH", "/api/lanes/again", { max_concurrency: 1 });
  await server.task("slow", ["again"]);
  await page.getByText("again", { exact: true }).waitFor();
  await leave(page);
});
