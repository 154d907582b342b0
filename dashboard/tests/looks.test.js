// Everybody can use it: contrast, keyboard, screen readers, narrow windows, long and foreign names, little motion.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { closeAll, goTo, leave, open, settles, visit } from "./browser.js";
import { Server, traffic } from "./server.js";

let server;
let browser;
const ARABIC = "مرحبا بالعالم";
const LONG = "a-name-that-is-longer-than-usual-".repeat(3).slice(0, 96);

before(async () => {
  [server, browser] = await Promise.all([Server.start(), open()]);
  await traffic(server);
  await server.ask("POST", "/api/lanes/tools/drain");
  for (const text of [ARABIC, LONG]) await server.ask("POST", `/api/sessions/${encodeURIComponent(text)}/messages`, { agent: "writer", text, sender_name: text });
  await server.task("slow", [LONG, "side"]);
});
after(async () => {
  await browser?.close();
  await server?.end();
});
afterEach(() => closeAll(browser));

async function places() {
  const task = async (status) => (await server.ask("GET", `/api/tasks?status=${status}`)).items[0].id;
  return ["", "lanes", "lanes/tools", "tasks", `tasks/${await task("queued")}`, `tasks/${await task("failed")}`, "sessions", "sessions/trip", "agents",
    "dead-letters", "schedules", "workers", "audit", "settings"];
}

async function come(page, place) {
  await goTo(page, server, place);
  await page.locator("main h1").waitFor();
  await page.waitForFunction(() => !document.querySelector("main .loading"));
}

/** Every text on the page with less contrast to its ground than its size asks for. */
function tooFaint() {
  const numbers = (colour) => {
    const given = colour.match(/-?[\d.]+(e-?\d+)?/g).map(Number);
    return colour.startsWith("color(") ? [...given.slice(0, 3).map((part) => part * 255), given[3] ?? 1] : [...given.slice(0, 3), given[3] ?? 1];
  };
  const over = (top, ground) => top.slice(0, 3).map((part, index) => part * top[3] + ground[index] * (1 - top[3]));
  const groundOf = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) layers.unshift(numbers(getComputedStyle(at).backgroundColor));
    return layers.reduce((ground, layer) => over(layer, ground), [255, 255, 255]);
  };
  const light = (colour) => colour.map((part) => part / 255).map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const element = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || element.closest("button:disabled, noscript, .sr, option") || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const ground = groundOf(element);
    const [one, other] = [light(over(numbers(style.color), ground)), light(ground)].sort((a, b) => b - a);
    const ratio = (one + 0.05) / (other + 0.05);
    const isLarge = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (isLarge ? 3 : 4.5)) found.push(`${ratio.toFixed(2)} ${element.className}: ${walk.currentNode.data.trim().slice(0, 40)}`);
  }
  return found;
}

for (const scheme of ["dark", "light"]) {
  test(`every text has enough contrast to its ground, ${scheme}`, async () => {
    const page = await visit(browser, `${server.url}/`, { scheme });
    for (const place of await places()) {
      await come(page, place);
      await settles(async () => [...new Set(await page.evaluate(tooFaint))], [], place || "overview");
    }
    await leave(page);
  });
}

test("long names and names from right to left keep to their own place", async () => {
  for (const width of [1280, 390]) {
    const page = await visit(browser, `${server.url}/`, { width });
    for (const place of ["", "lanes", `lanes/${LONG}`, "sessions", `sessions/${encodeURIComponent(ARABIC)}`, `sessions/${encodeURIComponent(LONG)}`, "tasks", "agents"]) {
      await come(page, place);
      await settles(() => page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), true, `${place} is too wide at ${width}`);
    }
    await come(page, `sessions/${encodeURIComponent(ARABIC)}`);
    const message = page.locator(".message", { hasText: ARABIC }).first();
    await message.waitFor();
    assert.equal(await message.evaluate((one) => getComputedStyle(one).unicodeBidi), "plaintext");
    await settles(() => page.locator("h1 .name").evaluate((one) => getComputedStyle(one).unicodeBidi), "isolate");
    await leave(page);
  }
});

test("what a list is for can be read in it", async () => {
  const page = await visit(browser, `${server.url}/`);
  const cut = (selector) => page.locator(selector).evaluateAll((all) => all.filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent));
  await server.chat("coder", "Wait here", { session: "reader" }).catch((error) => { if (error.status !== 429) throw error; });
  // All that stands in a row, but for what people have written.
  const selector = "[data-row] > span:not(.c-message), [data-row] > span:not(.c-message) > *, table.workers td, table.workers th";
  for (const place of ["lanes/main", "sessions", "workers", "tasks", "lanes"]) {
    await come(page, place);
    await page.locator("[data-row], table.workers tr").first().waitFor();
    await settles(async () => (await cut(selector)).filter((text) => !text.includes(LONG.slice(0, 20))), [], place);
  }
  await leave(page);
});

test("tabs are walked with the arrows, and help gives the focus back", async () => {
  const page = await visit(browser, `${server.url}/#/tasks`);
  const tab = (name) => page.getByRole("tab", { name, exact: true });
  await tab("all").focus();
  await page.keyboard.press("ArrowRight");
  await page.waitForURL(/status=running/);
  await page.waitForFunction(() => document.activeElement.textContent === "running");
  await page.keyboard.press("End");
  await page.waitForURL(/status=lost/);
  // As fast as keys can come.
  await page.evaluate(() => {
    for (const key of ["ArrowLeft", "ArrowRight", "ArrowRight"]) document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  });
  await page.waitForURL(/#\/tasks$/);
  await settles(() => page.locator("[role=tab]").evaluateAll((all) => all.filter((one) => one.tabIndex === 0).map((one) => one.textContent)), ["all"]);
  const help = page.getByRole("button", { name: "Keyboard help" });
  await help.focus();
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Close" }).click();
  await page.getByRole("heading", { name: "Keyboard" }).waitFor({ state: "detached" });
  await settles(() => help.evaluate((one) => one === document.activeElement), true);
  await leave(page);
});

test("following a row with the keyboard moves the focus to the page that it opens", async () => {
  const page = await visit(browser, `${server.url}/#/lanes?filter=tools`);
  await page.getByText("tools").first().waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.waitForURL(/#\/lanes\/tools/);
  await page.waitForFunction(() => document.activeElement.id === "main");
  await page.getByText("Limits and settings").waitFor();
  await page.keyboard.press("Tab");
  await settles(() => page.evaluate(() => document.activeElement.closest("main") !== null), true);
  await leave(page);
});

test("on a phone the page and the tab one is on are seen among the others", async () => {
  const page = await visit(browser, `${server.url}/#/settings`, { width: 390, height: 844 });
  await page.locator("main h1").waitFor();
  const inside = (which = "nav [aria-current]") => page.locator(which).evaluate((one) => {
    const [link, nav] = [one.getBoundingClientRect(), one.parentElement.getBoundingClientRect()];
    return link.left >= nav.left - 1 && link.right <= nav.right + 1;
  });
  await settles(() => inside(), true);
  await come(page, "workers");
  await settles(() => inside(), true);
  await come(page, "tasks?status=lost");
  await settles(() => inside("[role=tab][aria-selected=true]"), true);
  await leave(page);
});

test("with little motion wished for nothing moves by itself", async () => {
  const page = await visit(browser, `${server.url}/`, { motion: "reduce" });
  await page.locator(".slots i").first().waitFor();
  const moving = await page.evaluate(() => [...document.querySelectorAll("*")].filter((one) => {
    const { transitionDuration, animationName } = getComputedStyle(one);
    return animationName !== "none" || transitionDuration.split(",").some((length) => parseFloat(length) > 0);
  }).length);
  assert.equal(moving, 0);
  await leave(page);
});
