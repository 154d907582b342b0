// When the client repeats a request by itself.

import { type LanewayError, Refusal, UnexpectedAnswer, Unreachable } from "./errors.js";

/**
 * How long the client repeats a request.
 *
 * It repeats requests that are safe to repeat: GET, PATCH, DELETE, and POST with an idempotency key. It does so after a
 * retryable refusal, and after a broken connection to the server or behind a gateway.
 */
export interface Retry {
  /** No try starts later than this after the first one. With 0 there is no second try. Default 30 000. */
  limitMs: number;
  /** The first pause, if the server gives no time. It doubles each time. Default 100. */
  firstMs: number;
  /** The longest pause, if the server gives no time. Default 5000. */
  mostMs: number;
  /** Each pause is longer by a random part of up to this factor, so that callers do not come back together. Default 0.25. */
  jitter: number;
}

export const USUAL: Retry = { limitMs: 30_000, firstMs: 100, mostMs: 5_000, jitter: 0.25 };
/** For requests that continue until the caller stops them. */
export const WITHOUT_END: Retry = { ...USUAL, limitMs: Infinity };

/**
 * The pause before the next try, given the tries and the time so far, or undefined if there is none. The pause is at least the
 * server's time. `chance` is from 0 to 1.
 */
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

/** The pause after a number of tries, if the server gave no time. */
export function ownPause(retry: Retry, tries: number, chance: number): number {
  return spread(retry, Math.min(retry.mostMs, retry.firstMs * 2 ** Math.min(tries - 1, 30)), chance);
}

function spread(retry: Retry, pause: number, chance: number): number {
  return pause * (1 + retry.jitter * chance);
}

/** Waits, or throws the signal's reason. With `unref`, the wait does not keep the program alive. */
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
