import { type CallOptions, type Transport } from "./transport.js";
import type { SlotRequest } from "./wire.js";
/** `signal` ends the wait for the slot, and then whatever listens to the slot's own signal. */
export type SlotOptions = Omit<SlotRequest, "lanes"> & CallOptions;
/**
 * One slot of each of some lanes, held until it is released: `await using slot = await client.slot(["main"])`.
 *
 * The lease is renewed in the background. When it is lost, `signal` is aborted with a `LeaseLost`: pass it on to what runs inside.
 */
export declare class Slot implements AsyncDisposable {
    #private;
    readonly transport: Transport;
    /** The task that holds the slot. */
    readonly id: string;
    /** Grows with each holder: show it to whatever must not listen to an old one. */
    readonly fence: number;
    private constructor();
    static take(transport: Transport, lanes: string[], options: SlotOptions): Promise<Slot>;
    /** Aborted when the lease is lost, and when the signal is with which the slot was asked for. */
    get signal(): AbortSignal;
    get isLost(): boolean;
    /** Gives the slot back. Throws `LeaseLost` if it was lost before. Calling it again does nothing. */
    release(error?: unknown): Promise<void>;
    [Symbol.asyncDispose](): Promise<void>;
    /**
     * Runs a block under the slot and releases it, whatever happens. Rejects as soon as `signal` is aborted: with `LeaseLost`, or with the
     * reason of the caller's own signal.
     */
    guard<T>(block: (slot: Slot) => Promise<T> | T): Promise<T>;
}
