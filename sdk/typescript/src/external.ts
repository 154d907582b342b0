// Tasks of external lanes: pending, claimed, completed.

import { NotClaimable, NotFound, Refusal, StaleLease } from "./errors.js";
import { Lease, leaseLength } from "./leases.js";
import { type CallOptions, type Transport, pathOf } from "./transport.js";
import type { ClaimAnswer, ClaimedTask, CompleteBody, ExternalTask, TaskView } from "./wire.js";

/**
 * The report of a failure, in place of a report that the server would refuse for ever; undefined for any other error. So the
 * attempt ends with the reason, instead of with its lease.
 */
export function failureInstead(error: unknown): Omit<CompleteBody, "fence"> | undefined {
  const isFinal = error instanceof Refusal && !error.retryable && error.problem.status < 500;
  if (!isFinal || error instanceof StaleLease || error instanceof NotFound) return undefined;
  return { success: false, error: `its report was refused: ${error.message}`, retryable: false };
}

/** A task that waits for a worker, or a claimed task of this client. */
export class PendingTask {
  readonly id: string;
  readonly session: string | undefined;
  readonly lane: string;
  readonly kind: string;
  readonly payload: unknown;
  readonly timeoutMs: number | undefined;
  readonly attempt: number;
  readonly #until: number | undefined;

  constructor(
    task: ExternalTask | ClaimedTask,
    /** Whether this client has claimed it. */
    readonly claimed: boolean,
  ) {
    this.id = task.id;
    this.session = task.session ?? undefined;
    this.lane = task.lane;
    this.kind = task.kind;
    this.payload = task.payload;
    this.timeoutMs = task.timeout_ms ?? undefined;
    this.attempt = task.attempt;
    this.#until = task.remaining_ms == null ? undefined : performance.now() + task.remaining_ms;
  }

  /** The time that is left now, or undefined for no limit. */
  get remainingMs(): number | undefined {
    return this.#until === undefined ? undefined : Math.max(0, Math.round(this.#until - performance.now()));
  }

  /** Whether its time is over. */
  isTimedOut(): boolean {
    return this.remainingMs === 0;
  }
}

/** The tasks that this client has claimed, and the pending ones. */
export class External {
  readonly #held = new Map<string, { task: ClaimedTask; lease: Lease }>();

  constructor(readonly transport: Transport) {}

  async pending(which: { session?: string; lane?: string }, options: CallOptions): Promise<PendingTask[]> {
    const found = [...this.#held.values()].map(({ task }) => new PendingTask(task, true));
    for await (const task of this.transport.pages<ExternalTask>(pathOf("external-tasks"), options)) {
      found.push(new PendingTask(task, false));
    }
    return found.filter(
      (task) =>
        (which.session === undefined || task.session === which.session) &&
        (which.lane === undefined || task.lane === which.lane),
    );
  }

  async complete(task: string, outcome: Omit<CompleteBody, "fence">, options: CallOptions): Promise<TaskView> {
    const { fence } = await this.#claim(task, options);
    const body: CompleteBody = { fence, ...outcome };
    try {
      const view = await this.#report(task, body, options);
      this.#forget(task);
      return view;
    } catch (error) {
      // Without an answer the client keeps the claim, so that the caller can report again.
      if (error instanceof Refusal) this.#forget(task);
      const failure = failureInstead(error);
      if (failure) await this.#report(task, { fence, ...failure }, options).catch(() => undefined);
      throw error;
    }
  }

  #report(task: string, body: CompleteBody, options: CallOptions): Promise<TaskView> {
    return this.transport.read<TaskView>(pathOf("tasks", task, "complete"), { ...options, method: "POST", body });
  }

  #forget(task: string): void {
    this.#held.get(task)?.lease.drop();
    this.#held.delete(task);
  }

  close(): void {
    for (const { lease } of this.#held.values()) lease.drop();
    this.#held.clear();
  }

  /** Claims exactly this task, even if other tasks are ahead of it. */
  async #claim(task: string, options: CallOptions): Promise<ClaimedTask> {
    const held = this.#held.get(task);
    if (held) return held.task;
    const body = { worker: this.transport.worker, ids: [task] };
    const answer = await this.transport.send<ClaimAnswer>(pathOf("claim"), { ...options, method: "POST", body });
    const [mine] = answer.body.tasks;
    if (!mine) throw new NotClaimable(task, (await this.transport.read<TaskView>(pathOf("tasks", task), options)).status);
    const lengthMs = leaseLength(undefined, mine.lease_until, answer.headers);
    const lease = new Lease(this.transport, task, mine.fence, lengthMs, { lost: () => this.#held.delete(task) });
    this.#held.set(task, { task: mine, lease });
    return mine;
  }
}
