// The generated types are current, and the built package installs.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { BY_CODE, Laneway } from "../src/index.js";

const root = fileURLToPath(new URL("../../", import.meta.url));

test("the types are those of the server", async () => {
  await using server = await Laneway.local();
  const file = join(mkdtempSync(join(tmpdir(), "laneway-test-")), "openapi.json");
  const text = await (await fetch(`${server.url}/openapi.json`)).text();
  writeFileSync(file, text);
  execFileSync(process.execPath, [join(root, "scripts/generate.mjs"), file, "--check"], { stdio: "inherit" });
  // Each code has its error.
  const document = JSON.parse(text) as { components: { schemas: { Code: { enum: string[] } } } };
  assert.deepEqual(Object.keys(BY_CODE).sort(), document.components.schemas.Code.enum.sort());
});

test("the package can be installed", () => {
  const place = mkdtempSync(join(tmpdir(), "laneway-test-"));
  writeFileSync(join(place, "package.json"), '{ "private": true, "type": "module" }');
  execFileSync("npm", ["install", "--offline", "--no-audit", "--no-fund", root], { cwd: place, stdio: "pipe" });
  const code = 'import("laneway").then(({ Client }) => console.log(new Client("http://127.0.0.1/").url))';
  assert.equal(execFileSync(process.execPath, ["-e", code], { cwd: place, encoding: "utf8" }), "http://127.0.0.1\n");
  // A program for browsers checks all declarations without the types of Node.
  writeFileSync(
    join(place, "page.ts"),
    `import { Client, Laneway, type LanewayEvent } from "laneway";
    const client = new Client("http://127.0.0.1");
    export async function ask(): Promise<string[]> {
      await using slot = await client.slot(["main"], { signal: AbortSignal.timeout(5) });
      const said: string[] = [String(slot.fence), typeof Laneway.local];
      for await (const event of client.agent("coder").chat("hi", { session: "alice" })) said.push(word(event));
      return said;
    }
    function word(event: LanewayEvent): string {
      switch (event.event) {
        case "queued": return String(event.data.position);
        case "delta": return event.data.text;
        default: return event.event;
      }
    }`,
  );
  const compiler = join(root, "node_modules/typescript/bin/tsc");
  const strictly = ["--strict", "--noEmit", "--target", "es2022", "--lib", "es2022,dom,dom.asynciterable"];
  execFileSync(process.execPath, [compiler, ...strictly, "--module", "esnext", "--moduleResolution", "bundler", "page.ts"], {
    cwd: place,
    stdio: "inherit",
  });
});
