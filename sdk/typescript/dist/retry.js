// When a request is sent again by itself.
import { Refusal, UnexpectedAnswer, Unreachable } from "./errors.js";
export const USUAL = { limitMs: 30_000, firstMs: 100, mostMs: 5_000, jitter: 0.25 };
/** For what goes on for as long as somebody wants it to. */
export const WITHOUT_END = { ...USUAL, limitMs: Infinity };
/** How long to wait before the next try, after so many tries in so long; undefined: it is not tried again. Never shorter than
 * what the server said. `chance` is from 0 to 1. */
export function pauseAfter(retry, error, tries, spentMs, chance) {
    let told;
    if (error instanceof Refusal) {
        if (!error.retryable || error.problem.phase === "run")
            return undefined;
        told = error.retryAfterMs;
    }
    else if (error instanceof UnexpectedAnswer && error.isOfGateway) {
        told = error.retryAfterMs;
    }
    else if (!(error instanceof Unreachable)) {
        return undefined;
    }
    const pause = told === undefined ? ownPause(retry, tries, chance) : spread(retry, told, chance);
    return spentMs + pause <= retry.limitMs ? pause : undefined;
}
/** How long to wait after so many tries where nobody has said how long. */
export function ownPause(retry, tries, chance) {
    return spread(retry, Math.min(retry.mostMs, retry.firstMs * 2 ** Math.min(tries - 1, 30)), chance);
}
function spread(retry, pause, chance) {
    return pause * (1 + retry.jitter * chance);
}
/** Waits, or throws the signal's reason. `unref`: what comes after it is not worth keeping a program alive. */
export function sleep(millis, signal, unref) {
    return new Promise((resolve, reject) => {
        if (signal?.aborted)
            return reject(signal.reason);
        const timer = setTimeout(() => {
            signal?.removeEventListener("abort", stop);
            resolve();
        }, millis);
        if (unref)
            timer.unref?.();
        const stop = () => {
            clearTimeout(timer);
            reject(signal?.reason);
        };
        signal?.addEventListener("abort", stop, { once: true });
    });
}
