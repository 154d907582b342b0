import type { Client } from "./client.js";
import { TaskRun } from "./task-run.js";
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
    /** How long one claim waits for work, 100 to 60 000; so long at most `drain()` waits for the one under way. Default 5000. */
    pollMs?: number;
    /** Told of what is not as it should be. Default: `console.warn`. */
    log?: (text: string) => void;
}
/** Claims tasks and runs them by handlers, several at a time. */
export declare class Worker {
    #private;
    readonly client: Client;
    readonly name: string;
    constructor(client: Client, { lanes, concurrency, name, leaseMs, graceMs, pollMs, log }?: WorkerOptions);
    /**
     * Says who runs tasks of this kind. What the handler returns is the result; what it throws is the error, and `DoNotRetry` says that
     * another attempt would not help. `steering`: it takes what is said to its turn while it runs.
     */
    handler<P = unknown>(kind: string, run: Handler<P>, { steering }?: {
        steering?: boolean;
    }): this;
    /** Claims nothing more; what the claim under way brings is still done. `run` resolves when what runs has ended, or its grace is over. */
    drain(): void;
    /** Claims and runs until it is drained or the signal is aborted. A server that is away for a while is waited for. */
    run({ signal }?: {
        signal?: AbortSignal;
    }): Promise<void>;
}
