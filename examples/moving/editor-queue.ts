// A queue in front of an editor's agent: a limit, priorities by source, and a status line.
//
// The limit counts in all editors that share the store. What the editor asks about its own requests is answered at once,
// from what this process knows.

import { type Client, Laneway, type Local } from "laneway";

const LANE = "editor";

export interface Request {
  /** What the status view shows, also that of `laneway status` and of the dashboard. */
  label: string;
  source?: "user" | "schedule" | "background";
  /** How long the request may wait. What runs is not ended by it. */
  timeoutMs?: number;
  /** Withdraws the request while it waits. What runs is not ended by it. */
  signal?: AbortSignal;
}

export interface Snapshot {
  running: number;
  waiting: number;
  limit: number;
}

export class EditorQueue {
  #snapshot: Snapshot;
  readonly #waiting = new Map<string, { label: string; leave: AbortController }>();
  readonly #listeners = new Set<(snapshot: Snapshot) => void>();

  private constructor(
    readonly server: Local,
    readonly client: Client,
    limit: number,
  ) {
    this.#snapshot = { running: 0, waiting: 0, limit };
  }

  /** Opens the queue. A directory as store keeps the limit for the next start, and shares it with other editors. */
  static async open({ limit = 3, store = "memory" } = {}): Promise<EditorQueue> {
    const server = await Laneway.local({ store, config: { lane: { [LANE]: { max_concurrency: limit } } } });
    const queue = new EditorQueue(server, server.client(), limit);
    const events = await queue.client.events({ lane: LANE });
    void queue.#listen(events);
    return queue;
  }

  async #listen(events: AsyncIterable<{ event: string; data: unknown }>): Promise<void> {
    try {
      for await (const { event, data } of events) {
        if (event !== "changed") continue;
        const { running, waiting, max_concurrent } = data as { running: number; waiting: number; max_concurrent?: number | null };
        this.#snapshot = { running, waiting, limit: max_concurrent ?? Infinity };
        for (const listener of this.#listeners) listener(this.#snapshot);
      }
    } catch {
      // The server has ended, with the editor.
    }
  }

  /** Waits for a slot and runs `work` under it. The slot is free again on every path, also when the editor is killed. */
  async run<T>(request: Request, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { label, source = "user", timeoutMs, signal } = request;
    const [id, leave] = [crypto.randomUUID(), new AbortController()];
    const withdraw = () => leave.abort(signal?.reason);
    signal?.addEventListener("abort", withdraw, { once: true });
    if (signal?.aborted) withdraw();
    this.#waiting.set(id, { label, leave });
    const wait = timeoutMs === undefined ? {} : { wait_ms: timeoutMs };
    // The signal of `slot` also ends what runs later, so this one is not aborted after the wait.
    const slot = await this.client.slot([LANE], { id, label, priority: source, signal: leave.signal, ...wait }).finally(() => {
      this.#waiting.delete(id);
      signal?.removeEventListener("abort", withdraw);
    });
    return slot.guard(({ signal: lost }) => work(lost));
  }

  /** Withdraws one waiting request. Returns whether it still waited. */
  cancel(id: string): boolean {
    this.#waiting.get(id)?.leave.abort(new Error("the request was withdrawn"));
    return this.#waiting.delete(id);
  }

  /** The waiting requests of this editor. */
  waitingRequests(): { id: string; label: string }[] {
    return [...this.#waiting].map(([id, { label }]) => ({ id, label }));
  }

  snapshot(): Snapshot {
    return this.#snapshot;
  }

  statusLine(): string {
    const { running, waiting, limit } = this.#snapshot;
    return `Agent: ${running}/${limit}${waiting > 0 ? ` (${waiting} queued)` : ""}`;
  }

  /** Calls the listener now and at each change. Returns how to stop that. */
  onChange(listener: (snapshot: Snapshot) => void): () => void {
    this.#listeners.add(listener);
    listener(this.#snapshot);
    return () => this.#listeners.delete(listener);
  }

  /** A higher limit starts waiting requests at once, a lower one stops none. An invalid one is refused and changes nothing. */
  async setLimit(limit: number): Promise<void> {
    await this.client.lane(LANE).change({ max_concurrency: limit });
  }

  close(): Promise<void> {
    return this.server.close();
  }
}
