// What is asked before something is done says how things are when it is asked, although the page still shows how they were.

import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { act, closeAll, freeze, leave, open, visit, goTo as come } from "./browser.js";
import { Server } from "./server.js";

const CONFIG = `
server { drain_grace = "100ms" }
agent "writer" {
  command = ["sh", "-c", "exec sleep 600"]
  lanes = ["desk"]
}
handler "slow"   { command = ["sh", "-c", "exec sleep 600"] }
handler "breaks" { command = ["sh", "-c", "exit 3"] }
lane "agent:*" { wait_timeout = "1h" }
lane "patient" {
  max_concurrency = 1
  retry {
    strategy = "fixed"
    max_retries = 5
    fixed_delay = "1h"
  }
}
`;

let server;
let browser;
let page;

before(async () => {
  [server, browser] = await Promise.all([Server.start({ config: CONFIG }), open()]);
});
after(async () => {
  await browser?.close();
  await server?.end();
});
beforeEach(async () => {
  page = await visit(browser, "about:blank");
});
afterEach(async () => {
  try {
    await leave(page);
  } finally {
    await closeAll(browser);
  }
});

const goTo = (place) => come(page, server, place);
const dialog = () => page.getByRole("dialog");
const button = (name, within = page.locator("main")) => within.getByRole("button", { name, exact: true });
const asked = (text) => dialog().getByText(text).waitFor();
const notNow = () => button("Not now", dialog()).click();
const said = (text) => page.getByRole("status").getByText(text).first().waitFor();
const refused = (text) => page.locator(".note.refused").getByText(text).waitFor();
/** Something that every page hears of. */
const nudge = () => server.ask("PATCH", "/api/lanes/nudge", { max_concurrency: 1 });

test("of a lane: what runs, what waits, and that nothing is left", async () => {
  await server.ask("PATCH", "/api/lanes/stale", { max_concurrency: 1 });
  for (let index = 0; index < 3; index += 1) await server.task("slow", ["stale"]);
  await goTo("lanes/stale");
  const shown = page.getByRole("region", { name: "Now" }).getByText("2 waiting of");
  await shown.waitFor();
  await freeze(page, /\/api\/tasks\?/, nudge);
  await server.ask("PATCH", "/api/lanes/stale", { max_concurrency: 2 });
  for (let index = 0; index < 2; index += 1) await server.task("slow", ["stale"]);
  await server.until("/api/lanes/stale", ({ running, waiting }) => running === 2 && waiting === 3);
  await button("Pause").click();
  await asked("What runs goes on: 2 tasks.");
  await notNow();
  await button("Drain").click();
  await asked("What waits is still done: 3 tasks.");
  await notNow();
  await act(page, button("Clear"), "Cancel 3 tasks");
  await said("3 tasks of stale cancelled.");
  await button("Clear").click();
  await refused("No task waits in stale.");
  await shown.waitFor();
});

test("of a lane that looked empty: it can be cleared all the same, those between two attempts included", async () => {
  await goTo("lanes/patient");
  await page.getByText("No task waits.").waitFor();
  await freeze(page, /\/api\/tasks\?/, nudge);
  await server.task("breaks", ["patient"]);
  await server.until("/api/lanes/patient", ({ retrying }) => retrying === 1);
  for (let index = 0; index < 2; index += 1) await server.task("slow", ["patient"]);
  await act(page, button("Clear"), "Cancel 2 tasks");
  await said("2 tasks of patient cancelled.");
});

test("of an agent: whose turns are cancelled, whose slots are taken away", async () => {
  await goTo("agents");
  const card = page.getByRole("article", { name: "Agent writer" });
  await card.getByText("Nothing runs, and no task waits.").waitFor();
  await button("Clear queue", card).click();
  await refused("No task waits for writer.");
  await freeze(page, /\/api\/agents$/, nudge);
  for (const message of ["One", "Two", "Three"]) await server.chat("writer", message, { session: message });
  await server.until("/api/agents/writer", ({ running, waiting }) => running === 1 && waiting === 2);
  await act(page, button("Clear queue", card), "Cancel 2 turns");
  await said("2 turns of writer cancelled.");
  await button("Force release", card).click();
  await asked("The slots of 1 turn are taken away");
  await button("Force release", dialog()).click();
  await said("1 run of writer released.");
  await button("Force release", card).click();
  await refused("writer is not busy.");
});

test("of a conversation: how many messages are cancelled", async () => {
  const write = (text) => server.ask("POST", "/api/sessions/trip/messages", { agent: "writer", text });
  await write("Plan the trip");
  await server.until("/api/agents/writer", ({ running }) => running === 1);
  await goTo("sessions/trip");
  await page.getByText("No message waits.").waitFor();
  await freeze(page, /\/stats$/, nudge);
  await write("By train");
  await write("With a dog");
  await button("Clear").click();
  await asked("A turn that is under way is not touched.");
  await button("Cancel 2 messages", dialog()).click();
  await said("2 messages cancelled.");
  await button("Clear").click();
  await refused("No message waits.");
  await server.ask("POST", "/api/sessions/trip/interrupt");
});

test("of a conversation whose turn has not started: its messages are among those that are cancelled", async () => {
  await server.ask("POST", "/api/lanes/desk/pause");
  for (const text of ["Early", "Later", "Last"]) await server.ask("POST", "/api/sessions/early/messages", { agent: "writer", text });
  await server.until("/api/sessions/early", ({ current_turn: turn, messages }) => turn?.messages.length === 1 && messages.length === 2);
  await goTo("sessions/early");
  await button("Clear").click();
  await asked("The turn that has not started yet is cancelled with its own.");
  await button("Cancel 3 messages", dialog()).click();
  await said("3 messages cancelled.");
  await server.ask("POST", "/api/lanes/desk/resume");
});

test("of a task: whether it waits or runs, or is over", async () => {
  await server.ask("POST", "/api/lanes/gate/pause");
  const { id } = await server.task("slow", ["gate"]);
  await goTo(`tasks/${id}`);
  await page.getByText("lane gate is paused").waitFor();
  await freeze(page, new RegExp(`/api/tasks/${id}$`), () => server.ask("PATCH", `/api/tasks/${id}`, { priority: 1 }));
  await server.ask("POST", "/api/lanes/gate/resume");
  await server.until(`/api/tasks/${id}`, ({ status }) => status === "running");
  await button("Priority…").click();
  await refused("It no longer waits (running)");
  await button("Cancel").click();
  await asked("It gets a signal to stop now.");
  await notNow();
  await server.ask("DELETE", `/api/tasks/${id}`);
  await server.until(`/api/tasks/${id}`, ({ status }) => status === "cancelled");
  await button("Cancel").click();
  await refused("the task is over (cancelled)");
});

test("of dead letters: how many there are, and only those are taken", async () => {
  const broken = async (lane) => {
    await server.task("breaks", [lane], {}, { retry: { strategy: "none" } });
    await server.until("/api/dead-letters", ({ items }) => items.some((letter) => letter.lane === lane));
  };
  await broken("first");
  await goTo("dead-letters");
  await button("Throw 1 away").waitFor();
  await freeze(page, /\/api\/dead-letters\?/, () => broken("second"));
  await button("Throw 1 away").click();
  await button("Throw 2 dead letters away", dialog()).waitFor();
  await notNow();
  const { items } = await server.ask("GET", "/api/dead-letters");
  assert.equal(items.length, 2);
  await server.ask("DELETE", "/api/dead-letters?kind=breaks");
  await button("Run 1 again").click();
  await refused("No dead letter is left.");
});
