// A real server in its own process.

import { execFileSync, spawn } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

export const PROGRAM = process.env.LANEWAY_BINARY;
const SCOPES = { user: ["read", "submit"], reader: ["read"], admin: ["admin"] };

/** An impatient server soon answers a call with its task. */
export async function serve({ isImpatient = false } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "laneway-mcp-"));
  for (const name of ["laneway.hcl", "gate.sh"]) copyFileSync(join(import.meta.dirname, name), join(folder, name));
  if (isImpatient) {
    const config = join(folder, "laneway.hcl");
    writeFileSync(config, readFileSync(config, "utf8").replace('"10m"', '"1s"'));
  }
  const tokens = {};
  for (const [subject, scopes] of Object.entries(SCOPES)) {
    const wanted = scopes.flatMap((scope) => ["--scope", scope]);
    const words = ["token", "create", "--config", "laneway.hcl", "--subject", subject, ...wanted];
    tokens[subject] = execFileSync(PROGRAM, words, { cwd: folder, encoding: "utf8" }).trim();
  }
  const words = ["serve", "--config", "laneway.hcl", "--listen", "127.0.0.1:0", "--log", "error"];
  const process = spawn(PROGRAM, words, { cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
  const [greeting] = await firstLine(process.stdout);
  const url = `http://${greeting.split("http://")[1]}`;
  return {
    url,
    tokens,
    open: (gate) => writeFileSync(join(folder, `${gate}.open`), ""),
    runs: (gate) => readFileSync(join(folder, `${gate}.runs`), "utf8").trim().split("\n").length,
    /** Waits for the end of a task, and returns its status. */
    async ended(task) {
      const headers = { authorization: `Bearer ${tokens.admin}` };
      const events = await (await fetch(`${url}/api/tasks/${task}/events`, { headers })).text();
      return [...events.matchAll(/^event: (\w+)$/gm)].map((found) => found[1]).at(-2);
    },
    stop() {
      process.kill("SIGKILL");
      rmSync(folder, { recursive: true });
    },
  };
}

function firstLine(stream) {
  return new Promise((resolve) => createInterface({ input: stream }).once("line", (line) => resolve([line])));
}
