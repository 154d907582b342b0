// Follows the events of workers, which say for which tasks the server wants a heartbeat now.

import { LanewayError } from "./errors.js";
import { WITHOUT_END, ownPause, sleep } from "./retry.js";
import { type Transport, pathOf } from "./transport.js";

/** The leases of a client, and one stream for each worker that has users. Without it, heartbeats bring the same news, only later. */
export class WorkerEvents {
  /** By task: sends a heartbeat now. */
  readonly leases = new Map<string, () => void>();
  readonly #streams = new Map<string, { stop: AbortController; users: number }>();

  constructor(readonly transport: Transport) {}

  /** Follows the events of a worker until the returned function is called. A stream keeps a program alive, so it ends with its last user. */
  follow(worker: string): () => void {
    let stream = this.#streams.get(worker);
    if (stream === undefined) {
      stream = { stop: new AbortController(), users: 0 };
      this.#streams.set(worker, stream);
      void this.#read(worker, stream.stop.signal);
    }
    const mine = stream;
    mine.users += 1;
    return () => {
      mine.users -= 1;
      if (mine.users > 0) return;
      mine.stop.abort();
      this.#streams.delete(worker);
    };
  }

  async #read(worker: string, signal: AbortSignal): Promise<void> {
    for (let tries = 1; !signal.aborted; tries += 1) {
      try {
        for await (const { event, data } of this.transport.stream(pathOf("workers", worker, "events"), { signal })) {
          tries = 0;
          if (event === "heartbeat_wanted") this.leases.get(data.task_id ?? "")?.();
        }
      } catch (error) {
        if (!signal.aborted && !(error instanceof LanewayError)) throw error;
      }
      await sleep(ownPause(WITHOUT_END, Math.max(tries, 1), Math.random()), signal, "unref").catch(() => undefined);
    }
  }
}
