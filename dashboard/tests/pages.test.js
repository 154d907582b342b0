// Every page shows what a real server has, at both widths and in both schemes, without one error.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { closeAll, goTo, leave, load, open, settles, visit } from "./browser.js";
import { Server, traffic } from "./server.js";

let server;
let browser;

before(async () => {
  [server, browser] = await Promise.all([Server.start(), open()]);
  await traffic(server);
});
after(async () => {
  await browser?.close();
  await server?.end();
});
afterEach(() => closeAll(browser));

/** What has to be read on each page. */
const PAGES = [
  ["", ["Running", "Waiting", "Oldest waiting", "Throughput", "Wait p99", "Ended per minute", "AT_CAPACITY", "2 tasks could not be done", "Lane provider:llm is paused", "tools", "2/2"]],
  ["lanes", ["global", "tools", "provider:llm", "paused", "full"]],
  ["lanes/tools", ["Waiting tasks, in order", "#7", "p3", "max_concurrency", "Limits and settings"]],
  ["tasks", ["running", "queued", "agent:coder", "slow"]],
  ["tasks?status=failed", ["2 shown", "failed", "breaks"]],
  ["tasks?status=queued&lane=tools", ["7 shown", "#1", "slow"]],
  ["sessions", ["trip", "busy", "2 wait"]],
  ["sessions/trip", ["with 1 message", "Plan the trip", "By train", "With a dog", "debounce_ms", "Turns"]],
  ["agents", ["coder", "busy", "Refactor the parser", "Add a test", "3 of 3 places in line", "echo", "idle"]],
  ["dead-letters", ["breaks", "2 dead letters of 2 shown", "Payload"]],
  ["schedules", ["standup", "Monday to Friday at 09:00", "Europe/Berlin", "next, your time", "Post the standup"]],
  ["workers", ["worker-1", "heard", "lease until", "Waiting for a worker", "agent:builder"]],
  ["audit", ["pause", "provider:llm", "local"]],
  ["settings", ["No tokens", "max_concurrency", "laneway.hcl"]],
  ["nowhere", ["No such page"]],
];

for (const [width, scheme] of [[1280, "dark"], [390, "light"]]) {
  test(`every page shows its data at ${width} px, ${scheme}`, async () => {
    const page = await visit(browser, `${server.url}/`, { width, scheme });
    for (const [place, texts] of PAGES) {
      await goTo(page, server, place);
      for (const text of texts) {
        await page.locator("main").getByText(text, { exact: false }).first().waitFor({ state: "attached" });
      }
      await settles(() => page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), true, `${place} is too wide at ${width}`);
      const unnamed = await page.evaluate(() => [...document.querySelectorAll("button, input, select, textarea, a")]
        .filter((one) => !(one.textContent.trim() || one.ariaLabel || one.labels?.length)).map((one) => one.outerHTML));
      assert.deepEqual(unnamed, [], `${place} has controls without a name`);
    }
    await leave(page);
  });
}

/** One too many for an agent whose line is full: what was refused five minutes ago is in no chart of the last five. */
const refuse = () => assert.rejects(server.chat("coder", "One too many"), { status: 429 });

test("waits and refusals are charted, over five minutes, an hour and a day", async () => {
  await refuse();
  const page = await visit(browser, `${server.url}/`);
  const drawn = (name) => page.getByRole("img", { name });
  await drawn(/^Waited before starting, seconds: p50 [\d.]+, p95 [\d.]+, p99 [\d.]+$/).waitFor();
  await drawn(/^Refused per minute, by code: AT_CAPACITY [\d.]+$/).waitFor();
  for (const [name, range] of [["1 h", "1h"], ["24 h", "24h"], ["5 min", "5m"]]) {
    const asked = page.waitForResponse((response) => response.url().includes(`api/history?metric=wait_p99&range=${range}`));
    await page.getByRole("tablist", { name: "Time shown" }).or(page.getByLabel("Time shown")).first().getByText(name, { exact: true }).click();
    const { step_ms: step } = await (await asked).json();
    assert.equal(step, { "5m": 10000, "1h": 60000, "24h": 300000 }[range]);
    await page.waitForURL((url) => url.hash.includes(`span=${range}`));
    await drawn(/^Refused per minute, by code: AT_CAPACITY/).waitFor();
  }
  await leave(page);
});

test("a task that waits says why, and one that is over tells its life", async () => {
  const page = await visit(browser, `${server.url}/`);
  const { items } = await server.ask("GET", "/api/tasks?status=queued&lane=tools");
  await goTo(page, server, `tasks/${items.find((task) => task.position === 2).id}`);
  await page.getByText("Place 2 in line").waitFor();
  await page.getByText("all 2 slots of lane tools are taken").waitFor();
  await page.getByText("accepted from").waitFor();
  await page.getByText("Payload").click();
  await page.getByText('"index"').waitFor();
  const done = (await server.ask("GET", "/api/tasks?status=completed")).items[0];
  await goTo(page, server, `tasks/${done.id}`);
  await page.locator(".timeline").getByText("completed").waitFor();
  await page.getByText("Result").click();
  await page.getByText("hello").first().waitFor();
  await page.getByText("Payload").click();
  await page.getByText('"message"').waitFor();
  await leave(page);
});

test("every attempt at a task is in its life, and its children are listed", async () => {
  const page = await visit(browser, `${server.url}/`);
  const retry = { strategy: "fixed", max_retries: 2, initial_delay_ms: 1, fixed_delay_ms: 1 };
  const { id: dead } = await server.task("breaks", ["attempts"], {}, { retry });
  await server.until(`/api/tasks/${dead}`, ({ status }) => status === "failed");
  await goTo(page, server, `tasks/${dead}`);
  for (const said of ["attempt 1 started", "attempt 1 failed: ", "attempt 2 failed: ", "attempt 3 started", "failed: "]) {
    await page.locator(".timeline").getByText(said).first().waitFor();
  }
  const { id: parent } = await server.task("slow", ["family"]);
  await server.until(`/api/tasks/${parent}`, ({ status }) => status === "running");
  const children = [];
  for (const kind of ["child-a", "child-b"]) children.push(await server.task(kind, ["external"], {}, { parent }));
  await goTo(page, server, `tasks/${parent}`);
  const list = page.getByRole("list", { name: "Children" });
  for (const kind of ["child-a", "child-b"]) await list.getByText(kind).waitFor();
  await settles(() => list.getByRole("listitem").count(), children.length);
  await server.ask("DELETE", `/api/tasks/${parent}`);
  await list.getByText("cancelled").first().waitFor();
  await leave(page);
});

test("a conversation shows what its turn was asked, with messages or directly", async () => {
  const page = await visit(browser, `${server.url}/#/sessions/trip`);
  const now = page.getByRole("region", { name: "The turn that runs" });
  await now.getByText("Plan the trip").waitFor();
  await server.chat("writer", "Write a poem", { session: "poem" });
  await goTo(page, server, "sessions/poem");
  await now.getByText("Write a poem").waitFor();
  await leave(page);
});

test("a lane's line stands in its own order, those at home elsewhere included", async () => {
  const page = await visit(browser, `${server.url}/`);
  await server.ask("POST", "/api/lanes/quay/pause");
  for (const [lanes, priority] of [[["quay"], 1], [["quay"], 5], [["pier", "quay"], 3]]) await server.task("slow", lanes, {}, { priority });
  await goTo(page, server, "lanes/quay");
  const line = page.getByRole("region", { name: "Waiting tasks" });
  await line.getByText("#3").waitFor();
  const shown = () => line.locator("[data-row]").evaluateAll((rows) => rows.map((row) => [row.querySelector(".c-place").textContent, row.querySelector(".c-prio").textContent.trim()]));
  await settles(shown, [["#1", "p5"], ["#2", "p3"], ["#3", "p1"]]);
  await line.getByText("at home in pier, #1 there").waitFor();
  await server.ask("POST", "/api/lanes/quay/clear");
  await leave(page);
});

test("a slot shows the label of its caller, wherever tasks are listed", async () => {
  const slot = (label, more) => server.ask("POST", "/api/slots", { lanes: ["desk"], label, lease_ms: 3600000, ...more });
  const { id } = await slot("Refactor");
  const page = await visit(browser, `${server.url}/#/tasks?lane=desk`);
  await page.locator("[data-row]").getByText("Refactor").waitFor();
  const waiting = crypto.randomUUID();
  const second = assert.rejects(slot("Review", { id: waiting }), { status: 409 });
  await goTo(page, server, "lanes/desk");
  for (const label of ["Refactor", "Review"]) await page.locator("[data-row]").getByText(label).waitFor();
  await goTo(page, server, `tasks/${id}`);
  await page.locator("h1").getByText("Refactor").waitFor();
  await page.getByRole("region", { name: "Facts" }).getByText("laneway.remote-slot").waitFor();
  await server.ask("DELETE", `/api/tasks/${waiting}`);
  await second;
  await leave(page);
});

test("a worker's heartbeat shows", async () => {
  await server.task("beats", ["external"]);
  const { tasks } = await server.ask("POST", "/api/claim", { worker: "beater", lanes: ["external"], kinds: ["beats"], lease_ms: 3600000 });
  const before = (await server.ask("GET", "/api/workers")).items.find((one) => one.worker === "beater").last_heartbeat;
  const page = await visit(browser, `${server.url}/#/workers`);
  const exact = page.getByRole("row", { name: /beater/ }).locator("time").first();
  assert.ok((await exact.getAttribute("title")).includes(before.slice(0, 19)));
  await server.until("/api/workers", () => new Date().toISOString().slice(0, 19) > before.slice(0, 19));
  await server.ask("POST", `/api/tasks/${tasks[0].id}/heartbeat`, { fence: tasks[0].fence });
  const { last_heartbeat: after } = (await server.ask("GET", "/api/workers")).items.find((one) => one.worker === "beater");
  assert.ok(after > before);
  await page.waitForFunction((heard) => document.querySelector(`time[title*="${heard}"]`), after.slice(0, 19));
  await server.ask("POST", `/api/tasks/${tasks[0].id}/complete`, { fence: tasks[0].fence, success: true });
  await leave(page);
});

test("the text of a running task shows as it streams", async () => {
  const page = await visit(browser, `${server.url}/`);
  await server.ask("POST", "/api/lanes/story/pause");
  const { execution } = await server.chat("teller", "Tell me a story");
  await goTo(page, server, `tasks/${execution.id}`);
  await page.getByText("lane story is paused").waitFor();
  await server.ask("POST", "/api/lanes/story/resume");
  await page.getByRole("region", { name: "What it says" }).getByText("once upon a time").waitFor();
  await page.getByText("attempt 1 started").waitFor();
  await leave(page);
});

test("the first load weighs at most 250 KB over the wire", async () => {
  const { page, bytes, files } = await load(browser, server);
  assert.ok(files > 10 && bytes < 250_000, `${bytes} bytes in ${files} files`);
  await leave(page);
});

test("times are relative in the text and exact in the title", async () => {
  const page = await visit(browser, `${server.url}/#/dead-letters`);
  const time = page.locator("article time").first();
  await settles(async () => /now|ago/.test(await time.textContent()), true);
  assert.match(await time.getAttribute("title"), /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/);
  await leave(page);
});
