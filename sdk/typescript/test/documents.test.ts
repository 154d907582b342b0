// Every TypeScript sample of the documentation runs.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import ts from "typescript";
import { Laneway } from "../src/index.js";
import { CONFIG } from "./server.js";

const root = new URL("../../", import.meta.url);
const pages = ["../../docs/sdk.md", "README.md"];

test("every sample runs and says something", async () => {
  await using server = await Laneway.local({ config: CONFIG });
  const samples = pages.flatMap((page) => [...readFileSync(new URL(page, root), "utf8").matchAll(/^```ts\n(.*?)^```$/gms)]);
  assert.ok(samples.length > 5);
  mkdirSync(new URL("build/documents", root), { recursive: true });
  const options = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext };
  const runs = samples.map(async ([, sample = ""], number) => {
    // Inside the package its own name stands for what is shipped.
    const file = new URL(`build/documents/${number}.mjs`, root);
    writeFileSync(file, ts.transpileModule(sample, { compilerOptions: options }).outputText);
    const env = { ...process.env, LANEWAY_URL: server.url };
    const { stdout } = await promisify(execFile)(process.execPath, [fileURLToPath(file)], { env, timeout: 60_000 });
    assert.notEqual(stdout, "", sample);
  });
  await Promise.all(runs);
});
