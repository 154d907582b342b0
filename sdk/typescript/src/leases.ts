// Renews leases in the background, without relying on equal clocks.

import { NotFound, Refusal, StaleLease } from "./errors.js";
import { type Transport, pathOf } from "./transport.js";
import type { HeartbeatAnswer } from "./wire.js";

const SHORTEST_MS = 100;
/** How long a lease lasts before the client opens a stream for it. Most slots are shorter. */
const FOLLOW_AFTER_MS = 100;

/**
 * The length of a lease: the requested one, or else that by the server's clock, at most a second too short. The header `Date` has
 * whole seconds, so the server's time may be up to one second later.
 */
export function leaseLength(leaseMs: number | null | undefined, leaseUntil: string, headers: Headers): number {
  if (leaseMs != null) return leaseMs;
  const date = headers.get("date");
  if (date === null) return SHORTEST_MS;
  return Math.max(SHORTEST_MS, Date.parse(leaseUntil) - Date.parse(date) - 1000);
}

export interface LeaseHooks {
  /** Called when the lease is lost. */
  lost(why: string): void;
  /** Called with the answer to a heartbeat. */
  heard?(answer: HeartbeatAnswer): void;
  /** Returns further fields of a heartbeat. */
  say?(): object;
}

/** One lease, with a heartbeat each third of its length until it is dropped or lost. */
export class Lease {
  #timer: ReturnType<typeof setTimeout> | undefined;
  #until: number;
  #over = false;
  #signing = false;
  #again = false;
  // Aborts the heartbeat that is being sent.
  #stop: AbortController | undefined;
  #followTimer: ReturnType<typeof setTimeout> | undefined;
  #unfollow: (() => void) | undefined;

  constructor(
    readonly transport: Transport,
    readonly task: string,
    readonly fence: number,
    readonly lengthMs: number,
    readonly hooks: LeaseHooks,
    /** The worker whose events are followed for it. A stream keeps the program alive, so a lease of a polled task has none. */
    worker: string | undefined = undefined,
  ) {
    this.#until = performance.now() + lengthMs;
    this.#in(lengthMs / 3);
    transport.workerEvents.leases.set(task, () => this.wake());
    if (worker === undefined) return;
    const follow = () => (this.#unfollow = transport.workerEvents.follow(worker));
    this.#followTimer = setTimeout(follow, FOLLOW_AFTER_MS);
    (this.#followTimer as { unref?: () => void }).unref?.();
  }

  /** The pause after a failed heartbeat. */
  get nextTryMs(): number {
    return Math.min(1000, this.lengthMs / 10);
  }

  get leftMs(): number {
    return this.#until - performance.now();
  }

  /** Sends a heartbeat now. */
  wake(): void {
    if (this.#signing) this.#again = true;
    else this.#in(0);
  }

  /** Stops the heartbeats. */
  drop(): void {
    this.#over = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#followTimer);
    this.#unfollow?.();
    this.#unfollow = undefined;
    this.transport.workerEvents.leases.delete(this.task);
    this.#stop?.abort();
  }

  #in(millis: number): void {
    clearTimeout(this.#timer);
    if (this.#over) return;
    this.#timer = setTimeout(() => void this.#sign(), Math.max(0, millis));
    // A lease without a running block does not keep a program alive.
    (this.#timer as { unref?: () => void }).unref?.();
  }

  async #sign(): Promise<void> {
    const askedAt = performance.now();
    const body = { fence: this.fence, ...this.hooks.say?.() };
    this.#stop = new AbortController();
    const within = { signal: this.#stop.signal, withinMs: Math.min(30_000, Math.max(50, this.leftMs)) };
    this.#signing = true;
    try {
      const path = pathOf("tasks", this.task, "heartbeat");
      const answer = await this.transport.read<HeartbeatAnswer>(path, { method: "POST", body, ...within });
      this.#signing = false;
      if (this.#over) return;
      this.#until = askedAt + this.lengthMs;
      this.hooks.heard?.(answer);
      this.#in(this.#again ? 0 : this.leftMs - (this.lengthMs * 2) / 3);
      this.#again = false;
    } catch (error) {
      this.#signing = false;
      if (!this.#over) this.#failed(error);
    }
  }

  #failed(error: unknown): void {
    const isFinal = error instanceof Refusal && (!error.retryable || error instanceof StaleLease || error instanceof NotFound);
    if (isFinal || this.leftMs <= 0) {
      this.drop();
      this.hooks.lost(isFinal ? error.message : "no heartbeat arrived before the lease ended");
    } else {
      this.#in(Math.min(this.nextTryMs, this.leftMs));
    }
  }
}
