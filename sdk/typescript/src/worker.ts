// Workers: claim tasks of external lanes, run them, report.

import type { Client } from "./client.js";
import { DoNotRetry, LanewayError, LeaseLost, NotFound, StaleLease } from "./errors.js";
import { Lease, leaseLength } from "./leases.js";
import { WITHOUT_END, pauseAfter, sleep } from "./retry.js";
import { pathOf } from "./transport.js";
import type { ClaimAnswer, ClaimBody, ClaimedTask, CompleteBody, HeartbeatAnswer } from "./wire.js";

/** How long a claim waits for work; the server takes at most 60 000. */
const CLAIM_WAIT_MS = 20_000;

/** One attempt at a task, as its handler sees it. */
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

  /** Tells whoever watches how far it is, in JSON. Of several in a row the newest is told. */
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

export type Handler<P = unknown> = (task: TaskRun<P>) => unknown;

export interface WorkerOptions {
  /** From which home lanes: names or patterns. Default `external`. */
  lanes?: string[];
  /** How many at once. Default 1. */
  concurrency?: number;
  /** Who claims. Default: a name of its own. */
  name?: string;
  /** For how long without a sign of life. Default: as the lane says. */
  leaseMs?: number;
  /** How long running tasks have after `drain()`; then they are let go, and offered again elsewhere. Default 30 000. */
  graceMs?: number;
  /** Told of what is not as it should be. Default: `console.warn`. */
  log?: (text: string) => void;
}

/** Claims tasks and runs them by handlers, several at a time. */
export class Worker {
  readonly name: string;
  readonly #handlers = new Map<string, { run: Handler<never>; steering: boolean }>();
  readonly #running = new Set<Promise<void>>();
  readonly #draining = new AbortController();
  readonly #over = new AbortController();
  readonly #options: Required<Omit<WorkerOptions, "leaseMs" | "name">> & { leaseMs: number | undefined };

  constructor(
    readonly client: Client,
    { lanes = ["external"], concurrency = 1, name, leaseMs, graceMs = 30_000, log = console.warn }: WorkerOptions = {},
  ) {
    if (!Number.isInteger(concurrency) || concurrency < 1) throw new RangeError("concurrency must be at least 1");
    this.name = name ?? `worker-${crypto.randomUUID()}`;
    this.#options = { lanes, concurrency, leaseMs, graceMs, log };
  }

  /**
   * Says who runs tasks of this kind. What the handler returns is the result; what it throws is the error, and `DoNotRetry` says that
   * another attempt would not help. `steering`: it takes what is said to its turn while it runs.
   */
  handler<P = unknown>(kind: string, run: Handler<P>, { steering = false }: { steering?: boolean } = {}): this {
    this.#handlers.set(kind, { run, steering });
    return this;
  }

  /** Claims nothing more; `run` resolves when what runs has ended, or its grace is over. */
  drain(): void {
    this.#draining.abort();
  }

  /** Claims and runs until it is drained or the signal is aborted. A server that is away for a while is waited for. */
  async run({ signal }: { signal?: AbortSignal } = {}): Promise<void> {
    if (this.#handlers.size === 0) throw new Error("the worker has no handler");
    const drain = () => this.drain();
    signal?.addEventListener("abort", drain, { once: true });
    if (signal?.aborted) drain();
    try {
      await this.#claimUntilDrained();
      await this.#letEnd();
    } finally {
      signal?.removeEventListener("abort", drain);
      this.#over.abort();
    }
  }

  async #claimUntilDrained(): Promise<void> {
    const draining = this.#draining.signal;
    const drained = new Promise<void>((resolve) => {
      draining.addEventListener("abort", () => resolve(), { once: true });
      if (draining.aborted) resolve();
    });
    for (let tries = 0; !draining.aborted; ) {
      const free = this.#options.concurrency - this.#running.size;
      if (free === 0) {
        await Promise.race([drained, ...this.#running]);
        continue;
      }
      try {
        await this.#claim(free, draining);
        tries = 0;
      } catch (error) {
        if (draining.aborted) return;
        if (!(error instanceof LanewayError)) throw error;
        const pause = pauseAfter(WITHOUT_END, error, ++tries, 0, Math.random());
        if (pause === undefined) throw error;
        this.#options.log(`cannot claim, will try again in ${Math.round(pause)} ms: ${error.message}`);
        await sleep(pause, draining).catch(() => undefined);
      }
    }
  }

  async #letEnd(): Promise<void> {
    if (this.#running.size === 0) return;
    const grace = new AbortController();
    await Promise.race([Promise.all(this.#running), sleep(this.#options.graceMs, grace.signal).catch(() => undefined)]);
    grace.abort();
  }

  async #claim(free: number, signal: AbortSignal): Promise<void> {
    const { lanes, leaseMs } = this.#options;
    const body: ClaimBody = {
      worker: this.name,
      lanes,
      kinds: [...this.#handlers.keys()],
      max: free,
      wait_ms: CLAIM_WAIT_MS,
      ...(leaseMs === undefined ? {} : { lease_ms: leaseMs }),
    };
    const request = { method: "POST" as const, body, signal, waits: true };
    const answer = await this.client.transport.send<ClaimAnswer>(pathOf("claim"), request);
    for (const task of answer.body.tasks) {
      const running = this.#runOne(task, leaseLength(leaseMs, task.lease_until, answer.headers));
      const counted = running.finally(() => this.#running.delete(counted));
      this.#running.add(counted);
    }
  }

  async #runOne(task: ClaimedTask, lengthMs: number): Promise<void> {
    const { run, steering } = this.#handlers.get(task.kind)!;
    const mine = new TaskRun<never>(task, steering);
    let isLost = false;
    const lease = new Lease(this.client.transport, task.id, task.fence, lengthMs, {
      lost: (why) => {
        this.#options.log(`task ${task.id} is lost: ${why}`);
        isLost = true;
        mine.stop.abort(new LeaseLost(`the task is lost: ${why}`));
      },
      heard: (answer) => {
        mine.hear(answer);
        if (answer.cancel_requested) mine.stop.abort(new LeaseLost("the task was cancelled"));
      },
      say: () => mine.say(),
    });
    mine.wake = () => lease.wake();
    if (steering) lease.wake();
    const letGo = () => {
      isLost = true;
      lease.drop();
      mine.stop.abort(new LeaseLost("the worker ends"));
    };
    this.#over.signal.addEventListener("abort", letGo, { once: true });
    const outcome = await settled(run, mine);
    if (!isLost) await this.#report(task, lease, { ...outcome, ...mine.unnamed() });
    this.#over.signal.removeEventListener("abort", letGo);
    lease.drop();
  }

  /** Reports as long as the lease lasts: what is not heard by then was not done by us. */
  async #report(task: ClaimedTask, lease: Lease, outcome: Omit<CompleteBody, "fence">): Promise<void> {
    const body: CompleteBody = { fence: task.fence, ...outcome };
    for (let tries = 1; ; tries += 1) {
      try {
        await this.client.transport.read(pathOf("tasks", task.id, "complete"), { method: "POST", body });
        return;
      } catch (error) {
        if (!(error instanceof LanewayError)) throw error;
        // After a try whose answer was lost a refusal may come of our own completion.
        const isRefused = error instanceof StaleLease || error instanceof NotFound;
        const pause = isRefused ? undefined : pauseAfter(WITHOUT_END, error, tries, 0, Math.random());
        if (pause === undefined || lease.leftMs <= 0) {
          if (!isRefused || tries === 1) this.#options.log(`the report on task ${task.id} was not taken: ${error.message}`);
          return;
        }
        await sleep(pause);
      }
    }
  }
}

/** What is reported about a run. It is over when the handler is, also when it was told to stop. */
async function settled(run: Handler<never>, task: TaskRun<never>): Promise<Omit<CompleteBody, "fence">> {
  try {
    const result = (await run(task)) ?? null;
    try {
      JSON.stringify(result);
    } catch (unsayable) {
      return { success: false, error: `the result cannot be said in JSON: ${String(unsayable)}`, retryable: false };
    }
    return { success: true, result };
  } catch (error) {
    const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    if (error instanceof DoNotRetry) return { success: false, error: error.message, retryable: false };
    return { success: false, error: text, retryable: !task.signal.aborted };
  }
}
