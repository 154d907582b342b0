// Tasks that are done outside: pending, claimed by the way, completed.
import { NotClaimable } from "./errors.js";
import { Lease, leaseLength } from "./leases.js";
import { pathOf } from "./transport.js";
/** A task that waits for somebody outside, or that this client has claimed and not completed yet. */
export class PendingTask {
    claimed;
    id;
    session;
    lane;
    kind;
    payload;
    timeoutMs;
    attempt;
    #until;
    constructor(task, 
    /** Whether it is this client's already. */
    claimed) {
        this.claimed = claimed;
        this.id = task.id;
        this.session = task.session ?? undefined;
        this.lane = task.lane;
        this.kind = task.kind;
        this.payload = task.payload;
        this.timeoutMs = task.timeout_ms ?? undefined;
        this.attempt = task.attempt;
        this.#until = task.remaining_ms == null ? undefined : performance.now() + task.remaining_ms;
    }
    /** How much time is left now; undefined: as much as one likes. */
    get remainingMs() {
        return this.#until === undefined ? undefined : Math.max(0, Math.round(this.#until - performance.now()));
    }
    /** Whether its time is over. */
    isTimedOut() {
        return this.remainingMs === 0;
    }
}
/** What this client has claimed, and what else waits. */
export class External {
    transport;
    #held = new Map();
    #worker = `client-${crypto.randomUUID()}`;
    #claiming = Promise.resolve();
    constructor(transport) {
        this.transport = transport;
    }
    async pending(which, options) {
        const found = [...this.#held.values()].map(({ task }) => new PendingTask(task, true));
        for await (const task of this.transport.pages(pathOf("external-tasks"), options)) {
            found.push(new PendingTask(task, false));
        }
        return found.filter((task) => (which.session === undefined || task.session === which.session) &&
            (which.lane === undefined || task.lane === which.lane));
    }
    async complete(task, outcome, options) {
        // One claim at a time, so that none is made for what the one before brings along.
        const claim = this.#claiming.then(() => this.#claim(task, options));
        this.#claiming = claim.catch(() => undefined);
        const { fence } = await claim;
        try {
            const body = { fence, ...outcome };
            return await this.transport.read(pathOf("tasks", task, "complete"), { ...options, method: "POST", body });
        }
        finally {
            this.#held.get(task)?.lease.drop();
            this.#held.delete(task);
        }
    }
    close() {
        for (const { lease } of this.#held.values())
            lease.drop();
        this.#held.clear();
    }
    /** Claims this task. Those that stand before it in the line come along and are kept, alive, until their turn. */
    async #claim(task, options) {
        const held = this.#held.get(task);
        if (held)
            return held.task;
        const view = await this.transport.read(pathOf("tasks", task), options);
        if (view.status !== "queued" && view.status !== "retrying")
            throw new NotClaimable(task, view.status);
        const body = { worker: this.#worker, lanes: view.lanes.slice(0, 1), kinds: [view.kind] };
        for (;;) {
            const response = await this.transport.send(pathOf("claim"), { ...options, method: "POST", body });
            const { tasks } = (await response.json());
            if (tasks.length === 0)
                throw new NotClaimable(task, view.status);
            for (const one of tasks) {
                const lengthMs = leaseLength(undefined, one.lease_until, response.headers);
                const lease = new Lease(this.transport, one.id, one.fence, lengthMs, { lost: () => this.#held.delete(one.id) });
                this.#held.set(one.id, { task: one, lease });
            }
            const mine = this.#held.get(task);
            if (mine)
                return mine.task;
        }
    }
}
