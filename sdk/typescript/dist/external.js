// Tasks that are done outside: pending, claimed, completed.
import { NotClaimable, Refusal } from "./errors.js";
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
        const { fence } = await this.#claim(task, options);
        const body = { fence, ...outcome };
        try {
            const view = await this.transport.read(pathOf("tasks", task, "complete"), { ...options, method: "POST", body });
            this.#forget(task);
            return view;
        }
        catch (error) {
            // Without an answer it stays this client's, so that it can be said again.
            if (error instanceof Refusal)
                this.#forget(task);
            throw error;
        }
    }
    #forget(task) {
        this.#held.get(task)?.lease.drop();
        this.#held.delete(task);
    }
    close() {
        for (const { lease } of this.#held.values())
            lease.drop();
        this.#held.clear();
    }
    /** Claims this task and no other, whoever stands before it. */
    async #claim(task, options) {
        const held = this.#held.get(task);
        if (held)
            return held.task;
        const body = { worker: this.#worker, ids: [task] };
        const answer = await this.transport.send(pathOf("claim"), { ...options, method: "POST", body });
        const [mine] = answer.body.tasks;
        if (!mine)
            throw new NotClaimable(task, (await this.transport.read(pathOf("tasks", task), options)).status);
        const lengthMs = leaseLength(undefined, mine.lease_until, answer.headers);
        const lease = new Lease(this.transport, task, mine.fence, lengthMs, { lost: () => this.#held.delete(task) });
        this.#held.set(task, { task: mine, lease });
        return mine;
    }
}
