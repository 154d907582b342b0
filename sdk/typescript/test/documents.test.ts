// Every TypeScript sample of the documentation runs.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import ts from "typescript";
import { Laneway } from "../src/index.js";
import { CONFIG, WAIT_MAX_MS } from "./server.js";

const root = new URL("../../", import.meta.url);
const guides = new URL("../../docs/guide/coming-from/", root);
const pages = [new URL("../../docs/guide/sdk.md", root), new URL("README.md", root), ...readdirSync(guides).map((page) => new URL(page, guides))];

/** Checks the samples as strictly as the SDK itself, and returns the programs to run. */
function compiled(samples: string[]): string[] {
  const folder = fileURLToPath(new URL("build/documents/", root));
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  // Inside the package, its own name resolves to the shipped files.
  const files = samples.map((sample, number) => {
    writeFileSync(`${folder}${number}.mts`, sample);
    return `${folder}${number}.mts`;
  });
  const { config } = ts.readConfigFile(fileURLToPath(new URL("tsconfig.json", root)), ts.sys.readFile);
  const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, fileURLToPath(root));
  const program = ts.createProgram(files, { ...options, rootDir: folder, outDir: folder, noUnusedLocals: false, noUnusedParameters: false });
  const wrong = ts.getPreEmitDiagnostics(program).map((one) => `${one.file?.fileName}: ${ts.flattenDiagnosticMessageText(one.messageText, " ")}`);
  assert.deepEqual(wrong, []);
  program.emit();
  return files.map((file) => file.replace(/mts$/, "mjs"));
}

test("every sample is strict, runs and prints something", async () => {
  await using server = await Laneway.local({ config: CONFIG });
  const samples = pages.flatMap((page) => [...readFileSync(page, "utf8").matchAll(/^```ts\n(.*?)^```$/gms)]).map(([, sample = ""]) => sample);
  assert.ok(samples.length > 10);
  const runs = compiled(samples).map(async (file, number) => {
    const env = { ...process.env, LANEWAY_URL: server.url };
    const { stdout } = await promisify(execFile)(process.execPath, [file], { env, timeout: WAIT_MAX_MS });
    assert.notEqual(stdout, "", samples[number]);
  });
  await Promise.all(runs);
});
