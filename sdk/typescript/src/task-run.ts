// One attempt at a task, as its handler sees it.

import type { ClaimedTask, HeartbeatAnswer } from "./wire.js";

/** One attempt at a task. */
export class TaskRun<P = unknown> {
  readonly id: string;
  readonly kind: string;
  readonly lane: string;
  readonly session: string | undefined;
  readonly payload: P;
  readonly attempt: number;
  /** The fence, which grows with each attempt. Pass it to systems that must reject an older attempt. */
  readonly fence: number;
  /** The trace of the task. Pass it to calls of the handler. */
  readonly traceparent: string | undefined;
  /** Aborted when the task is cancelled or its lease is lost. */
  readonly signal: AbortSignal;
  /** @internal */ readonly stop = new AbortController();
  /** @internal */ wake: () => void = () => {};
  #progress: { progress: unknown } | undefined;
  // Messages that the handler has not taken yet, and ids of those it has. Heartbeats repeat the ids until an answer comes.
  #offered = new Map<string, string>();
  #taken: string[] = [];
  #named: string[] = [];

  constructor(
    task: ClaimedTask,
    readonly takesSteering: boolean,
  ) {
    this.id = task.id;
    this.kind = task.kind;
    this.lane = task.lane;
    this.session = task.session ?? undefined;
    this.payload = task.payload as P;
    this.attempt = task.attempt;
    this.fence = task.fence;
    this.traceparent = task.traceparent ?? undefined;
    this.signal = this.stop.signal;
  }

  /** Publishes the progress, in JSON. Watchers get the newest of several values in quick succession. */
  progress(value: unknown): void {
    JSON.stringify(value);
    this.#progress = { progress: value };
    this.wake();
  }

  /**
   * The messages to the turn since the last call, for handlers that take steering. Messages that the handler has not taken when it
   * ends wait for the next turn.
   */
  steered(): string[] {
    const said = [...this.#offered.values()];
    this.#taken.push(...this.#offered.keys());
    this.#offered.clear();
    return said;
  }

  /** @internal */
  say(): object {
    this.#named = [...this.#taken];
    const said = { ...this.#progress, ...(this.takesSteering ? { takes_steering: true, steered: this.#named } : {}) };
    this.#progress = undefined;
    return said;
  }

  /** Takes the offered messages. A message that the server offers again is taken once. @internal */
  hear(answer: HeartbeatAnswer): void {
    this.#taken = this.#taken.filter((id) => !this.#named.includes(id));
    for (const { id, text } of answer.steering ?? []) {
      if (!this.#taken.includes(id)) this.#offered.set(id, text);
    }
  }

  /** @internal */
  unnamed(): { steered?: string[] } {
    return this.#taken.length === 0 ? {} : { steered: [...this.#taken] };
  }
}
