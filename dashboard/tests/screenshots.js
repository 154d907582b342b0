// Pictures of the main pages for the documentation: `node screenshots.js FOLDER`. It lets two minutes of a busy day pass first.

import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { open, visit } from "./browser.js";
import { Server } from "./server.js";

const CONFIG = `
server { drain_grace = "100ms" }

lane "global"       { max_concurrency = 24 }
lane "main" {
  max_concurrency = 4
  max_queued = 40
}
lane "subagent"     { max_concurrency = 8 }
lane "provider:llm" { max_concurrency = 8 }
lane "browser"      { max_concurrency = 5 }
lane "deploy"       { max_concurrency = 1 }

agent "coder" {
  command = ["sh", "-c", "echo reading the code; sleep 7; echo done"]
  lanes = ["main", "provider:llm"]
}
agent "reviewer" {
  command = ["sh", "-c", "sleep 4; echo looks good"]
  lanes = ["main", "provider:llm"]
}
agent "researcher" { external = true }

handler "search" { command = ["sh", "-c", "sleep 2"] }
handler "edit"   { command = ["sh", "-c", "sleep 5"] }
handler "render" { command = ["sh", "-c", "sleep 8"] }
handler "flaky"  { command = ["sh", "-c", "echo the page did not load >&2; exit 1"] }

schedule "standup" {
  cron = "0 9 * * 1-5"
  timezone = "Europe/Berlin"
  agent = "coder"
  message = "Post the standup"
}
`;

const SECONDS = 120;
const quietly = (promise) => promise.catch((error) => { if (error.status !== 429) throw error; });
const rest = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function busyDay(server) {
  await quietly(server.task("edit", ["deploy"], { release: "1.4.0" }));
  await server.ask("POST", "/api/lanes/deploy/pause");
  for (let index = 0; index < 3; index += 1) await server.task("edit", ["deploy"], { index }, { priority: 1 });
  for (let tick = 0; tick < SECONDS * 2; tick += 1) {
    const wave = 1 + Math.sin(tick / 14);
    const sends = [];
    if (tick % 2 === 0) sends.push(server.task("search", ["subagent", "provider:llm"], { tick }, { priority: tick % 3 }));
    if (wave > 1.1) sends.push(server.task("edit", ["main"], { tick }, { priority: tick % 4 }));
    if (tick % 5 < wave) sends.push(server.task("render", ["browser"], { tick }, { priority: tick % 3 }));
    if (tick % 6 === 0) sends.push(server.chat("coder", "Fix the failing test", { session: `ticket-${tick % 5}` }));
    if (tick % 9 === 0) sends.push(server.chat("reviewer", "Review the last change", { session: `review-${tick % 4}` }));
    if (tick === 150) sends.push(server.task("flaky", ["browser"], { url: "https://example.com" }, { retry: { strategy: "none" } }));
    await Promise.all([rest(500), ...sends.map(quietly)]);
  }
}

const folder = process.argv[2];
if (!folder) throw new Error("say into which folder: node screenshots.js FOLDER");
await mkdir(folder, { recursive: true });
const [server, browser] = await Promise.all([Server.start({ config: CONFIG }), open()]);
try {
  const day = busyDay(server);
  await rest(SECONDS * 1000 - 6000);
  for (const scheme of ["dark", "light"]) {
    const page = await visit(browser, `${server.url}/`, { scheme, height: 1180 });
    await page.getByText("Refused, by code").waitFor();
    await rest(1500);
    await page.screenshot({ path: join(folder, `overview-${scheme}.png`) });
    await page.context().close();
  }
  const page = await visit(browser, `${server.url}/#/lanes/main`, { scheme: "dark", height: 760 });
  await page.getByText("Waiting tasks, in order").waitFor();
  await page.screenshot({ path: join(folder, "lane-dark.png") });
  const { items } = await server.ask("GET", "/api/tasks?status=queued&lane=main&limit=50");
  await page.goto(`${server.url}/#/tasks/${items[0].id}`);
  await page.getByText("Why it waits").waitFor();
  await rest(500);
  await page.screenshot({ path: join(folder, "task-dark.png") });
  await day;
} finally {
  await browser.close();
  await server.end();
}
