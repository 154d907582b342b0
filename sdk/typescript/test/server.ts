// Real servers for the tests.

import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Laneway, type Local } from "../src/index.js";

/** How long a test waits. An idle machine needs some milliseconds; only a failure reaches it. */
export const WAIT_MAX_MS = 180_000;

const LISTENER = `read -r asked; echo '{"type": "progress"}'; read -r passed; echo '{"type": "result", "result": "heard"}'`;

export const CONFIG = {
  lane: {
    main: { max_concurrency: 4 },
    three: { max_concurrency: 3, max_queued: 1000 },
    one: { max_concurrency: 1, max_queued: 1 },
    external: { max_concurrency: 4, handler: "external" },
    again: { handler: "external", retry: { strategy: "fixed", max_retries: 1, fixed_delay: "10ms" } },
    global: { max_concurrency: 100 },
  },
  agent: {
    upper: { command: ["tr", "a-z", "A-Z"] },
    slow: { command: ["sleep", "60"], max_queued: 3 },
    broken: { command: ["sh", "-c", "echo went wrong >&2; exit 3"] },
    outside: { external: true },
    // It answers once a message has been passed into its turn.
    listener: { protocol: "jsonl", command: ["sh", "-c", LISTENER] },
    // All samples of the documentation use it at once.
    echo: { echo: true, max_queued: 100 },
  },
  handler: { read: { command: ["cat"] }, bash: { command: ["cat"] }, write: { command: ["cat"] } },
  queue: { query_max_concurrency: 4 },
};

export const fresh = (word: string): string => `${word}-${crypto.randomUUID().slice(0, 8)}`;

/** Everything that an iterator yields. */
export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

/** A server with a file store on a fixed port, which a test can kill and restart. */
export class Restarting {
  private constructor(
    readonly store: string,
    readonly listen: string,
    public running: Local,
  ) {}

  static async start(): Promise<Restarting> {
    const store = join(mkdtempSync(join(tmpdir(), "laneway-test-")), "data");
    const probe = createServer().listen(0, "127.0.0.1");
    await once(probe, "listening");
    const { port } = probe.address() as { port: number };
    probe.close();
    await once(probe, "close");
    const listen = `127.0.0.1:${port}`;
    return new Restarting(store, listen, await Laneway.local({ store, listen, config: CONFIG }));
  }

  async kill(): Promise<void> {
    this.running.process.ref();
    const exited = once(this.running.process, "exit");
    this.running.process.kill("SIGKILL");
    await exited;
    await this.running.close();
  }

  async again(): Promise<void> {
    this.running = await Laneway.local({ store: this.store, listen: this.listen, config: CONFIG });
  }
}
