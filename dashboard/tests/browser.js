// A real Chromium, and pages in which every error counts.

import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import { chromium } from "playwright-core";
import { WAIT_MAX_MS } from "./server.js";
import { THROTTLE } from "./slow.js";

const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];

export function open() {
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: true, args: FLAGS, timeout: WAIT_MAX_MS });
}

/** A page that remembers every error of its console; `allowed` are those that the test itself causes. */
export async function visit(browser, url, { width = 1280, height = 800, scheme = "dark", motion = "no-preference", token, allowed = [] } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, reducedMotion: motion, locale: "en-GB", timezoneId: "Europe/Berlin" });
  const page = await context.newPage();
  page.setDefaultTimeout(WAIT_MAX_MS);
  page.errors = [];
  const isAllowed = (text) => allowed.some((pattern) => pattern.test(text));
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type()) && !isAllowed(message.text())) page.errors.push(`${message.type()}: ${message.text()} ${message.location().url}`);
  });
  page.on("pageerror", (error) => page.errors.push(`thrown: ${error.stack}`));
  if (THROTTLE > 1) await (await context.newCDPSession(page)).send("Emulation.setCPUThrottlingRate", { rate: THROTTLE });
  if (token) await page.addInitScript((kept) => sessionStorage.setItem("laneway-token", kept), token);
  await page.goto(url);
  return page;
}

/** Goes to a place of the dashboard that the page shows, and waits until it is the one that is drawn: until then it is the one before. */
export async function goTo(page, server, place) {
  await page.goto(`${server.url}/#/${place}`);
  await page.waitForFunction(() => {
    const wanted = location.hash.replace(/^#\/?/, "").split("?")[0].split("/").filter(Boolean).map(decodeURIComponent).join("/");
    return document.getElementById("main")?.dataset.place === wanted;
  });
}

/** Closes a page in which nothing may have gone wrong. */
export async function leave(page) {
  const { errors } = page;
  await page.context().close();
  assert.deepEqual(errors, []);
}

/** Closes what a test that failed has left open, so that the next one has the browser for itself. */
export async function closeAll(browser) {
  await Promise.all(browser.contexts().map((context) => context.close()));
}

/** From now on what the page shows is old: its next question of `pattern`, which it asks when `nudge` is done, is never answered. */
export async function freeze(page, pattern, nudge) {
  const held = new Promise((resolve) => {
    page.route(pattern, () => resolve(), { times: 1 }).then(nudge);
  });
  await held;
}

/** Reads until it is what is expected: what follows from an action need not be drawn yet. Fails with what it read last. */
export async function settles(read, expected, said) {
  const end = Date.now() + WAIT_MAX_MS;
  for (;;) {
    const found = await read();
    if (isDeepStrictEqual(found, expected)) return;
    if (Date.now() > end) assert.deepEqual(found, expected, said);
    await new Promise((resolve) => { setTimeout(resolve, 20); });
  }
}

/** Presses a button, and the one that confirms. */
export async function act(page, button, action) {
  await button.click();
  if (action) await page.getByRole("dialog").getByRole("button", { name: action }).click();
}

/** Loads the overview for the first time: the page, the bytes and files that it took, and when it first showed something (ms). */
export async function load(browser, server) {
  const page = await visit(browser, "about:blank");
  const client = await page.context().newCDPSession(page);
  await client.send("Network.enable");
  const weighed = { bytes: 0, files: 0 };
  client.on("Network.loadingFinished", ({ encodedDataLength }) => {
    weighed.bytes += encodedDataLength;
    weighed.files += 1;
  });
  await page.goto(`${server.url}/`);
  await page.getByText("Running", { exact: true }).waitFor();
  const [painted, filled] = await page.evaluate(() => [performance.getEntriesByName("first-contentful-paint")[0]?.startTime, performance.now()]);
  return { page, ...weighed, painted, filled };
}
