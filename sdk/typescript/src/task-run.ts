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
  /** Grows with each attempt: show it to whatever must not listen to an old one. */
  readonly fence: number;
  /** The trace that it belongs to: pass it on to calls that are made for it. */
  readonly traceparent: string | undefined;
  /** Aborted when the task is cancelled or its lease is lost. */
  readonly signal: AbortSignal;
  /** @internal */ readonly stop = new AbortController();
  /** @internal */ wake: () => void = () => {};
  #progress: { progress: unknown } | undefined;
  // What was said and the handler has not heard, and the ids of what it has: those are named until the server has answered.
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

  /** Publishes the progress, in JSON. Of several in a row, watchers get the newest. */
  progress(value: unknown): void {
    JSON.stringify(value);
    this.#progress = { progress: value };
    this.wake();
  }

  /**
   * What was said to the run since this was called last; for handlers that take steering. What this has not returned when the handler
   * is done waits for a turn of its own.
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

  /** What is offered again, because the server does not know yet that it was heard, is heard once. @internal */
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
