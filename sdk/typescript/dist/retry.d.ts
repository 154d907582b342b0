import { type LanewayError } from "./errors.js";
/**
 * How long to keep trying what may be tried again.
 *
 * Tried again are requests that can be repeated without harm (GET, PATCH, DELETE, and POST with an idempotency key), after a
 * refusal that the server calls retryable and after a broken connection, to the server or behind a gateway.
 */
export interface Retry {
    /** No try begins later than this after the first one. 0: never try again. Default 30 000. */
    limitMs: number;
    /** The first pause where the server does not say how long; it doubles each time. Default 100. */
    firstMs: number;
    /** The longest such pause. Default 5000. */
    mostMs: number;
    /** Each pause is longer by up to this part of itself, so that callers do not come back together. Default 0.25. */
    jitter: number;
}
export declare const USUAL: Retry;
/** For what goes on for as long as somebody wants it to. */
export declare const WITHOUT_END: Retry;
/** How long to wait before the next try, after so many tries in so long; undefined: it is not tried again. Never shorter than
 * what the server said. `chance` is from 0 to 1. */
export declare function pauseAfter(retry: Retry, error: LanewayError, tries: number, spentMs: number, chance: number): number | undefined;
/** How long to wait after so many tries where nobody has said how long. */
export declare function ownPause(retry: Retry, tries: number, chance: number): number;
/** Waits, or throws the signal's reason. `unref`: what comes after it is not worth keeping a program alive. */
export declare function sleep(millis: number, signal?: AbortSignal, unref?: "unref"): Promise<void>;
