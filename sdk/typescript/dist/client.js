// The client: the way in to everything.
import { Agent } from "./agents.js";
import { NotFound } from "./errors.js";
import { External } from "./external.js";
import { Lane } from "./lanes.js";
import { Session, sessionLane } from "./sessions.js";
import { Slot } from "./slots.js";
import { Transport, pathOf } from "./transport.js";
const TOOL_LANES = ["control", "query", "execute", "generate"];
/** A Laneway server. */
export class Client {
    transport;
    #external;
    constructor(url, options = {}) {
        this.transport = new Transport(url, options);
        this.#external = new External(this.transport);
    }
    get url() {
        return this.transport.url;
    }
    /** Gives no more signs of life for what was claimed and not completed: it is offered again when its lease is over. */
    close() {
        this.#external.close();
    }
    /** Any route that has no method of its own here, in JSON. */
    request(method, path, request = {}) {
        return this.transport.read(path, { ...request, method });
    }
    // Agents, sessions, lanes
    agent(name) {
        return new Agent(this.transport, name);
    }
    session(key) {
        return new Session(this.transport, key);
    }
    lane(name) {
        return new Lane(this.transport, name);
    }
    agents(options = {}) {
        return this.transport.pages(pathOf("agents"), options);
    }
    sessions(options = {}) {
        return this.transport.pages(pathOf("sessions"), options);
    }
    lanes(options = {}) {
        return this.transport.pages(pathOf("lanes"), options);
    }
    workers(options = {}) {
        return this.transport.pages(pathOf("workers"), options);
    }
    /** How everything stands. */
    status(options = {}) {
        return this.transport.read(pathOf("status"), options);
    }
    /** Takes a slot of each of these lanes: `await using slot = await client.slot(["main"])`. */
    slot(lanes, options = {}) {
        return Slot.take(this.transport, lanes, options);
    }
    async withSlot(lanes, options, block) {
        const [how, run] = typeof options === "function" ? [{}, options] : [options, block];
        return (await this.slot(lanes, how)).guard(run);
    }
    // Tasks
    /** A task, which is not waited for. With an idempotency key asking twice is asking once. */
    submit(kind, payload, options = {}) {
        const { idempotencyKey, signal, traceparent, ...rest } = options;
        const body = { kind, payload: payload ?? null, ...rest };
        const headers = { "idempotency-key": idempotencyKey };
        return this.transport.read(pathOf("tasks"), { method: "POST", body, headers, signal, traceparent });
    }
    /** The tool calls of one model turn: reads side by side, all else in order; results in the order of the calls. */
    batch(session, calls, options = {}) {
        const { group, ...call } = options;
        const body = { session, calls, ...(group === undefined ? {} : { group }) };
        return this.transport.read(pathOf("tasks", "batch"), { ...call, method: "POST", body, waits: true });
    }
    /** A task, live or over. */
    task(task, options = {}) {
        return this.transport.read(pathOf("tasks", task), options);
    }
    tasks(filter = {}, options = {}) {
        return this.transport.pages(pathOf("tasks"), { ...options, query: { ...filter } });
    }
    /** Waits for the end of a task, also across restarts of the server, and resolves to it. */
    async wait(task, options = {}) {
        for (;;) {
            try {
                for await (const _ of this.taskEvents(task, options))
                    ;
            }
            catch (error) {
                // One that ends at this moment may have no stream any more; the task itself has the last word.
                if (!(error instanceof NotFound))
                    throw error;
            }
            const view = await this.task(task, options);
            if (view.ended_at != null)
                return view;
        }
    }
    /** What happens to a task, until `done`; goes on where it was when the connection breaks. */
    taskEvents(task, options = {}) {
        return this.transport.follow(pathOf("tasks", task, "events"), options);
    }
    /** Everything that happens, without end; goes on where it was when the connection breaks. */
    events(filter = {}, options = {}) {
        return this.transport.follow(pathOf("events"), { ...options, query: { ...filter } });
    }
    /** Cancels a task; the answer says what was found. */
    cancel(task, options = {}) {
        return this.transport.read(pathOf("tasks", task), { ...options, method: "DELETE" });
    }
    /** Cancels the waiting tasks that fit everything that is given; resolves to how many. */
    async cancelWaiting(which, options = {}) {
        const request = { ...options, method: "POST", body: which };
        return (await this.transport.read(pathOf("tasks", "cancel"), request)).cancelled;
    }
    /** Why a task waits. */
    explain(task, options = {}) {
        return this.transport.read(pathOf("tasks", task, "explain"), options);
    }
    /** Changes the priority of a waiting task. */
    prioritise(task, priority, options = {}) {
        return this.transport.read(pathOf("tasks", task), { ...options, method: "PATCH", body: { priority } });
    }
    /** How the tasks with one label stand. */
    group(group, options = {}) {
        return this.transport.read(pathOf("groups", group), options);
    }
    // Tasks that are done outside
    /**
     * Who runs the tasks of a lane from now on. One of the four tool lanes (`control`, `query`, `execute`, `generate`) is meant in
     * this session, or else in all of them.
     */
    setLaneHandler(lane, mode = "external", options = {}) {
        const { session, timeoutMs, ...call } = options;
        const isOfSession = session !== undefined || TOOL_LANES.includes(lane);
        const name = isOfSession ? `${session === undefined ? "session:*" : sessionLane(session)}/${lane}` : lane;
        const body = { handler: mode, ...(timeoutMs === undefined ? {} : { timeout_ms: timeoutMs }) };
        return this.transport.read(pathOf("lanes", name), { ...call, method: "PATCH", body });
    }
    /** The tasks that wait for somebody outside, in the order of the line; first those that this client has claimed. */
    pendingExternalTasks(which = {}, options = {}) {
        return this.#external.pending(which, options);
    }
    /**
     * Says how a task went that was done outside. Claims it first, and no other, whoever stands before it in the line. When the
     * server could not be reached to hear of it, the task stays this client's, and saying it again does.
     */
    completeExternalTask(task, outcome = { success: true }, options = {}) {
        return this.#external.complete(task, outcome, options);
    }
    /** What waits and runs, lane by lane: of one session's tool lanes, or of all lanes. */
    async queueStats(session, options = {}) {
        if (session !== undefined)
            return this.session(session).stats(options);
        const status = await this.status(options);
        const lanes = {};
        for await (const lane of this.lanes(options)) {
            lanes[lane.lane] = {
                pending: lane.waiting,
                active: lane.running,
                completed: lane.counters.completed,
                failed: lane.counters.failed,
                max_concurrency: lane.max_concurrency ?? null,
                handler_mode: String(lane.settings.handler ?? "internal"),
            };
        }
        let pending = 0;
        for await (const _ of this.transport.pages(pathOf("external-tasks"), options))
            pending += 1;
        return { total_pending: status.waiting, total_active: status.running, external_pending: pending, lanes };
    }
    /** What all lanes have seen: counters, and percentiles of waits and runs. */
    async queueMetrics(options = {}) {
        const { running, waiting, max_concurrent } = await this.status(options);
        const lanes = {};
        for await (const lane of this.lanes(options))
            lanes[lane.lane] = lane;
        return { running, waiting, maxConcurrent: max_concurrent ?? undefined, lanes };
    }
    /** The tasks that could not be done, the oldest first. */
    async deadLetters(options = {}) {
        const letters = [];
        for await (const letter of this.transport.pages(pathOf("dead-letters"), options))
            letters.push(letter);
        return letters;
    }
    /** Runs a dead letter again as a new task, or all of a lane or kind. */
    redrive(which, options = {}) {
        const request = { ...options, method: "POST" };
        return typeof which === "string"
            ? this.transport.read(pathOf("dead-letters", which, "redrive"), request)
            : this.transport.read(pathOf("dead-letters", "redrive"), { ...request, body: which });
    }
    /** Throws a dead letter away, or all of a lane or kind. */
    discard(which, options = {}) {
        const request = { ...options, method: "DELETE" };
        if (typeof which === "string")
            return this.transport.read(pathOf("dead-letters", which), request);
        const query = { lane: which.lane ?? undefined, kind: which.kind ?? undefined };
        return this.transport.read(pathOf("dead-letters"), { ...request, query });
    }
}
