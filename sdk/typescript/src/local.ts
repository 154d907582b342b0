// A local server, which starts and ends with the program. Node only.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Client } from "./client.js";
import { LocalFailed } from "./errors.js";
import { sleep } from "./retry.js";
import type { ClientOptions } from "./transport.js";

// Ends the server when this program has ended without doing so. Its read fails when this program's end of the pipe is gone.
// It succeeds once the server has ended, because its process id may then belong to another process.
const WATCH = 'read -r _ || kill -TERM "$1"; rm -rf -- "$2"';

export interface LocalOptions {
  /** `"memory"` (the default) or a directory. */
  store?: string;
  /** A configuration file, or its content: `{ lane: { main: { max_concurrency: 3 } } }`. */
  config?: string | object;
  /** The program. Default: the variable `LANEWAY_BINARY`, else `laneway` on the `PATH`. */
  binary?: string;
  /** Default: a free loopback port. */
  listen?: string;
  /** How long it may take to start. Default 30 000. */
  readyWithinMs?: number;
  /** Cancels the start. */
  signal?: AbortSignal;
}

/** A server on a free loopback port: `await using server = await Laneway.local()`. */
export class Local implements AsyncDisposable {
  #closed: Promise<void> | undefined;
  // These are not in the declarations, because programs for browsers have no types of Node.
  /** @internal */ readonly process: ChildProcess;
  /** @internal */ readonly watcher: ChildProcess;

  private constructor(
    /** The server's address. */
    readonly url: string,
    processes: unknown,
    readonly home: string,
  ) {
    [this.process, this.watcher] = processes as [ChildProcess, ChildProcess];
    // A printed server shows its address.
    for (const name of ["process", "watcher"] as const) Object.defineProperty(this, name, { enumerable: false });
  }

  static async start(options: LocalOptions = {}): Promise<Local> {
    const program = options.binary ?? process.env.LANEWAY_BINARY ?? "laneway";
    const home = mkdtempSync(join(tmpdir(), "laneway-"));
    const file = typeof options.config === "string" ? options.config : join(home, "laneway.json");
    if (typeof options.config !== "string") writeFileSync(file, JSON.stringify(options.config ?? {}));
    const place = ["--listen", options.listen ?? "127.0.0.1:0", "--store", options.store ?? "memory"];
    // In its own process session, so that Ctrl-C reaches only this program, which needs the server while it ends.
    const server = spawn(program, ["serve", "--config", file, ...place, "--log", "warn"], {
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    const watcher = server.pid === undefined ? undefined : watch(server, home);
    const said: string[] = [];
    const late = AbortSignal.timeout(options.readyWithinMs ?? 30_000);
    const until = options.signal ? AbortSignal.any([late, options.signal]) : late;
    try {
      const url = await listening(server, said, until);
      await ready(url, server, until);
      return new Local(url, [server, watcher], home);
    } catch (error) {
      server.kill("SIGKILL");
      options.signal?.throwIfAborted();
      rmSync(home, { recursive: true, force: true });
      const why = error instanceof Error && "code" in error ? `: ${error.message}` : "";
      throw new LocalFailed(`${program} did not become ready${why}; its output:\n${said.join("\n")}`, { cause: error });
    }
  }

  get pid(): number {
    return this.process.pid!;
  }

  /** A client of the server. */
  client(options: ClientOptions = {}): Client {
    return new Client(this.url, options);
  }

  /** Stops the server, and kills it after a grace. */
  close(graceMs = 10_000): Promise<void> {
    this.#closed ??= this.#end(graceMs);
    return this.#closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #end(graceMs: number): Promise<void> {
    if (this.process.exitCode === null && this.process.signalCode === null) {
      this.process.ref();
      const exited = once(this.process, "exit");
      this.process.kill("SIGTERM");
      const late = setTimeout(() => this.process.kill("SIGKILL"), graceMs);
      await exited;
      clearTimeout(late);
    }
    rmSync(this.home, { recursive: true, force: true });
  }
}

/** Waits until the server prints its address. Reads further output, so that the server never blocks on a full pipe. */
function listening(server: ChildProcess, said: string[], until: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    until.addEventListener("abort", () => reject(until.reason), { once: true });
    server.once("error", reject);
    // At "exit", the last lines may still be in the pipe.
    server.once("close", () => reject(new Error("it ended")));
    for (const stream of [server.stdout!, server.stderr!]) {
      createInterface({ input: stream }).on("line", (line) => {
        if (said.length < 200) said.push(line);
        const found = /listens on (http:\/\/\S+)/.exec(line);
        if (found) resolve(found[1]!);
      });
    }
  });
}

async function ready(url: string, server: ChildProcess, signal: AbortSignal): Promise<void> {
  for (;;) {
    const answer = await fetch(`${url}/readyz`, { signal }).catch(() => undefined);
    await answer?.body?.cancel();
    if (answer?.ok) break;
    signal.throwIfAborted();
    if (server.exitCode !== null) throw new Error("it ended");
    await sleep(20, signal);
  }
  // The server does not keep the program alive. The watcher ends the server when the program has ended.
  server.unref();
  for (const stream of [server.stdout, server.stderr]) (stream as unknown as { unref(): void }).unref();
}

function watch(server: ChildProcess, home: string): ChildProcess {
  const watcher = spawn("sh", ["-c", WATCH, "laneway-watch", String(server.pid), home], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  watcher.unref();
  (watcher.stdin as unknown as { unref(): void }).unref();
  watcher.stdin!.on("error", () => undefined);
  server.once("exit", () => watcher.stdin!.end("done\n"));
  return watcher;
}
