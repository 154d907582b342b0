// What an operator needs: why something stands still, what would happen before it does, and the way back.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { act, closeAll, goTo, leave, open, settles, visit } from "./browser.js";
import { Server } from "./server.js";

const CONFIG = `
server { drain_grace = "100ms" }
lane "global"  { max_concurrency = 50 }
lane "forge"   { max_concurrency = 1 }
lane "desk"    { max_concurrency = 4 }
lane "dock"    { ageing = "off" }
lane "agent:*" { wait_timeout = "1h" }
lane "crowded" {
  max_concurrency = 1
  alerts {
    warning = 3
    critical = 50
  }
}
lane "retries" {
  retry {
    strategy = "fixed"
    max_retries = 5
    fixed_delay = "10m"
  }
}

agent "echo"   { echo = true }
agent "coder" {
  command = ["sh", "-c", "exec sleep 600"]
  lanes = ["forge"]
}
agent "writer" {
  command = ["sh", "-c", "exec sleep 600"]
  max_concurrency = 4
  lanes = ["desk"]
}

agent "builder" {
  external = true
  lanes = ["yard"]
}

handler "slow"   { command = ["sh", "-c", "exec sleep 600"] }
handler "breaks" { command = ["sh", "-c", "echo it broke >&2; exit 3"] }

schedule "ticker" {
  cron = "*/20 * * * * *"
  agent = "echo"
  message = "tick"
  enabled = false
}
schedule "months" {
  cron = "30 23 L * *"
  agent = "echo"
  message = "close the month"
}
`;

let server;
let browser;

before(async () => {
  [server, browser] = await Promise.all([Server.start({ config: CONFIG }), open()]);
});
after(async () => {
  await browser?.close();
  await server?.end();
});
afterEach(() => closeAll(browser));

const button = (within, name) => within.getByRole("button", { name, exact: true });

test("a server that is new says what to do first", async () => {
  const page = await visit(browser, `${server.url}/`);
  await page.getByText("laneway chat echo hello").waitFor();
  await server.ask("POST", "/api/agents/echo/chat", { message: "hello" });
  await page.getByText("laneway chat echo hello").waitFor({ state: "detached" });
  await goTo(page, server, "dead-letters");
  await page.getByText("No dead letters.").waitFor();
  await settles(() => page.locator("main button").count(), 0);
  await leave(page);
});

test("a lane that is held up says by what: on the overview, on its own page, on its agent's card", async () => {
  await server.task("slow", ["forge"]);
  await server.until("/api/lanes/forge", ({ running }) => running === 1);
  await server.chat("coder", "Refactor the parser");
  const page = await visit(browser, `${server.url}/`);
  const why = "the slot of lane forge is taken";
  const row = page.getByRole("link", { name: /^agent:coder: 0 of 1 running, 1 task waiting, held up: the slot of lane forge/ });
  await row.getByText(why).waitFor();
  await row.click();
  const first = page.getByRole("group", { name: "Why the first waits" });
  await first.getByText(why).waitFor();
  await first.getByRole("link", { name: "see the lane" }).click();
  await page.waitForURL(/#\/lanes\/forge/);
  await goTo(page, server, "agents");
  const card = page.getByRole("article", { name: "Agent coder" });
  await card.getByText("held up").waitFor();
  await card.getByText(why).waitFor();
  await server.ask("POST", "/api/lanes/forge/clear");
  await leave(page);
});

test("the line of a lane is drawn in its own order, coloured by priority", async () => {
  await server.ask("POST", "/api/lanes/dock/pause");
  // At home elsewhere, each the first in its own lane: only the order in this one counts.
  for (const [home, priority] of [["quay:a", 0], ["quay:b", 5], ["quay:c", 2]]) await server.task("slow", [home, "dock"], {}, { priority });
  const page = await visit(browser, `${server.url}/`);
  const drawn = () => page.locator(".lane-row", { hasText: "dock" }).first().locator(".line i").evaluateAll((all) => all.map((one) => one.className));
  await page.waitForFunction(() => document.querySelector('[aria-label^="dock:"] .line i.urgent'));
  await settles(drawn, ["urgent", "user", "background"]);
  await server.ask("POST", "/api/lanes/dock/clear");
  await leave(page);
});

test("an alert about a lane shows to a later reader, until it is over", async () => {
  for (let index = 0; index < 5; index += 1) await server.task("slow", ["crowded"]);
  const page = await visit(browser, `${server.url}/`);
  const alert = page.getByText("The line of lane crowded is long: 4 tasks wait");
  await alert.waitFor();
  await page.reload();
  await alert.waitFor();
  await server.ask("POST", "/api/lanes/crowded/clear");
  await alert.waitFor({ state: "detached" });
  await leave(page);
});

test("throughput is a number", async () => {
  const page = await visit(browser, `${server.url}/`);
  const tile = page.locator(".tile", { hasText: "Throughput" });
  await server.ask("POST", "/api/agents/echo/chat", { message: "hello" });
  await tile.getByText(/\d+ done, \d+ failed/).waitFor();
  await tile.getByText("/ min").waitFor();
  await leave(page);
});

test("back and forward go through the tabs and filters that were picked", async () => {
  const page = await visit(browser, `${server.url}/#/tasks`);
  await page.getByRole("tab", { name: "running" }).click();
  await page.waitForURL(/#\/tasks\?status=running$/);
  await page.getByLabel("lane").fill("main");
  await page.getByLabel("lane").press("Enter");
  await page.waitForURL(/status=running&lane=main/);
  await page.goBack();
  await page.waitForURL(/#\/tasks\?status=running$/);
  await settles(() => page.getByLabel("lane").inputValue(), "");
  await page.goBack();
  await page.waitForURL(/#\/tasks$/);
  await settles(() => page.getByRole("tab", { name: "all" }).getAttribute("aria-selected"), "true");
  await page.goForward();
  await page.goForward();
  await page.waitForURL(/status=running&lane=main/);
  await settles(() => page.getByLabel("lane").inputValue(), "main");
  await leave(page);
});

test("what is being typed stays while the page changes", async () => {
  const page = await visit(browser, `${server.url}/#/tasks?lane=typing`);
  await page.getByText("No task fits.").waitFor();
  const kind = page.getByLabel("kind");
  await kind.pressSequentially("sl");
  await server.task("slow", ["typing"]);
  await page.getByText("1 shown").waitFor();
  await kind.pressSequentially("ow");
  await settles(() => kind.inputValue(), "slow");
  await kind.press("Enter");
  await page.waitForURL(/lane=typing&kind=slow/);
  await leave(page);
});

test("a new page starts at its top, and one that is gone back to stands where it was", async () => {
  const page = await visit(browser, `${server.url}/`, { height: 500 });
  await page.getByText("Refused, by code").waitFor();
  const link = page.getByRole("link", { name: /^global:/ });
  await link.waitFor();
  await page.evaluate(() => window.scrollTo(0, 260));
  await page.waitForFunction(() => history.state?.top === 260);
  await link.click();
  await page.waitForURL(/#\/lanes\/global/);
  await page.getByText("Limits and settings").waitFor();
  await settles(() => page.evaluate(() => window.scrollY), 0);
  await page.goBack();
  await page.waitForFunction(() => window.scrollY === 260);
  await leave(page);
});

test("the number said before a bulk cancel is the number cancelled, those between two attempts included", async () => {
  for (let index = 0; index < 2; index += 1) await server.task("breaks", ["retries"], {}, {});
  await server.until("/api/tasks?status=retrying&lane=retries", ({ items }) => items.length === 2);
  await server.ask("POST", "/api/lanes/retries/pause");
  for (let index = 0; index < 3; index += 1) await server.task("slow", ["retries"]);
  const page = await visit(browser, `${server.url}/#/tasks?lane=retries`);
  await act(page, button(page.locator("main"), "Cancel all…"), "Cancel 5 tasks");
  await page.getByRole("status").getByText("5 tasks cancelled.").waitFor();
  await button(page.locator("main"), "Cancel all…").click();
  await page.getByText("No task of lane “retries” waits.").waitFor();
  for (const lane of ["here", "there"]) {
    await server.ask("POST", `/api/lanes/${lane}/pause`);
    await server.task("slow", [lane]);
  }
  const { waiting } = await server.ask("GET", "/api/status");
  await goTo(page, server, "tasks");
  await act(page, button(page.locator("main"), "Cancel all…"), `Cancel ${waiting} tasks`);
  await server.until("/api/status", ({ waiting: now }) => now === 0);
  await leave(page);
});

test("what failed is run again in bulk from the list of tasks, with its number first", async () => {
  for (let index = 0; index < 3; index += 1) await server.task("breaks", ["heap"], { index }, { retry: { strategy: "none" } });
  const { items: old } = await server.until("/api/dead-letters", ({ items }) => items.filter(({ lane }) => lane === "heap").length === 3);
  const page = await visit(browser, `${server.url}/#/tasks?status=failed`);
  await page.getByText("filter by a home lane or a kind alone").waitFor();
  await goTo(page, server, "tasks?status=failed&lane=heap");
  await button(page.locator("main"), "Run all again…").click();
  await page.getByRole("dialog").getByText("3 dead letters now").waitFor();
  await button(page.getByRole("dialog"), "Run 3 dead letters again").click();
  await page.getByRole("status").getByText("3 tasks run again.").waitFor();
  const before = new Set(old.map(({ id }) => id));
  await server.until("/api/dead-letters", ({ items }) => items.length === 3 && items.every(({ id }) => !before.has(id)));
  await leave(page);
});

test("dead letters come newest first, and a search narrows what a bulk action takes", async () => {
  await server.ask("DELETE", "/api/dead-letters?kind=breaks");
  for (const lane of ["first", "second", "third"]) {
    await server.task("breaks", [lane], {}, { retry: { strategy: "none" } });
    await server.until("/api/dead-letters", ({ items }) => items.some((letter) => letter.lane === lane));
  }
  const page = await visit(browser, `${server.url}/#/dead-letters?kind=breaks`);
  await page.getByRole("article").nth(2).waitFor();
  await settles(async () => /third/.test(await page.getByRole("article").first().textContent()), true);
  await page.getByRole("combobox", { name: /^lane/ }).selectOption("first");
  await page.waitForURL(/kind=breaks&lane=first/);
  await button(page.locator("main"), "Throw 1 away").waitFor();
  await page.getByRole("combobox", { name: /^lane/ }).selectOption("any");
  await page.waitForURL(/kind=breaks$/);
  await page.getByLabel("Filter dead letters").fill("second");
  await act(page, button(page.locator("main"), "Throw 1 away"), "Throw 1 dead letter away");
  const { items } = await server.until("/api/dead-letters", (found) => found.items.length < 3);
  assert.deepEqual(items.map(({ lane }) => lane), ["first", "third"]);
  await leave(page);
});

test("an agent's card shows every run, with what it was asked", async () => {
  await server.chat("writer", "Write a poem", { session: "poem" });
  await server.ask("POST", "/api/sessions/letter/messages", { agent: "writer", text: "Write a letter", sender_name: "Ann" });
  const page = await visit(browser, `${server.url}/#/agents`);
  const card = page.getByRole("article", { name: "Agent writer" });
  for (const asked of ["Write a poem", "Write a letter"]) await card.locator(".current").getByText(asked).waitFor();
  await leave(page);
});

test("a conversation tells what was asked and answered, and how it is set, also when nothing goes on in it", async () => {
  await server.ask("POST", "/api/agents/echo/chat", { message: "What is the time?", session: "quiet" });
  const page = await visit(browser, `${server.url}/#/sessions/quiet`);
  const turns = page.getByRole("region", { name: "Turns" });
  await turns.locator(".asked").getByText("What is the time?").waitFor();
  await turns.locator(".answered").getByText("What is the time?").waitFor();
  const settings = page.getByRole("region", { name: "Settings" });
  await settings.getByRole("row", { name: "mode collect default" }).waitFor();
  await settings.getByRole("button", { name: "Change…" }).waitFor();
  // A turn that waits for a slot is not called running.
  await server.ask("POST", "/api/lanes/desk/pause");
  await server.chat("writer", "Not yet", { session: "patient" });
  await goTo(page, server, "sessions/patient");
  await page.getByRole("region", { name: "The turn that runs" }).locator(".state.queued").waitFor();
  await server.ask("POST", "/api/lanes/desk/resume");
  await leave(page);
});

test("a parked message is seen with what went wrong, and sent again or thrown away", async () => {
  for (const text of ["Fix it", "Forget it"]) {
    const path = "/api/sessions/odd/messages";
    const { id } = await server.ask("POST", path, { agent: "builder", text });
    for (let tries = 1; tries <= 7; tries += 1) {
      const { tasks: [task] } = await server.ask("POST", "/api/claim", { worker: "w", lanes: ["agent:builder"], wait_ms: 60000 });
      await server.ask("POST", `/api/tasks/${task.id}/complete`, { fence: task.fence, success: false, error: "no model" });
      if (tries < 7) await server.ask("POST", `${path}/${id}/send-now`, {});
    }
  }
  const page = await visit(browser, `${server.url}/#/sessions`);
  await page.getByText("2 parked").click();
  const parked = page.getByRole("region", { name: "Parked messages" });
  const row = (text) => parked.getByRole("listitem").filter({ hasText: text });
  await row("Forget it").getByText("no model").waitFor();
  await act(page, button(row("Forget it"), "Throw away"), "Throw away");
  await row("Forget it").waitFor({ state: "detached" });
  await act(page, button(row("Fix it"), "Send again"), "Send again");
  await page.getByRole("status").getByText("The message: queued").waitFor();
  const { tasks: [turn] } = await server.ask("POST", "/api/claim", { worker: "w", lanes: ["agent:builder"], wait_ms: 60000 });
  assert.equal(turn.payload.text, "Fix it");
  await parked.waitFor({ state: "detached" });
  await server.ask("POST", `/api/tasks/${turn.id}/complete`, { fence: turn.fence, success: true });
  await leave(page);
});

test("every schedule is described in words", async () => {
  const page = await visit(browser, `${server.url}/#/schedules`);
  const words = (name) => page.getByRole("article", { name: `Schedule ${name}` }).locator("strong").first().textContent();
  await page.getByRole("article", { name: "Schedule ticker" }).waitFor();
  assert.match(await words("ticker"), /every 20 seconds/i);
  assert.match(await words("months"), /23:30.*last day/i);
  await leave(page);
});

test("lanes sort by every column, both ways", async () => {
  const page = await visit(browser, `${server.url}/#/lanes?filter=tenant`);
  for (const [name, limit] of [["tenant:a", 1], ["tenant:b", 3], ["tenant:c", 2]]) {
    await server.ask("PATCH", `/api/lanes/${name}`, { max_concurrency: limit });
    for (let index = 0; index < limit; index += 1) await server.task("slow", [name]);
  }
  const names = () => page.locator("[role=listitem] .c-lane-name").allTextContents();
  await page.getByText("tenant:c").waitFor();
  await page.getByRole("button", { name: /^running/ }).click();
  await page.waitForURL(/sort=running/);
  await settles(names, ["tenant:b", "tenant:c", "tenant:a"]);
  await page.getByRole("button", { name: /^running/ }).click();
  await page.waitForURL(/sort=-running/);
  await settles(names, ["tenant:a", "tenant:c", "tenant:b"]);
  await page.goBack();
  await page.waitForURL(/sort=running/);
  await leave(page);
});

test("durations stand as one would type them, and are typed so", async () => {
  await server.ask("PATCH", "/api/lanes/typed", { timeout: "90000ms" });
  const page = await visit(browser, `${server.url}/#/lanes/typed`);
  const timeout = page.getByLabel("timeout of lane typed", { exact: true });
  await timeout.waitFor();
  await settles(() => timeout.inputValue(), "90s");
  await timeout.fill("2m");
  await timeout.press("Enter");
  await server.until("/api/lanes/typed", ({ settings }) => settings.timeout === "120000ms");
  await page.waitForFunction(() => document.querySelector('[aria-label="timeout of lane typed"]').value === "2m");
  await settles(() => page.locator("table.settings th").first().textContent(), "max_concurrency");
  await leave(page);
});

test("a list that was scrolled shows no task as waiting that has ended", async () => {
  await server.ask("PATCH", "/api/lanes/deep", { max_concurrency: 1, max_queued: 1000 });
  await server.ask("POST", "/api/lanes/deep/pause");
  await server.fill("deep", 420);
  const page = await visit(browser, `${server.url}/#/tasks?status=queued&lane=deep`);
  for (const shown of ["200", "400", "420"]) {
    await page.getByText(`${shown} shown`).waitFor();
    await page.locator(".scroll").evaluate((box) => { box.scrollTop = box.scrollHeight; });
  }
  await server.ask("POST", "/api/lanes/deep/clear");
  await page.getByText("No task fits.").waitFor();
  await leave(page);
});
