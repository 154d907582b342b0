// Data never becomes markup, a token sees only the buttons that would work, and nothing is kept that should not be.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { closeAll, goTo, leave, open, visit } from "./browser.js";
import { Server } from "./server.js";

const HOSTILE = [
  `<script>window.pwned = 1</script>`, `<img src=x onerror="window.pwned = 1">`, `"><svg onload=window.pwned=1>`, `javascript:window.pwned=1`,
  `'; window.pwned = 1; //`, "${window.pwned = 1}", "{{constructor.constructor('window.pwned=1')()}}", `</pre></textarea><iframe srcdoc="<script>parent.pwned=1</script>">`,
  `&lt;b&gt;bold&amp;`, `<a href="javascript:window.pwned=1">click</a>`, `<style>*{display:none}</style>`, "\u202Egnp.exe", "a\u0000b\u0007c", "🦀".repeat(50),
  "x".repeat(5000), `<math><mtext></form><form><mglyph><style></math><img src onerror=window.pwned=1>`, `__proto__`, `%00%2e%2e%2f`, `<base href="//evil.example/">`,
];

let server;
let browser;

before(async () => {
  [server, browser] = await Promise.all([Server.start(), open()]);
});
after(async () => {
  await browser?.close();
  await server?.end();
});
afterEach(() => closeAll(browser));

test("hostile strings are shown as the text that they are", async () => {
  for (const [index, text] of HOSTILE.entries()) {
    await server.task("breaks", ["main"], { text }, { retry: { strategy: "none" } });
    await server.ask("POST", "/api/agents/echo/chat", { message: text, session: `s${index}` });
    await server.ask("POST", "/api/sessions/hostile/messages", { agent: "writer", text, sender_name: text.slice(0, 100) });
  }
  await server.ask("POST", "/api/schedules", { name: "hostile", cron: "0 0 1 1 *", agent: "echo", message: HOSTILE[1] });
  await server.until("/api/dead-letters", ({ items }) => items.length === HOSTILE.length);
  const page = await visit(browser, `${server.url}/`);
  const asked = [];
  page.on("request", (request) => asked.push(new URL(request.url()).origin));
  const isWhole = async () => assert.deepEqual(await page.evaluate(() => [window.pwned ?? null,
    document.querySelectorAll("main script, main img, main iframe, main svg, main style, main base, main math").length]), [null, 0]);
  const letters = (await server.ask("GET", "/api/dead-letters")).items;
  await goTo(page, server, "dead-letters");
  await page.locator("article").nth(HOSTILE.length - 1).waitFor();
  await page.locator("summary").evaluateAll((all) => all.forEach((one) => one.click()));
  for (const letter of letters) {
    const shown = page.getByRole("article", { name: `Dead letter ${letter.id}` }).locator("details pre");
    await shown.waitFor();
    assert.equal(await shown.textContent(), JSON.stringify(letter.payload, null, 2));
  }
  await isWhole();
  const waiting = (await server.ask("GET", "/api/sessions/hostile")).messages;
  await goTo(page, server, "sessions/hostile");
  await page.locator(".messages li").nth(waiting.length - 1).waitFor();
  const clean = (text) => text.replaceAll("\u0000", "\ufffd");
  assert.deepEqual((await page.locator(".messages .message").allTextContents()).map(clean), waiting.map(({ text }) => clean(text)));
  await isWhole();
  for (const task of (await server.ask("GET", "/api/tasks?status=completed&limit=100")).items) {
    await goTo(page, server, `tasks/${task.id}`);
    await page.getByText("Result").click();
    await page.locator("details pre").waitFor();
    await isWhole();
  }
  for (const place of ["schedules", "lanes", "tasks", "audit", `lanes/${encodeURIComponent(HOSTILE[1])}`, `tasks?lane=${encodeURIComponent(HOSTILE[0])}`, `sessions/${encodeURIComponent(HOSTILE[2])}`]) {
    await goTo(page, server, place);
    await page.locator("h1").waitFor();
    await page.waitForFunction(() => !document.querySelector("main .loading"));
    await isWhole();
  }
  assert.deepEqual([...new Set(asked)], [server.url]);
  page.errors = page.errors.filter((error) => !/status of (400|404|422)/.test(error));
  await leave(page);
});

test("the policy of the page forbids inline script and markup made from text", async () => {
  const page = await visit(browser, `${server.url}/`, { allowed: [/Content Security Policy|Trusted/] });
  const outcome = await page.evaluate(() => {
    const script = document.createElement("script");
    let made = "refused";
    try {
      script.textContent = "window.pwned = 1";
      document.body.append(script);
    } catch { /* refused by trusted types */ }
    try {
      document.createElement("div").innerHTML = "<b>x</b>";
      made = "made";
    } catch { /* refused by trusted types */ }
    return [window.pwned ?? null, made];
  });
  assert.deepEqual(outcome, [null, "refused"]);
  await leave(page);
});

test("a token that may only read sees everything and no button that would fail", async () => {
  const admin = await server.ask("POST", "/api/tokens", { subject: "admin", scopes: ["admin"] });
  server.token = admin.token;
  const reader = await server.ask("POST", "/api/tokens", { subject: "reader", scopes: ["read"] });
  const page = await visit(browser, `${server.url}/#/lanes/main`, { allowed: [/401/] });
  await page.getByLabel("Token").fill("wrong.token");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").waitFor();
  await page.getByLabel("Token").fill(reader.token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("read only").waitFor();
  await page.locator(".connection.live").waitFor();
  const waiting = (await server.ask("GET", "/api/tasks?status=running")).items[0];
  const harmless = /^(lane|running|waiting|p99 wait|p50 run|completed|failed).*|^\?$|^Show more$|^(all|running|waiting|retrying|completed|failed|timed out|cancelled|expired|waited too long|lost|5 min|1 h|24 h|Sign out)$/;
  for (const place of ["", "lanes", "lanes/main", "tasks", `tasks/${waiting.id}`, "sessions", "sessions/hostile", "agents", "dead-letters", "schedules", "workers", "audit", "settings"]) {
    await goTo(page, server, place);
    await page.locator("main h1").waitFor();
    await page.waitForFunction(() => !document.querySelector("main .loading"));
    const buttons = await page.locator("main button").allTextContents();
    assert.deepEqual(buttons.filter((text) => !harmless.test(text.trim())), [], place);
    assert.equal(await page.locator("main form").count(), 0, place);
  }
  const kept = await page.evaluate(() => [document.cookie, JSON.stringify({ ...localStorage }), location.href]);
  assert.ok(kept.every((text) => !text.includes(reader.token)), "the token is in session storage alone");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Token").waitFor();
  assert.equal(await page.evaluate(() => sessionStorage.length), 0);
  page.errors = page.errors.filter((error) => !/status of 403/.test(error));
  await leave(page);
});

test("a token that is taken away signs its page out", async () => {
  const made = await server.ask("POST", "/api/tokens", { subject: "brief", scopes: ["read"] });
  const page = await visit(browser, `${server.url}/#/lanes`, { token: made.token, allowed: [/401/, /ERR_|chunked/] });
  await page.locator(".connection.live").waitFor();
  await server.ask("DELETE", `/api/tokens?id=${made.id}`);
  await page.reload();
  await page.getByLabel("Token").waitFor();
  await leave(page);
});
