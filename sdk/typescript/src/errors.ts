// Errors: rejections, unreachable servers, unexpected answers, and lost leases.

import type { Problem } from "./wire.js";

/** The base of all errors of this package. */
export class LanewayError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** No server could be reached, or the connection broke. */
export class Unreachable extends LanewayError {
  constructor(
    message: string,
    options?: ErrorOptions,
    /** Whether a server may have accepted the request. */
    readonly wasSent = true,
  ) {
    super(message, options);
  }
}

/** The answer is not one of a Laneway server that this package knows. */
export class UnexpectedAnswer extends LanewayError {
  /** The start of the answer. */
  readonly body: string;
  /** When to try again, in milliseconds, if the answer has a time. */
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

  /** Whether the answer comes from a proxy that could not reach the server. */
  get isOfGateway(): boolean {
    return [502, 503, 504].includes(this.status);
  }
}

/** The slot or the task is lost: its lease lapsed, or it was released by force. */
export class LeaseLost extends LanewayError {}

/** The server did not start. */
export class LocalFailed extends LanewayError {}

/** The task cannot be claimed: others are ahead of it, its lanes are full, a worker has it, or it has ended. */
export class NotClaimable extends LanewayError {
  constructor(
    readonly taskId: string,
    readonly status: string,
  ) {
    super(`task ${taskId} is ${status} and cannot be claimed now; explain() says what holds it up`);
  }
}

/** A worker's handler throws it when the attempt failed and a retry would not help. */
export class DoNotRetry extends LanewayError {}

/**
 * A worker's handler throws it when the attempt failed but produced something, such as the output of a command. The task keeps
 * `result` with the error.
 */
export class AttemptFailed extends LanewayError {
  readonly retryable: boolean;

  constructor(
    error: string,
    readonly result?: unknown,
    { retryable = true }: { retryable?: boolean } = {},
  ) {
    super(error);
    this.retryable = retryable;
  }
}

/** The server refused the request, or the task did not succeed. */
export class Refusal extends LanewayError {
  constructor(
    /** The whole problem document. */
    readonly problem: Problem,
    /** The trace of the request. */
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

  /** Whether the same request may succeed later. */
  get retryable(): boolean {
    return this.problem.retryable;
  }

  /** When to try again, in milliseconds, or undefined if the server gave no time. */
  get retryAfterMs(): number | undefined {
    const { retry_after_ms: millis, retry_after: seconds } = this.problem;
    return millis ?? (seconds == null ? undefined : seconds * 1000);
  }

  /** When to try again, in seconds, or undefined if the server gave no time. */
  get retryAfter(): number | undefined {
    return this.retryAfterMs === undefined ? undefined : this.retryAfterMs / 1000;
  }

  /** The code, or the reason why a task was cancelled. */
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

/** The lane is full, or the request may not wait. */
export class AtCapacity extends Refusal {}
/** A rate limit of the caller's token refused the request. */
export class RateLimited extends Refusal {}
/** The session runs a turn, and its mode is `reject`. */
export class SessionBusy extends Refusal {}
/** The fence is old: the attempt has lost its lease. */
export class StaleLease extends Refusal {}
/** An earlier request had the same key and another body. */
export class IdempotencyConflict extends Refusal {}
/** The task would wait for a slot that is not free before the task has ended. */
export class WouldDeadlock extends Refusal {}
/** Too many tasks would wait for each other. */
export class ChainTooDeep extends Refusal {}
/** The task cannot start before its deadline. */
export class DeadlineUnmeetable extends Refusal {}
/** The lane or the server accepts no further tasks. */
export class Draining extends Refusal {}
/** The store cannot be reached. */
export class StoreUnavailable extends Refusal {}
/** The task reached its wait timeout. */
export class WaitTimeout extends Refusal {}
/** The task's deadline passed while it waited. */
export class Expired extends Refusal {}
/** The task reached its timeout. */
export class RunTimedOut extends Refusal {}
/** The task failed. */
export class RunFailed extends Refusal {}
/** The process that ran the task is gone. */
export class Lost extends Refusal {}
/** The task was cancelled; `reason` says why. */
export class Cancelled extends Refusal {}
/** The request is not valid. */
export class Invalid extends Refusal {}
/** The request has no token, or an unknown one. */
export class Unauthorized extends Refusal {}
/** The token does not allow the request. */
export class Forbidden extends Refusal {}
/** The task, session, agent or other object does not exist. */
export class NotFound extends Refusal {}
/** The request is too large. */
export class TooLarge extends Refusal {}
/** The server has a bug. */
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

/** The error for a problem document. An unknown code gives a plain `Refusal`. */
export function refusal(problem: Problem, trace?: string): Refusal {
  return new (BY_CODE[problem.code] ?? Refusal)(problem, trace);
}
