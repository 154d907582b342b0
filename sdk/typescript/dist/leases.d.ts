import { type Transport } from "./transport.js";
import type { HeartbeatAnswer } from "./wire.js";
/**
 * How long a lease is: as it was asked for, or else by the server's own clock, and rather too short. The header `Date` has whole
 * seconds, so up to one second more may have passed than it says.
 */
export declare function leaseLength(leaseMs: number | null | undefined, leaseUntil: string, headers: Headers): number;
export interface LeaseHooks {
    /** It is lost. */
    lost(why: string): void;
    /** A sign of life was answered. */
    heard?(answer: HeartbeatAnswer): void;
    /** What else a sign of life carries. */
    say?(): object;
}
/** One lease: a sign of life each third of its length, until it is dropped or lost. */
export declare class Lease {
    #private;
    readonly transport: Transport;
    readonly task: string;
    readonly fence: number;
    readonly lengthMs: number;
    readonly hooks: LeaseHooks;
    constructor(transport: Transport, task: string, fence: number, lengthMs: number, hooks: LeaseHooks);
    /** How long to wait after a sign of life that was not heard. */
    get nextTryMs(): number;
    get leftMs(): number;
    /** Gives a sign of life now. */
    wake(): void;
    /** No more signs of life. */
    drop(): void;
}
