// When a request is sent again by itself.

import { type LanewayError, Refusal, UnexpectedAnswer, Unreachable } from "./errors.js";

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

export const USUAL: Retry = { limitMs: 30_000, firstMs: 100, mostMs: 5_000, jitter: 0.25 };
/** For what goes on until the caller stops it. */
export const WITHOUT_END: Retry = { ...USUAL, limitMs: Infinity };

/** How long to wait before the next try, given the tries and the time so far; undefined: it is not tried again. Never shorter than
 * what the server said. `chance` is from 0 to 1. */
export function pauseAfter(
  retry: Retry,
  error: LanewayError,
  tries: number,
  spentMs: number,
  chance: number,
): number | undefined {
  let told: number | undefined;
  if (error instanceof Refusal) {
    if (!error.retryable || error.problem.phase === "run") return undefined;
    told = error.retryAfterMs;
  } else if (error instanceof UnexpectedAnswer && error.isOfGateway) {
    told = error.retryAfterMs;
  } else if (!(error instanceof Unreachable)) {
    return undefined;
  }
  const pause = told === undefined ? ownPause(retry, tries, chance) : spread(retry, told, chance);
  return spentMs + pause <= retry.limitMs ? pause : undefined;
}

/** How long to wait after this many tries when the server gave no time. */
export function ownPause(retry: Retry, tries: number, chance: number): number {
  return spread(retry, Math.min(retry.mostMs, retry.firstMs * 2 ** Math.min(tries - 1, 30)), chance);
}

function spread(retry: Retry, pause: number, chance: number): number {
  return pause * (1 + retry.jitter * chance);
}

/** Waits, or throws the signal's reason. `unref`: what comes after it is not worth keeping a program alive. */
export function sleep(millis: number, signal?: AbortSignal, unref?: "unref"): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, millis);
    if (unref) (timer as { unref?: () => void }).unref?.();
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", stop, { once: true });
  });
}
