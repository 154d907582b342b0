import type { ClaimedTask } from "./wire.js";
/** One attempt at a task. */
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
