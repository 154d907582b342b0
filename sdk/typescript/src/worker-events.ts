// Follows the events of workers, which say for which tasks the server wants a heartbeat now.

import { LanewayError } from "./errors.js";
import { WITHOUT_END, ownPause, sleep } from "./retry.js";
import { type Transport, pathOf } from "./transport.js";

/**
 * One stream for each worker that has users. Without it, heartbeats bring the same news, only later. A stream keeps a program alive,
 * so it ends with its last user.
 */
export class WorkerEvents {
  readonly #streams = new Map<string, { stop: AbortController; users: Map<string, () => void> }>();

  constructor(readonly transport: Transport) {}

  /** Calls `wake` when the server wants a heartbeat of this task, until the returned function is called. */
  follow(worker: string, task: string, wake: () => void): () => void {
    let stream = this.#streams.get(worker);
    if (stream === undefined) {
      stream = { stop: new AbortController(), users: new Map() };
      this.#streams.set(worker, stream);
      void this.#read(worker, stream.users, stream.stop.signal);
    }
    const { stop, users } = stream;
    users.set(task, wake);
    return () => {
      users.delete(task);
      if (users.size > 0) return;
      stop.abort();
      if (this.#streams.get(worker)?.users === users) this.#streams.delete(worker);
    };
  }

  async #read(worker: string, users: Map<string, () => void>, signal: AbortSignal): Promise<void> {
    for (let tries = 1; !signal.aborted; tries += 1) {
      try {
        for await (const { event, data } of this.transport.stream(pathOf("workers", worker, "events"), { signal })) {
          tries = 0;
          if (event === "heartbeat_wanted") users.get(data.task_id ?? "")?.();
        }
      } catch (error) {
        if (!signal.aborted && !(error instanceof LanewayError)) throw error;
      }
      await sleep(ownPause(WITHOUT_END, Math.max(tries, 1), Math.random()), signal, "unref").catch(() => undefined);
    }
  }
}
