import { type CallOptions, type Transport } from "./transport.js";
import type { ClaimedTask, CompleteBody, ExternalTask, TaskView } from "./wire.js";
/** A task that waits for somebody outside, or that this client has claimed and not completed yet. */
export declare class PendingTask {
    #private;
    /** Whether it is this client's already. */
    readonly claimed: boolean;
    readonly id: string;
    readonly session: string | undefined;
    readonly lane: string;
    readonly kind: string;
    readonly payload: unknown;
    readonly timeoutMs: number | undefined;
    readonly attempt: number;
    constructor(task: ExternalTask | ClaimedTask, 
    /** Whether it is this client's already. */
    claimed: boolean);
    /** How much time is left now; undefined: as much as one likes. */
    get remainingMs(): number | undefined;
    /** Whether its time is over. */
    isTimedOut(): boolean;
}
/** What this client has claimed, and what else waits. */
export declare class External {
    #private;
    readonly transport: Transport;
    constructor(transport: Transport);
    pending(which: {
        session?: string;
        lane?: string;
    }, options: CallOptions): Promise<PendingTask[]>;
    complete(task: string, outcome: Omit<CompleteBody, "fence">, options: CallOptions): Promise<TaskView>;
    close(): void;
}
