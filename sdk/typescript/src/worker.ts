// Workers: claim tasks of external lanes, run them, report.

import type { Client } from "./client.js";
import { AttemptFailed, DoNotRetry, LanewayError, LeaseLost, NotFound, StaleLease } from "./errors.js";
import { failureInstead } from "./external.js";
import { Lease, leaseLength } from "./leases.js";
import { WITHOUT_END, ownPause, pauseAfter, sleep } from "./retry.js";
import { runningAs } from "./running.js";
import { TaskRun } from "./task-run.js";
import { type Answer, pathOf } from "./transport.js";
import type { ClaimAnswer, ClaimBody, ClaimedTask, CompleteBody, ExternalTask } from "./wire.js";

/** How much longer than its wait the answer of a claim may take, while the worker runs and while it drains. */
const [ANSWER_MS, LAST_ANSWER_MS] = [30_000, 2000];

/** How long the worker waits between two looks for tasks without a handler. */
const LOOK_EVERY_MS = 60_000;

/** The kind of the handler that runs tasks of all other kinds. */
const ANY_KIND = "*";
/** How long a report waits for output that goes before it. Output is not stored, so its loss does not matter. */
const LAST_OUTPUT_MS = 2000;

export type Handler<P = unknown> = (task: TaskRun<P>) => unknown;

export interface WorkerOptions {
  /** The home lanes to claim from: names or patterns. Default `external`. */
  lanes?: string[];
  /** How many attempts run at once. Default 1. */
  concurrency?: number;
  /** The worker's name. Default: a unique name. */
  name?: string;
  /** The lease. Default: the lane's setting. */
  leaseMs?: number;
  /** How long attempts may continue after `drain()`. Then other workers get their tasks. Default 30 000. */
  graceMs?: number;
  /** How long a claim waits for tasks, 100 to 60 000. `drain()` waits at most this long for an open claim. Default 5000. */
  pollMs?: number;
  /** Gets warnings. Default: `console.warn`. */
  log?: (text: string) => void;
}

/** Claims tasks and runs them with handlers, several at once. */
export class Worker {
  readonly name: string;
  readonly #handlers = new Map<string, { run: Handler<never>; steering: boolean }>();
  readonly #running = new Set<Promise<void>>();
  readonly #draining = new AbortController();
  readonly #over = new AbortController();
  // Node warns of many listeners to one signal.
  readonly #letGo = new Set<() => void>();
  readonly #warned = new Set<string>();
  #lookAgain = 0;
  readonly #options: Required<Omit<WorkerOptions, "leaseMs" | "name">> & { leaseMs: number | undefined };

  constructor(
    readonly client: Client,
    { lanes = ["external"], concurrency = 1, name, leaseMs, graceMs = 30_000, pollMs = 5000, log = console.warn }: WorkerOptions = {},
  ) {
    if (!Number.isInteger(concurrency) || concurrency < 1) throw new RangeError("concurrency must be at least 1");
    if (!(pollMs >= 100 && pollMs <= 60_000)) throw new RangeError("pollMs must be from 100 to 60 000");
    this.name = name ?? `worker-${crypto.randomUUID()}`;
    this.#options = { lanes, concurrency, leaseMs, graceMs, pollMs, log };
    this.#over.signal.addEventListener("abort", () => this.#letGo.forEach((letGo) => letGo()), { once: true });
  }

  /**
   * Registers the handler of a kind; `*` stands for all other kinds. Its return value is the result, and its exception is the
   * error. `DoNotRetry` prevents a retry. With `steering`, the handler takes messages to its turn while it runs.
   */
  handler<P = unknown>(kind: string, run: Handler<P>, { steering = false }: { steering?: boolean } = {}): this {
    this.#handlers.set(kind, { run, steering });
    return this;
  }

  /**
   * Claims no further tasks, but still runs those of an open claim. `run` resolves when the attempts have ended or their grace is
   * over.
   */
  drain(): void {
    this.#draining.abort();
  }

  /** Claims and runs tasks until it is drained or the signal is aborted. If the server is away, it waits and tries again. */
  async run({ signal }: { signal?: AbortSignal } = {}): Promise<void> {
    if (this.#handlers.size === 0) throw new Error("the worker has no handler");
    const drain = () => this.drain();
    signal?.addEventListener("abort", drain, { once: true });
    if (signal?.aborted) drain();
    // The stream is open before the first claim, and stays open between tasks.
    const unfollow = this.client.transport.workerEvents.follow(this.name);
    try {
      await this.#claimUntilDrained();
      await this.#letEnd();
    } finally {
      signal?.removeEventListener("abort", drain);
      unfollow();
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
      const asked = performance.now();
      let pause: number | undefined;
      try {
        const { headers, body } = await this.#claim(free);
        this.#start(body.tasks, headers);
        if (body.tasks.length === 0) await this.#lookForStrangers();
        // A draining server answers at once, so pause before the next claim.
        const isWork = body.tasks.length > 0 || performance.now() - asked >= this.#options.pollMs / 2;
        tries = isWork ? 0 : tries + 1;
        if (!isWork) pause = ownPause(WITHOUT_END, tries, Math.random());
      } catch (error) {
        if (draining.aborted) return;
        if (!(error instanceof LanewayError)) throw error;
        pause = pauseAfter(WITHOUT_END, error, ++tries, 0, Math.random());
        if (pause === undefined) throw error;
        this.#options.log(`cannot claim, will try again in ${Math.round(pause)} ms: ${error.message}`);
      }
      if (pause !== undefined) await sleep(pause, draining).catch(() => undefined);
    }
  }

  async #letEnd(): Promise<void> {
    if (this.#running.size === 0) return;
    const grace = new AbortController();
    await Promise.race([Promise.all(this.#running), sleep(this.#options.graceMs, grace.signal).catch(() => undefined)]);
    grace.abort();
  }

  /**
   * Claims tasks. The worker reads the answer even while it drains; otherwise no worker would run the tasks until their leases
   * lapse.
   */
  async #claim(free: number): Promise<Answer<ClaimAnswer>> {
    const { lanes, leaseMs, pollMs } = this.#options;
    const body: ClaimBody = {
      worker: this.name,
      lanes,
      // None means all.
      kinds: this.#handlers.has(ANY_KIND) ? [] : [...this.#handlers.keys()],
      max: free,
      wait_ms: Math.round(pollMs),
      ...(leaseMs === undefined ? {} : { lease_ms: leaseMs }),
    };
    const late = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const hurry = () => (timer = setTimeout(() => late.abort(), pollMs + LAST_ANSWER_MS));
    const draining = this.#draining.signal;
    draining.addEventListener("abort", hurry, { once: true });
    try {
      const request = { method: "POST" as const, body, signal: late.signal, withinMs: pollMs + ANSWER_MS };
      return await this.client.transport.send(pathOf("claim"), request);
    } finally {
      draining.removeEventListener("abort", hurry);
      clearTimeout(timer);
    }
  }

  /** Warns of waiting tasks in the worker's lanes that it has no handler for, once for each kind. */
  async #lookForStrangers(): Promise<void> {
    if (this.#handlers.has(ANY_KIND) || performance.now() < this.#lookAgain) return;
    this.#lookAgain = performance.now() + LOOK_EVERY_MS;
    const strange = new Set<string>();
    try {
      const { items } = await this.client.transport.read<{ items: ExternalTask[] }>(pathOf("external-tasks"), { method: "GET" });
      for (const { kind, lane } of items) {
        if (!this.#handlers.has(kind) && !this.#warned.has(kind) && this.#isMine(lane)) strange.add(kind);
      }
    } catch (error) {
      // A token of a worker may not be allowed to look.
      if (!(error instanceof LanewayError)) throw error;
    }
    strange.forEach((kind) => this.#warned.add(kind));
    if (strange.size > 0) this.#options.log(`tasks wait in its lanes whose kinds it has no handler for: ${[...strange].sort().join(", ")}`);
  }

  #isMine(lane: string): boolean {
    const pieces = (pattern: string) => pattern.split("*").map((piece) => piece.replace(/[\\^$.|?+()[\]{}]/g, "\\$&"));
    return this.#options.lanes.some((pattern) => new RegExp(`^${pieces(pattern).join("[^/]*")}$`).test(lane));
  }

  #start(tasks: ClaimedTask[], headers: Headers): void {
    for (const task of tasks) {
      const running = this.#runOne(task, leaseLength(this.#options.leaseMs, task.lease_until, headers));
      const counted = running.finally(() => this.#running.delete(counted));
      this.#running.add(counted);
    }
  }

  async #runOne(task: ClaimedTask, lengthMs: number): Promise<void> {
    const { run, steering } = (this.#handlers.get(task.kind) ?? this.#handlers.get(ANY_KIND))!;
    const mine = new TaskRun<never>(task, steering);
    let [isLost, hasEnded] = [false, false];
    let flushed = () => {};
    const lease = new Lease(this.client.transport, task.id, task.fence, lengthMs, {
      lost: (why) => {
        flushed();
        // The server knows the end of the task already, or refuses the report.
        if (hasEnded) return;
        this.#options.log(`task ${task.id} is lost: ${why}`);
        isLost = true;
        mine.stop.abort(new LeaseLost(`the task is lost: ${why}`));
      },
      heard: (answer) => {
        mine.hear(answer);
        if (!mine.hasOutput) flushed();
        if (answer.cancel_requested) mine.stop.abort(new LeaseLost("the task was cancelled"));
      },
      say: () => mine.say(),
    }, this.name);
    mine.wake = () => lease.wake();
    if (steering) lease.wake();
    const letGo = () => {
      isLost = true;
      lease.drop();
      mine.stop.abort(new LeaseLost("the worker ends"));
    };
    this.#letGo.add(letGo);
    const outcome = await runningAs({ url: this.client.url, task: task.id }, () => settled(run, mine));
    hasEnded = true;
    if (!isLost && mine.hasOutput) {
      // Watchers get the output that is left before the end.
      const late = new AbortController();
      const sent = new Promise<void>((resolve) => (flushed = resolve));
      lease.wake();
      await Promise.race([sent, sleep(LAST_OUTPUT_MS, late.signal).catch(() => undefined)]);
      late.abort();
    }
    if (!isLost) await this.#report(task, lease, { ...outcome, ...mine.unnamed() });
    this.#letGo.delete(letGo);
    lease.drop();
  }

  /** Repeats the report until it arrives or the lease ends. After the lease, another attempt counts. */
  async #report(task: ClaimedTask, lease: Lease, outcome: Omit<CompleteBody, "fence">): Promise<void> {
    let body: CompleteBody = { fence: task.fence, ...outcome };
    for (let tries = 1; ; tries += 1) {
      try {
        await this.client.transport.read(pathOf("tasks", task.id, "complete"), { method: "POST", body });
        return;
      } catch (error) {
        if (!(error instanceof LanewayError)) throw error;
        const failure = failureInstead(error);
        if (failure && body.result !== undefined) {
          body = { fence: task.fence, ...failure };
          continue;
        }
        // If the answer to an earlier try was lost, the server may already have this report.
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

/** The report on an attempt. An attempt ends with its handler, also after a stop. */
async function settled(run: Handler<never>, task: TaskRun<never>): Promise<Omit<CompleteBody, "fence">> {
  try {
    const result = (await run(task)) ?? null;
    return unsayable(result) ?? { success: true, result };
  } catch (error) {
    const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    if (error instanceof AttemptFailed) {
      const failed = { success: false, error: error.message, retryable: error.retryable && !task.signal.aborted };
      return error.result == null ? failed : (unsayable(error.result) ?? { ...failed, result: error.result });
    }
    if (error instanceof DoNotRetry) return { success: false, error: error.message, retryable: false };
    return { success: false, error: text, retryable: !task.signal.aborted };
  }
}

/** The report on a result that cannot be sent, if it cannot. */
function unsayable(result: unknown): Omit<CompleteBody, "fence"> | undefined {
  try {
    JSON.stringify(result);
    return undefined;
  } catch (error) {
    return { success: false, error: `the result cannot be said in JSON: ${String(error)}`, retryable: false };
  }
}
