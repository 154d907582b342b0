// Slots: any code of the caller's own, guarded by lanes.
import { LanewayError, LeaseLost, Refusal, StaleLease } from "./errors.js";
import { Lease, leaseLength } from "./leases.js";
import { sleep } from "./retry.js";
import { pathOf } from "./transport.js";
// Older engines do not know the symbol that `await using` looks for.
Symbol.asyncDispose ??= Symbol.for("Symbol.asyncDispose");
/**
 * One slot of each of some lanes, held until it is released: `await using slot = await client.slot(["main"])`.
 *
 * The lease is renewed in the background. When it is lost, `signal` is aborted with a `LeaseLost`: pass it on to what runs inside.
 */
export class Slot {
    transport;
    id;
    fence;
    #lease;
    #outer;
    // Made when somebody asks for its signal: most blocks are over before anybody does.
    #stop;
    #stopped;
    #toTell = new Set();
    #lost;
    #released;
    constructor(transport, 
    /** The task that holds the slot. */
    id, 
    /** Grows with each holder: show it to whatever must not listen to an old one. */
    fence, lengthMs, outer) {
        this.transport = transport;
        this.id = id;
        this.fence = fence;
        this.#outer = outer;
        outer?.addEventListener("abort", this.#leave, { once: true });
        if (outer?.aborted)
            this.#leave();
        this.#lease = new Lease(transport, id, fence, lengthMs, {
            lost: (why) => this.#lose(why),
            heard: (answer) => {
                if (answer.cancel_requested)
                    this.#lose("it was told to stop");
            },
        });
    }
    static async take(transport, lanes, options) {
        const { signal, traceparent, ...wanted } = options;
        const body = { lanes, ...wanted };
        const request = { method: "POST", body, signal, traceparent, waits: true };
        const { headers, body: slot } = await transport.send(pathOf("slots"), request);
        return new Slot(transport, slot.id, slot.fence, leaseLength(wanted.lease_ms, slot.lease_until, headers), signal);
    }
    /** Aborted when the lease is lost, and when the signal is with which the slot was asked for. */
    get signal() {
        this.#stop ??= new AbortController();
        if (this.#stopped !== undefined)
            this.#stop.abort(this.#stopped.reason);
        return this.#stop.signal;
    }
    get isLost() {
        return this.#lost !== undefined;
    }
    #leave = () => this.#end(this.#outer?.reason);
    #lose(why) {
        this.#lost ??= new LeaseLost(`the slot is lost: ${why}`);
        this.#end(this.#lost);
    }
    #end(reason) {
        this.#stopped ??= { reason };
        this.#stop?.abort(this.#stopped.reason);
        for (const tell of this.#toTell)
            tell(this.#stopped.reason);
    }
    /** Gives the slot back. Throws `LeaseLost` if it was lost before. Calling it again does nothing. */
    release(error) {
        this.#released ??= this.#giveBack(error);
        return this.#released;
    }
    async [Symbol.asyncDispose]() {
        await this.release();
    }
    async #giveBack(error) {
        this.#lease.drop();
        this.#outer?.removeEventListener("abort", this.#leave);
        const failed = error === undefined ? { success: true } : { success: false, error: nameOf(error) };
        const body = { fence: this.fence, ...failed };
        try {
            if (error === undefined) {
                await this.transport.send(`${pathOf("slots", this.id)}?fence=${this.fence}`, { method: "DELETE", isOnce: true });
            }
            else {
                await this.transport.send(pathOf("tasks", this.id, "complete"), { method: "POST", body, isUnread: true });
            }
        }
        catch (refused) {
            if (refused instanceof StaleLease)
                this.#lose(refused.message);
            else if (!(refused instanceof LanewayError))
                throw refused;
            // Whoever waited for this to be heard goes on; it is said until it is heard.
            else
                void this.#sayAgain(body);
        }
        if (error === undefined && this.#lost !== undefined)
            throw this.#lost;
    }
    /** Says that the slot is free until somebody hears it. Keeps no program alive: one that ends lets its leases end. */
    async #sayAgain(body) {
        const path = pathOf("tasks", this.id, "complete");
        for (;;) {
            await sleep(this.#lease.nextTryMs, undefined, "unref");
            const left = this.#lease.leftMs;
            // Nobody needs to hear it any more: the lease has ended it.
            if (left <= 0)
                return;
            try {
                return await this.transport.read(path, { method: "POST", body, withinMs: Math.max(50, left) });
            }
            catch (error) {
                if (error instanceof Refusal && !error.retryable)
                    return;
            }
        }
    }
    /**
     * Runs a block under the slot and releases it, whatever happens. Rejects as soon as `signal` is aborted: with `LeaseLost`, or with the
     * reason of the caller's own signal.
     */
    async guard(block) {
        let tell = () => { };
        const stopped = new Promise((_, reject) => (tell = reject));
        this.#toTell.add(tell);
        let value;
        try {
            if (this.#stopped !== undefined)
                throw this.#stopped.reason;
            value = await Promise.race([(async () => block(this))(), stopped]);
        }
        catch (error) {
            await this.release(error);
            throw error;
        }
        finally {
            this.#toTell.delete(tell);
        }
        await this.release();
        return value;
    }
}
function nameOf(error) {
    return error instanceof Error ? error.name : "Error";
}
