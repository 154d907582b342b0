// One attempt at a task, as its handler sees it.
/** One attempt at a task. */
export class TaskRun {
    takesSteering;
    id;
    kind;
    lane;
    session;
    payload;
    attempt;
    /** Grows with each attempt: show it to whatever must not listen to an old one. */
    fence;
    /** The trace that it belongs to: pass it on to calls that are made for it. */
    traceparent;
    /** Aborted when the task is cancelled or its lease is lost. */
    signal;
    /** @internal */ stop = new AbortController();
    /** @internal */ wake = () => { };
    #progress;
    // What was said and the handler has not heard, and the ids of what it has: those are named until the server has answered.
    #offered = new Map();
    #taken = [];
    #named = [];
    constructor(task, takesSteering) {
        this.takesSteering = takesSteering;
        this.id = task.id;
        this.kind = task.kind;
        this.lane = task.lane;
        this.session = task.session ?? undefined;
        this.payload = task.payload;
        this.attempt = task.attempt;
        this.fence = task.fence;
        this.traceparent = task.traceparent ?? undefined;
        this.signal = this.stop.signal;
    }
    /** Tells whoever watches how far it is, in JSON. Of several in a row the newest is told. */
    progress(value) {
        JSON.stringify(value);
        this.#progress = { progress: value };
        this.wake();
    }
    /**
     * What was said to the run since this was called last; for handlers that take steering. What this has not returned when the handler
     * is done waits for a turn of its own.
     */
    steered() {
        const said = [...this.#offered.values()];
        this.#taken.push(...this.#offered.keys());
        this.#offered.clear();
        return said;
    }
    /** @internal */
    say() {
        this.#named = [...this.#taken];
        const said = { ...this.#progress, ...(this.takesSteering ? { takes_steering: true, steered: this.#named } : {}) };
        this.#progress = undefined;
        return said;
    }
    /** What is offered again, because the server does not know yet that it was heard, is heard once. @internal */
    hear(answer) {
        this.#taken = this.#taken.filter((id) => !this.#named.includes(id));
        for (const { id, text } of answer.steering ?? []) {
            if (!this.#taken.includes(id))
                this.#offered.set(id, text);
        }
    }
    /** @internal */
    unnamed() {
        return this.#taken.length === 0 ? {} : { steered: [...this.#taken] };
    }
}
