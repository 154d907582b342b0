// Slots, which guard the caller's own code with lanes.

import { LanewayError, LeaseLost, Refusal, StaleLease } from "./errors.js";
import { Lease, leaseLength } from "./leases.js";
import { sleep } from "./retry.js";
import { asChild } from "./running.js";
import { type CallOptions, type Transport, pathOf } from "./transport.js";
import type { SlotAnswer, SlotRequest } from "./wire.js";

// Older JavaScript engines do not have the symbol that `await using` needs.
(Symbol as { asyncDispose?: symbol }).asyncDispose ??= Symbol.for("Symbol.asyncDispose");

/** `signal` ends the wait for the slot. Later it also aborts the slot's own signal. */
export type SlotOptions = Omit<SlotRequest, "lanes"> &
  CallOptions & {
    /** The id of the parent, which lends its slots. Default: the task of the worker's handler that asks. */
    parent?: string;
  };

/**
 * A slot in each of some lanes, until it is released: `await using slot = await client.slot(["main"])`.
 *
 * The client renews the lease in the background. When it loses the lease, it aborts `signal` with a `LeaseLost`. Pass the signal to
 * the code inside.
 */
export class Slot implements AsyncDisposable {
  readonly #lease: Lease;
  readonly #outer: AbortSignal | undefined;
  // Created when the block reads its signal; most blocks do not.
  #stop: AbortController | undefined;
  #stopped: { reason: unknown } | undefined;
  readonly #toTell = new Set<(reason: unknown) => void>();
  #lost: LeaseLost | undefined;
  #released: Promise<void> | undefined;

  private constructor(
    readonly transport: Transport,
    /** The id of the slot's task. */
    readonly id: string,
    /** The fence, which grows with each grant. Pass it to systems that must reject an older owner. */
    readonly fence: number,
    lengthMs: number,
    outer: AbortSignal | undefined,
    worker: string,
  ) {
    this.#outer = outer;
    outer?.addEventListener("abort", this.#leave, { once: true });
    if (outer?.aborted) this.#leave();
    this.#lease = new Lease(transport, id, fence, lengthMs, {
      lost: (why) => this.#lose(why),
      heard: (answer) => {
        if (answer.cancel_requested) this.#lose("the server stopped it");
      },
    }, worker);
  }

  static async take(transport: Transport, lanes: string[], options: SlotOptions): Promise<Slot> {
    const { signal, traceparent, parent, ...wanted } = options;
    const body: SlotRequest = { lanes, worker: transport.worker, ...wanted };
    const headers = asChild(transport.addresses, parent);
    const request = { method: "POST" as const, body, headers, signal, traceparent, waits: true };
    const { headers: told, body: slot } = await transport.send<SlotAnswer>(pathOf("slots"), request);
    const lengthMs = leaseLength(wanted.lease_ms, slot.lease_until, told);
    return new Slot(transport, slot.id, slot.fence, lengthMs, signal, body.worker ?? transport.worker);
  }

  /** Aborted when the lease is lost, and when the caller's signal is aborted. */
  get signal(): AbortSignal {
    this.#stop ??= new AbortController();
    if (this.#stopped !== undefined) this.#stop.abort(this.#stopped.reason);
    return this.#stop.signal;
  }

  get isLost(): boolean {
    return this.#lost !== undefined;
  }

  readonly #leave = () => this.#end(this.#outer?.reason);

  #lose(why: string): void {
    this.#lost ??= new LeaseLost(`the slot is lost: ${why}`);
    this.#end(this.#lost);
  }

  #end(reason: unknown): void {
    this.#stopped ??= { reason };
    this.#stop?.abort(this.#stopped.reason);
    for (const tell of this.#toTell) tell(this.#stopped.reason);
  }

  /** Gives the slot back. Throws `LeaseLost` if it was lost before. Calling it again does nothing. */
  release(error?: unknown): Promise<void> {
    this.#released ??= this.#giveBack(error);
    return this.#released;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  async #giveBack(error: unknown): Promise<void> {
    this.#lease.drop();
    this.#outer?.removeEventListener("abort", this.#leave);
    const failed = error === undefined ? { success: true } : { success: false, error: nameOf(error) };
    const body = { fence: this.fence, ...failed };
    try {
      if (error === undefined) {
        await this.transport.send(`${pathOf("slots", this.id)}?fence=${this.fence}`, { method: "DELETE", isOnce: true });
      } else {
        await this.transport.send(pathOf("tasks", this.id, "complete"), { method: "POST", body, isUnread: true });
      }
    } catch (refused) {
      if (refused instanceof StaleLease) this.#lose(refused.message);
      else if (!(refused instanceof LanewayError)) throw refused;
      // The caller continues, and the background repeats the report until it arrives.
      else void this.#sayAgain(body);
    }
    if (error === undefined && this.#lost !== undefined) throw this.#lost;
  }

  /** Reports the slot as free until the report arrives. It does not keep the program alive; after its end the lease lapses. */
  async #sayAgain(body: object): Promise<void> {
    const path = pathOf("tasks", this.id, "complete");
    for (;;) {
      await sleep(this.#lease.nextTryMs, undefined, "unref");
      const left = this.#lease.leftMs;
      // The lease has lapsed, so the report is no longer needed.
      if (left <= 0) return;
      try {
        return await this.transport.read(path, { method: "POST", body, withinMs: Math.max(50, left) });
      } catch (error) {
        if (error instanceof Refusal && !error.retryable) return;
      }
    }
  }

  /**
   * Runs a block under the slot and always releases the slot. Rejects as soon as `signal` is aborted: with `LeaseLost`, or with
   * the reason of the caller's own signal.
   */
  async guard<T>(block: (slot: Slot) => Promise<T> | T): Promise<T> {
    let tell: (reason: unknown) => void = () => {};
    const stopped = new Promise<never>((_, reject) => (tell = reject));
    this.#toTell.add(tell);
    let value: T;
    try {
      if (this.#stopped !== undefined) throw this.#stopped.reason;
      value = await Promise.race([(async () => block(this))(), stopped]);
    } catch (error) {
      await this.release(error);
      throw error;
    } finally {
      this.#toTell.delete(tell);
    }
    await this.release();
    return value;
  }
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : "Error";
}
