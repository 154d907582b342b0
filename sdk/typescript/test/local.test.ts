// A local server.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { Laneway, LocalFailed } from "../src/index.js";
import { WAIT_MAX_MS } from "./server.js";

const index = new URL("../src/index.js", import.meta.url).href;
const startsOne = `
  import { Laneway } from ${JSON.stringify(index)};
  const queue = await Laneway.local();
  console.log(queue.pid);
`;

function isAlive(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.[0] !== "Z";
  } catch {
    return false;
  }
}

for (const how of ["ends", "SIGTERM", "SIGKILL"] as const) {
  test(`the server ends with the program: ${how}`, async () => {
    const code = how === "ends" ? startsOne : `${startsOne}; setInterval(() => {}, 1000);`;
    const program = spawn(process.execPath, ["--input-type=module", "-e", code], { stdio: ["ignore", "pipe", "inherit"] });
    // It may end before the test has read its output.
    const exited = once(program, "exit");
    const [said] = (await once(program.stdout, "data")) as [Buffer];
    const pid = Number(said);
    if (how !== "ends") {
      assert.ok(isAlive(pid));
      program.kill(how);
    }
    await exited;
    const until = performance.now() + WAIT_MAX_MS;
    while (isAlive(pid) && performance.now() < until) await setTimeout(20);
    assert.equal(isAlive(pid), false);
  });
}

test("a file store keeps accepted tasks", async () => {
  const store = join(mkdtempSync(join(tmpdir(), "laneway-test-")), "data");
  const config = { lane: { later: { handler: "external" } } };
  let task = "";
  {
    await using queue = await Laneway.local({ store, config });
    task = (await queue.client().submit("x", { n: 1 }, { lanes: ["later"] })).id;
  }
  await using queue = await Laneway.local({ store, config });
  assert.deepEqual((await queue.client().task(task)).payload, { n: 1 });
});

test("a broken configuration is reported", async () => {
  await assert.rejects(Laneway.local({ binary: "/nothing/here" }), LocalFailed);
  await assert.rejects(Laneway.local({ config: { lane: { main: { max_concurency: 3 } } } }), /max_concurrency/);
});
