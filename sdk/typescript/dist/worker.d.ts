import type { Client } from "./client.js";
import type { ClaimedTask } from "./wire.js";
/** One attempt at a task, as its handler sees it. */
export declare class TaskRun<P = unknown> {
    #private;
    readonly takesSteering: boolean;
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
    constructor(task: ClaimedTask, takesSteering: boolean);
    /** Tells whoever watches how far it is, in JSON. Of several in a row the newest is told. */
    progress(value: unknown): void;
    /**
     * What was said to the run since this was called last; for handlers that take steering. What this has not returned when the handler
     * is done waits for a turn of its own.
     */
    steered(): string[];
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
export declare class Worker {
    #private;
    readonly client: Client;
    readonly name: string;
    constructor(client: Client, { lanes, concurrency, name, leaseMs, graceMs, log }?: WorkerOptions);
    /**
     * Says who runs tasks of this kind. What the handler returns is the result; what it throws is the error, and `DoNotRetry` says that
     * another attempt would not help. `steering`: it takes what is said to its turn while it runs.
     */
    handler<P = unknown>(kind: string, run: Handler<P>, { steering }?: {
        steering?: boolean;
    }): this;
    /** Claims nothing more; `run` resolves when what runs has ended, or its grace is over. */
    drain(): void;
    /** Claims and runs until it is drained or the signal is aborted. A server that is away for a while is waited for. */
    run({ signal }?: {
        signal?: AbortSignal;
    }): Promise<void>;
}
