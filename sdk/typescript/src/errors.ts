// Everything that can go wrong: refused (nothing changed, and what to do next), not reached, or lost.

import type { Problem } from "./wire.js";

/** Anything that this package throws. */
export class LanewayError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The server could not be reached, or the connection broke. Whether it took the request is not known. */
export class Unreachable extends LanewayError {}

/** Something answered that is not a Laneway server, or not one that this package knows. */
export class UnexpectedAnswer extends LanewayError {
  /** The beginning of what it said. */
  readonly body: string;
  /** When to come back, in milliseconds, if the answer said so. */
  readonly retryAfterMs: number | undefined;

  constructor(
    readonly status: number,
    body: string,
    retryAfter?: string,
    options?: ErrorOptions,
  ) {
    super(`the answer, with status ${status}, is not one that a Laneway server of this version gives`, options);
    this.body = body.slice(0, 2000);
    this.retryAfterMs = retryAfter !== undefined && /^\d+$/.test(retryAfter) ? Number(retryAfter) * 1000 : undefined;
  }

  /** Whether a proxy answered that could not reach the server. */
  get isOfGateway(): boolean {
    return [502, 503, 504].includes(this.status);
  }
}

/** The slot or the task is no longer held: its lease lapsed, or it was taken away. */
export class LeaseLost extends LanewayError {}

/** The server did not start. */
export class LocalFailed extends LanewayError {}

/** The task is not there to be claimed: others are ahead of it, its lanes are full, a worker has it, or it has ended. */
export class NotClaimable extends LanewayError {
  constructor(
    readonly taskId: string,
    readonly status: string,
  ) {
    super(`task ${taskId} is ${status} and cannot be claimed now; explain() says what holds it up`);
  }
}

/** Thrown by a worker's handler: it failed, and another attempt would not help. */
export class DoNotRetry extends LanewayError {}

/** The server understood and refused, or what it ran did not succeed. */
export class Refusal extends LanewayError {
  constructor(
    /** All that was told. */
    readonly problem: Problem,
    /** The trace that the request belonged to. */
    readonly trace?: string,
  ) {
    super(problem.detail);
  }

  get code(): string {
    return this.problem.code;
  }

  get status(): number {
    return this.problem.status;
  }

  /** Whether asking again, unchanged, could help. */
  get retryable(): boolean {
    return this.problem.retryable;
  }

  /** When to come back, in milliseconds; undefined: the server did not say. */
  get retryAfterMs(): number | undefined {
    const { retry_after_ms: millis, retry_after: seconds } = this.problem;
    return millis ?? (seconds == null ? undefined : seconds * 1000);
  }

  /** When to come back, in seconds; undefined: the server did not say. */
  get retryAfter(): number | undefined {
    return this.retryAfterMs === undefined ? undefined : this.retryAfterMs / 1000;
  }

  /** The code, or why a task was cancelled. */
  get reason(): string {
    return this.problem.reason;
  }

  get lane(): string | undefined {
    return this.problem.lane ?? undefined;
  }

  get taskId(): string | undefined {
    return this.problem.task_id ?? undefined;
  }
}

/** The line is full, or the caller may not wait. */
export class AtCapacity extends Refusal {}
/** By a rate limit of the caller. */
export class RateLimited extends Refusal {}
/** The session has a turn, and its mode is `reject`. */
export class SessionBusy extends Refusal {}
/** An old fence: the attempt lost its lease. */
export class StaleLease extends Refusal {}
/** The same key with another body. */
export class IdempotencyConflict extends Refusal {}
/** It would wait for a slot that is held until it has ended. */
export class WouldDeadlock extends Refusal {}
/** Too many tasks would wait for each other. */
export class ChainTooDeep extends Refusal {}
/** It cannot start in time. */
export class DeadlineUnmeetable extends Refusal {}
/** No new work is taken. */
export class Draining extends Refusal {}
/** The store cannot be reached. */
export class StoreUnavailable extends Refusal {}
/** It waited for longer than it was allowed to. */
export class WaitTimeout extends Refusal {}
/** Its deadline passed while it waited. */
export class Expired extends Refusal {}
/** The run took too long. */
export class RunTimedOut extends Refusal {}
/** The run did not succeed. */
export class RunFailed extends Refusal {}
/** The process that ran it is gone. */
export class Lost extends Refusal {}
/** It was cancelled; `reason` says why. */
export class Cancelled extends Refusal {}
/** The request makes no sense. */
export class Invalid extends Refusal {}
/** No token, or not one that is known. */
export class Unauthorized extends Refusal {}
/** The token may not do that. */
export class Forbidden extends Refusal {}
/** There is no such thing. */
export class NotFound extends Refusal {}
/** The request is too large. */
export class TooLarge extends Refusal {}
/** The server is at fault. */
export class Internal extends Refusal {}

export const BY_CODE: Readonly<Record<string, typeof Refusal>> = {
  AT_CAPACITY: AtCapacity,
  RATE_LIMITED: RateLimited,
  SESSION_BUSY: SessionBusy,
  STALE_LEASE: StaleLease,
  IDEMPOTENCY_CONFLICT: IdempotencyConflict,
  WOULD_DEADLOCK: WouldDeadlock,
  CHAIN_TOO_DEEP: ChainTooDeep,
  DEADLINE_UNMEETABLE: DeadlineUnmeetable,
  DRAINING: Draining,
  STORE_UNAVAILABLE: StoreUnavailable,
  WAIT_TIMEOUT: WaitTimeout,
  EXPIRED: Expired,
  RUN_TIMED_OUT: RunTimedOut,
  RUN_FAILED: RunFailed,
  LOST: Lost,
  CANCELLED: Cancelled,
  INVALID: Invalid,
  UNAUTHORIZED: Unauthorized,
  FORBIDDEN: Forbidden,
  NOT_FOUND: NotFound,
  TOO_LARGE: TooLarge,
  INTERNAL: Internal,
};

/** The error for a problem document; of a code that is not known, a plain `Refusal`. */
export function refusal(problem: Problem, trace?: string): Refusal {
  return new (BY_CODE[problem.code] ?? Refusal)(problem, trace);
}
