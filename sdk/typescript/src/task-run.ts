// One attempt at a task, as its handler sees it.

import type { ClaimedTask, HeartbeatAnswer, HeartbeatBody, TurnMessageView } from "./wire.js";

/** What a handler says to watchers. */
type Output = Pick<HeartbeatBody, "progress" | "delta" | "usage">;

/** Output of two moments: the text of both, and the newest of everything else. */
function joined(earlier: Output, later: Output): Output {
  const text = (earlier.delta ?? "") + (later.delta ?? "");
  return { ...earlier, ...later, ...(text === "" ? {} : { delta: text }) };
}

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
  // What the handler says to watchers, and what of it was sent without an answer yet.
  #output: Output = {};
  #sent: Output = {};
  // Messages that the handler has not taken yet, and ids of those it has. Heartbeats repeat the ids until an answer comes.
  #offered = new Map<string, TurnMessageView>();
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
    this.#add({ progress: value });
  }

  /** Publishes more of the text that the attempt produces. Pieces in quick succession are sent together. */
  delta(text: string): void {
    this.#add({ delta: text });
  }

  /** Publishes what the attempt has used so far, such as tokens, in JSON. Watchers get the newest value. */
  usage(value: unknown): void {
    JSON.stringify(value);
    this.#add({ usage: value });
  }

  #add(output: Output): void {
    this.#output = joined(this.#output, output);
    this.wake();
  }

  /**
   * The messages to the turn since the last call, with their ids and senders, for handlers that take steering. Messages that the
   * handler has not taken when it ends wait for the next turn.
   */
  steered(): TurnMessageView[] {
    const said = [...this.#offered.values()];
    this.#taken.push(...this.#offered.keys());
    this.#offered.clear();
    // After the next heartbeat, the server refuses to withdraw them.
    if (said.length > 0) this.wake();
    return said;
  }

  /** @internal */
  say(): object {
    // Output of a heartbeat that got no answer goes out again.
    this.#sent = joined(this.#sent, this.#output);
    this.#output = {};
    this.#named = [...this.#taken];
    return { ...this.#sent, ...(this.takesSteering ? { takes_steering: true, steered: this.#named } : {}) };
  }

  /** @internal */
  get hasOutput(): boolean {
    return Object.keys(this.#output).length + Object.keys(this.#sent).length > 0;
  }

  /** Takes the offered messages. A message that the server offers again is taken once. @internal */
  hear(answer: HeartbeatAnswer): void {
    this.#sent = {};
    this.#taken = this.#taken.filter((id) => !this.#named.includes(id));
    for (const message of answer.steering ?? []) {
      if (!this.#taken.includes(message.id)) this.#offered.set(message.id, message);
    }
  }

  /** @internal */
  unnamed(): { steered?: string[] } {
    return this.#taken.length === 0 ? {} : { steered: [...this.#taken] };
  }
}
