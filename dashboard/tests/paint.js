// How fast the overview shows when 100 000 tasks wait, and what it weighs; fails above the bounds.

import { leave, load, open } from "./browser.js";
import { CONFIG, Server } from "./server.js";

const TASKS = 100_000;
const ROUNDS = 5;
const BOUNDS = { "first paint, ms": 1000, "bytes over the wire": 250_000 };

const config = CONFIG.replace("max_queued = 20000", `max_queued = ${TASKS}`)
  .replace('lane "global"       { max_concurrency = 10 }', `lane "global" {\n  max_concurrency = 10\n  max_queued = ${TASKS}\n}`);
const [server, browser] = await Promise.all([Server.start({ config }), open()]);
try {
  await server.fill("tools", TASKS);
  const { waiting } = await server.ask("GET", "/api/status");
  const rounds = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const { page, ...measured } = await load(browser, server);
    rounds.push(measured);
    await leave(page);
  }
  const median = (key) => rounds.map((round) => round[key]).sort((one, other) => one - other)[Math.floor(ROUNDS / 2)];
  const rows = { "tasks that wait": waiting, "first paint, ms": Math.round(median("painted")), "with its numbers, ms": Math.round(median("filled")), "bytes over the wire": median("bytes") };
  for (const [name, value] of Object.entries(rows)) {
    const bound = BOUNDS[name];
    console.log(`${name.padEnd(24)} ${String(value).padStart(8)}${bound ? `  at most ${bound}  ${value <= bound ? "ok" : "MISSED"}` : ""}`);
    if (bound && value > bound) process.exitCode = 1;
  }
} finally {
  await browser.close();
  await server.end();
}
