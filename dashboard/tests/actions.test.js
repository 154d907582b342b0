// Every button does on the server what it says.

import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { act, closeAll, leave, open, settles, visit, goTo as come } from "./browser.js";
import { Server, traffic } from "./server.js";

let server;
let browser;
let page;

before(async () => {
  [server, browser] = await Promise.all([Server.start(), open()]);
  await traffic(server);
});
after(async () => {
  await browser?.close();
  await server?.end();
});
// What a test leaves open must not stand in the way of the next.
beforeEach(async () => {
  // One limit is refused on purpose.
  page = await visit(browser, "about:blank", { allowed: [/status of 400/] });
});
afterEach(async () => {
  try {
    await leave(page);
  } finally {
    await closeAll(browser);
  }
});

const goTo = (place) => come(page, server, place);
const button = (name, within = page.locator("main")) => within.getByRole("button", { name, exact: true });
const dialog = () => page.getByRole("dialog");
const said = (text) => page.getByRole("status").getByText(text).first().waitFor();

test("a lane is paused, resumed, drained, limited and cleared", async () => {
  await goTo("lanes/tools");
  const lane = () => server.ask("GET", "/api/lanes/tools");
  await button("Pause").click();
  await dialog().getByText("What runs goes on: 2 tasks.").waitFor();
  await button("Not now", dialog()).click();
  assert.equal((await lane()).paused, false);
  await act(page, button("Pause"), "Pause");
  await button("Resume").waitFor();
  assert.equal((await lane()).paused, true);
  await button("Resume").click();
  await act(page, button("Drain"), "Drain");
  await button("Resume").waitFor();
  assert.equal((await lane()).draining, true);
  await button("Resume").click();
  await button("Pause").waitFor();
  assert.equal((await lane()).draining, false);
  const limit = page.getByLabel("max_concurrency of lane tools");
  await limit.fill("3");
  await limit.press("Enter");
  await said("max_concurrency of tools is 3 now.");
  await server.until("/api/lanes/tools", ({ running, max_concurrency: now }) => running === 3 && now === 3);
  await limit.fill("many");
  await limit.press("Enter");
  await page.locator(".note.refused").getByText("max_concurrency").waitFor();
  assert.equal((await lane()).max_concurrency, 3);
  await act(page, button("Clear"), /^Cancel 6 tasks$/);
  await said("6 tasks of tools cancelled.");
  assert.equal((await lane()).waiting, 0);
});

test("a task gets another priority, and is cancelled while it waits and while it runs", async () => {
  const { id } = await server.task("slow", ["tools"], {}, { priority: 0 });
  await goTo(`tasks/${id}`);
  await button("Priority…").click();
  await dialog().getByLabel("Priority, 0 to 9").fill("7");
  await button("Change", dialog()).click();
  await server.until(`/api/tasks/${id}`, ({ priority }) => priority === 7);
  await act(page, button("Cancel"), "Cancel it");
  await server.until(`/api/tasks/${id}`, ({ status }) => status === "cancelled");
  await page.locator(".title").getByText("cancelled").waitFor();
  const [running] = (await server.ask("GET", "/api/tasks?status=running&lane=tools")).items;
  await goTo(`tasks/${running.id}`);
  await button("Cancel").click();
  await dialog().getByText("It gets a signal to stop now.").waitFor();
  await button("Cancel it", dialog()).click();
  await server.until(`/api/tasks/${running.id}`, ({ status }) => status === "cancelled");
});

test("many tasks are cancelled, with their number said first; the filter is in the address", async () => {
  await server.ask("PATCH", "/api/lanes/bulk", { max_concurrency: 1 });
  for (let index = 0; index < 5; index += 1) await server.task("slow", ["bulk"]);
  await goTo("tasks");
  await page.getByRole("tab", { name: "waiting", exact: true }).click();
  await page.getByLabel("lane").fill("bulk");
  await page.getByLabel("lane").press("Enter");
  await page.waitForURL(/status=queued&lane=bulk/);
  await page.getByText("4 shown").waitFor();
  await act(page, button("Cancel all…"), "Cancel 4 tasks");
  await said("4 tasks cancelled.");
  await page.getByText("No task fits.").waitFor();
  const lane = await server.ask("GET", "/api/lanes/bulk");
  assert.deepEqual([lane.running, lane.waiting], [1, 0]);
});

test("dead letters are run again, thrown away, and both in bulk", async () => {
  const letters = async () => (await server.ask("GET", "/api/dead-letters")).items;
  await goTo("dead-letters");
  const checks = page.locator("article", { hasText: "checks" });
  await act(page, button("Throw away", checks), "Throw away");
  await server.until("/api/dead-letters", ({ items }) => items.length === 1);
  await page.getByText("1 dead letter of 1 shown").waitFor();
  const [old] = await letters();
  await act(page, button("Run again"), "Run again");
  await page.waitForURL(/#\/tasks\//);
  await server.until("/api/dead-letters", ({ items }) => items.length === 1 && items[0].id !== old.id);
  const [again] = await letters();
  await goTo(`tasks/${again.id}`);
  await act(page, button("Run again"), "Run again");
  await page.waitForURL((url) => !url.hash.includes(again.id));
  await server.until("/api/dead-letters", ({ items }) => items.length === 1 && items[0].id !== again.id);
  await server.task("breaks", ["main"], {}, { retry: { strategy: "none" } });
  await server.until("/api/dead-letters", ({ items }) => items.length === 2);
  const before = (await letters()).map(({ id }) => id);
  await goTo("dead-letters");
  await act(page, button("Run 2 again"), "Run 2 dead letters again");
  await server.until("/api/dead-letters", ({ items }) => items.length === 2 && items.every(({ id }) => !before.includes(id)));
  await goTo("dead-letters?kind=breaks");
  await act(page, button("Throw 2 away"), "Throw 2 dead letters away");
  await server.until("/api/dead-letters", ({ items }) => items.length === 0);
  await page.getByText("No dead letters.").waitFor();
});

test("an agent is asked, its queue cleared, its slot released", async () => {
  await server.ask("POST", "/api/lanes/provider%3Allm/resume");
  await goTo("agents");
  const coder = page.getByRole("article", { name: "Agent coder" });
  await act(page, button("Clear queue", coder), "Cancel 3 turns");
  await server.until("/api/agents/coder/queue", ({ queue_length: length }) => length === 0);
  const { current_execution: old } = await server.ask("GET", "/api/agents/coder/queue");
  await button("Ask…", coder).click();
  await dialog().getByLabel("Message").fill("Look again");
  await button("Send", dialog()).click();
  await said("Accepted, place 1 in line.");
  await button("Force release", coder).click();
  await dialog().getByText("may still be going").waitFor();
  await button("Force release", dialog()).click();
  await server.until("/api/agents/coder/queue", ({ current_execution: now }) => now && now.id !== old.id && now.message === "Look again");
  await coder.getByText("Look again").waitFor();
});

test("a conversation is written to, its messages moved, withdrawn and cleared, its turn interrupted", async () => {
  const session = async () => (await server.ask("GET", "/api/sessions")).items.find(({ key }) => key === "trip");
  const texts = async () => (await session()).messages.map(({ text }) => text);
  await goTo("sessions/trip");
  await page.getByLabel("Message", { exact: true }).fill("And a cat");
  await page.getByLabel("Agent", { exact: true }).selectOption("writer");
  await button("Send").click();
  await page.locator(".messages").getByText("And a cat").waitFor();
  assert.deepEqual(await texts(), ["By train", "With a dog", "And a cat"]);
  const row = (text) => page.locator(".messages li", { hasText: text });
  await button("Earlier", row("And a cat")).click();
  await row("#2").getByText("And a cat").waitFor();
  assert.deepEqual(await texts(), ["By train", "And a cat", "With a dog"]);
  await act(page, button("Withdraw", row("With a dog")), "Withdraw");
  await row("With a dog").waitFor({ state: "detached" });
  assert.deepEqual(await texts(), ["By train", "And a cat"]);
  await page.getByLabel("Message", { exact: true }).fill("Hurry");
  await button("Steer").click();
  await server.until("/api/sessions/trip", ({ messages }) => messages.some(({ text }) => text === "Hurry"));
  await button("Send now", row("And a cat")).click();
  await said("It is next.");
  await button("Change…").click();
  await dialog().getByLabel("Mode").selectOption("followup");
  await button("Change", dialog()).click();
  await server.until("/api/sessions/trip", ({ settings }) => settings.mode.value === "followup" && settings.mode.from === "session" && settings.cap.from === "default");
  const turn = (await session()).current_turn.task_id;
  await act(page, button("Clear"), /^Cancel \d messages?$/);
  await server.until("/api/sessions/trip", ({ messages }) => messages.length === 0);
  await act(page, button("Interrupt"), "Interrupt");
  await server.until(`/api/tasks/${turn}`, ({ status }) => status === "cancelled");
});

test("a waiting message is passed into the running turn", async () => {
  const say = (text) => server.ask("POST", "/api/sessions/eve/messages", { agent: "listener", text, mode: "followup" });
  const { task_id: turn } = await say("Begin");
  await server.until(`/api/tasks/${turn}`, ({ status }) => status === "running");
  const { id } = await say("Rather this");
  await goTo("sessions/eve");
  const row = page.locator(".messages li", { hasText: "Rather this" });
  await button("Into the turn", row).click();
  await said("The message: steered.");
  await server.until(`/api/tasks/${turn}`, ({ status }) => status === "completed");
  assert.equal((await server.ask("GET", `/api/sessions/eve/messages/${id}`)).status, "steered");
});

test("a schedule is made, run, paused, switched on and removed", async () => {
  const one = async (name) => (await server.ask("GET", "/api/schedules")).items.find((schedule) => schedule.name === name);
  await goTo("schedules");
  await button("New schedule…").click();
  for (const [label, value] of [["Name", "nightly"], ["When (cron)", "30 2 * * *"], ["Time zone", "UTC"], ["Message", "Tidy up"]]) await dialog().getByLabel(label).fill(value);
  await dialog().getByLabel("Agent").selectOption("echo");
  await button("Make it", dialog()).click();
  const card = page.getByRole("article", { name: "Schedule nightly" });
  await card.getByText("every day at 02:30").waitFor();
  await act(page, button("Run now", card), "Run now");
  await said("nightly has fired.");
  assert.equal((await one("nightly")).last_run.trigger, "manual");
  await act(page, button("Pause", card), "Pause");
  await button("Switch on", card).waitFor();
  assert.equal((await one("nightly")).enabled, false);
  await button("Switch on", card).click();
  await button("Pause", card).waitFor();
  assert.equal((await one("nightly")).enabled, true);
  await act(page, button("Remove", card), "Remove");
  await card.waitFor({ state: "detached" });
  assert.equal(await one("nightly"), undefined);
});

test("what was done stands in the audit log", async () => {
  await server.ask("POST", "/api/agents/teller/queue/release");
  await server.ask("POST", "/api/agents/teller/queue/clear");
  await server.ask("POST", "/api/lanes/audited/drain");
  await server.ask("POST", "/api/lanes/audited/resume");
  await goTo("audit");
  for (const action of ["force release", "clear queue", "drain"]) await page.locator("td").getByText(action).first().waitFor();
  await page.getByLabel("Filter the audit log").fill("teller");
  const shown = async () => (await page.locator("tbody tr").allTextContents()).map((row) => row.includes("teller"));
  await settles(shown, [true, true]);
});

test("a token is made, shown once, used, and taken away", async () => {
  await goTo("settings");
  await button("New token…").click();
  await dialog().getByLabel("Who uses it").fill("operator");
  await dialog().getByLabel("may admin").check();
  await button("Make it", dialog()).click();
  const secret = await page.locator(".secret pre").textContent();
  await assert.rejects(server.ask("GET", "/api/me"), { status: 401 });
  server.token = secret;
  assert.equal((await server.ask("GET", "/api/me")).subject, "operator");
  await button("I have it").click();
  await button("New token…").click();
  await dialog().getByLabel("Who uses it").fill("guest");
  await button("Make it", dialog()).click();
  const guest = page.getByRole("row", { name: /guest/ });
  await act(page, button("Take away", guest), "Take away");
  await guest.waitFor({ state: "detached" });
  assert.deepEqual((await server.ask("GET", "/api/tokens")).items.map(({ subject }) => subject), ["operator"]);
});
