import type { Problem } from "./wire.js";
/** Anything that this package throws. */
export declare class LanewayError extends Error {
    constructor(message: string, options?: ErrorOptions);
}
/** The server could not be reached, or the connection broke. Whether it took the request is not known. */
export declare class Unreachable extends LanewayError {
}
/** Something answered that is not a Laneway server, or not one that this package knows. */
export declare class UnexpectedAnswer extends LanewayError {
    readonly status: number;
    /** The beginning of what it said. */
    readonly body: string;
    /** When to come back, in milliseconds, if whoever answered said so. */
    readonly retryAfterMs: number | undefined;
    constructor(status: number, body: string, retryAfter?: string, options?: ErrorOptions);
    /** Whether somebody answered who stands before the server and could not reach it. */
    get isOfGateway(): boolean;
}
/** The slot or the task is no longer held: its lease lapsed, or it was taken away. */
export declare class LeaseLost extends LanewayError {
}
/** The server did not start. */
export declare class LocalFailed extends LanewayError {
}
/** The task is not there to be claimed: others stand before it, its lanes are full, somebody has it, or it has ended. */
export declare class NotClaimable extends LanewayError {
    readonly taskId: string;
    readonly status: string;
    constructor(taskId: string, status: string);
}
/** Thrown by a worker's handler: it failed, and another attempt would not help. */
export declare class DoNotRetry extends LanewayError {
}
/** The server understood and refused, or what it ran did not succeed. */
export declare class Refusal extends LanewayError {
    /** All that was told. */
    readonly problem: Problem;
    /** The trace that the request belonged to. */
    readonly trace?: string | undefined;
    constructor(
    /** All that was told. */
    problem: Problem, 
    /** The trace that the request belonged to. */
    trace?: string | undefined);
    get code(): string;
    get status(): number;
    /** Whether asking again, unchanged, could help. */
    get retryable(): boolean;
    /** When to come back, in milliseconds; undefined: the server did not say. */
    get retryAfterMs(): number | undefined;
    /** When to come back, in seconds; undefined: the server did not say. */
    get retryAfter(): number | undefined;
    /** The code, or why a task was cancelled. */
    get reason(): string;
    get lane(): string | undefined;
    get taskId(): string | undefined;
}
/** The line is full, or the caller may not wait. */
export declare class AtCapacity extends Refusal {
}
/** By a rate limit of the caller. */
export declare class RateLimited extends Refusal {
}
/** The session has a turn, and its mode is `reject`. */
export declare class SessionBusy extends Refusal {
}
/** An old fence: the attempt lost its lease. */
export declare class StaleLease extends Refusal {
}
/** The same key with another body. */
export declare class IdempotencyConflict extends Refusal {
}
/** It would wait for a slot that is held until it has ended. */
export declare class WouldDeadlock extends Refusal {
}
/** Too many tasks would wait for each other. */
export declare class ChainTooDeep extends Refusal {
}
/** It cannot start in time. */
export declare class DeadlineUnmeetable extends Refusal {
}
/** No new work is taken. */
export declare class Draining extends Refusal {
}
/** The store cannot be reached. */
export declare class StoreUnavailable extends Refusal {
}
/** It waited for longer than it was allowed to. */
export declare class WaitTimeout extends Refusal {
}
/** Its deadline passed while it waited. */
export declare class Expired extends Refusal {
}
/** The run took too long. */
export declare class RunTimedOut extends Refusal {
}
/** The run did not succeed. */
export declare class RunFailed extends Refusal {
}
/** Whoever ran it is gone. */
export declare class Lost extends Refusal {
}
/** It was cancelled; `reason` says why. */
export declare class Cancelled extends Refusal {
}
/** The request makes no sense. */
export declare class Invalid extends Refusal {
}
/** No token, or not one that is known. */
export declare class Unauthorized extends Refusal {
}
/** The token may not do that. */
export declare class Forbidden extends Refusal {
}
/** There is no such thing. */
export declare class NotFound extends Refusal {
}
/** The request is too large. */
export declare class TooLarge extends Refusal {
}
/** The server is at fault. */
export declare class Internal extends Refusal {
}
export declare const BY_CODE: Readonly<Record<string, typeof Refusal>>;
/** The error for a problem document; of a code that is not known, a plain `Refusal`. */
export declare function refusal(problem: Problem, trace?: string): Refusal;
