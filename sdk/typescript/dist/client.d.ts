import { Agent } from "./agents.js";
import type { LanewayEvent } from "./events.js";
import { type PendingTask } from "./external.js";
import { Lane } from "./lanes.js";
import { Session } from "./sessions.js";
import { Slot, type SlotOptions } from "./slots.js";
import { type CallOptions, type ClientOptions, type Request, Transport } from "./transport.js";
import type { AcceptedTask, AgentView, BatchAnswer, BatchCall, CancelAnswer, CancelManyRequest, DeadLetterView, ExplainView, GroupView, LaneNumbers, LettersSelector, PriorityRequest, RedriveAnswer, SessionStats, SessionSummary, StatusView, TaskRequest, TaskView, WorkerView } from "./wire.js";
/** What all lanes have seen. */
export interface QueueMetrics {
    running: number;
    waiting: number;
    maxConcurrent: number | undefined;
    lanes: Record<string, LaneNumbers>;
}
export interface TasksFilter {
    status?: string;
    lane?: string;
    session?: string;
    kind?: string;
    group?: string;
}
/** A Laneway server. */
export declare class Client {
    #private;
    readonly transport: Transport;
    constructor(url: string, options?: ClientOptions);
    get url(): string;
    /** Gives no more signs of life for what was claimed and not completed: it is offered again when its lease is over. */
    close(): void;
    /** Any route that has no method of its own here, in JSON. */
    request<T = unknown>(method: NonNullable<Request["method"]>, path: string, request?: Omit<Request, "method">): Promise<T>;
    agent(name: string): Agent;
    session(key: string): Session;
    lane(name: string): Lane;
    agents(options?: CallOptions): AsyncGenerator<AgentView, void, void>;
    sessions(options?: CallOptions): AsyncGenerator<SessionSummary, void, void>;
    lanes(options?: CallOptions): AsyncGenerator<LaneNumbers, void, void>;
    workers(options?: CallOptions): AsyncGenerator<WorkerView, void, void>;
    /** How everything stands. */
    status(options?: CallOptions): Promise<StatusView>;
    /** Takes a slot of each of these lanes: `await using slot = await client.slot(["main"])`. */
    slot(lanes: string[], options?: SlotOptions): Promise<Slot>;
    /** Runs a block under a slot of each of these lanes. Rejects with `LeaseLost` as soon as the lease is lost. */
    withSlot<T>(lanes: string[], block: (slot: Slot) => Promise<T> | T): Promise<T>;
    withSlot<T>(lanes: string[], options: SlotOptions, block: (slot: Slot) => Promise<T> | T): Promise<T>;
    /** A task, which is not waited for. With an idempotency key asking twice is asking once. */
    submit(kind: string, payload?: unknown, options?: Omit<TaskRequest, "kind" | "payload"> & CallOptions & {
        idempotencyKey?: string;
    }): Promise<AcceptedTask>;
    /** The tool calls of one model turn: reads side by side, all else in order; results in the order of the calls. */
    batch(session: string, calls: BatchCall[], options?: CallOptions & {
        group?: string;
    }): Promise<BatchAnswer>;
    /** A task, live or over. */
    task(task: string, options?: CallOptions): Promise<TaskView>;
    tasks(filter?: TasksFilter, options?: CallOptions): AsyncGenerator<TaskView, void, void>;
    /** Waits for the end of a task, also across restarts of the server, and resolves to it. */
    wait(task: string, options?: CallOptions): Promise<TaskView>;
    /** What happens to a task, until `done`; goes on where it was when the connection breaks. */
    taskEvents(task: string, options?: CallOptions & {
        after?: string;
    }): AsyncGenerator<LanewayEvent, void, void>;
    /** Everything that happens, without end; goes on where it was when the connection breaks. */
    events(filter?: {
        lane?: string;
        session?: string;
        task?: string;
    }, options?: CallOptions & {
        after?: string;
    }): AsyncGenerator<LanewayEvent, void, void>;
    /** Cancels a task; the answer says what was found. */
    cancel(task: string, options?: CallOptions): Promise<CancelAnswer>;
    /** Cancels the waiting tasks that fit everything that is given; resolves to how many. */
    cancelWaiting(which: CancelManyRequest, options?: CallOptions): Promise<number>;
    /** Why a task waits. */
    explain(task: string, options?: CallOptions): Promise<ExplainView>;
    /** Changes the priority of a waiting task. */
    prioritise(task: string, priority: PriorityRequest, options?: CallOptions): Promise<TaskView>;
    /** How the tasks with one label stand. */
    group(group: string, options?: CallOptions): Promise<GroupView>;
    /**
     * Who runs the tasks of a lane from now on. One of the four tool lanes (`control`, `query`, `execute`, `generate`) is meant in
     * this session, or else in all of them.
     */
    setLaneHandler(lane: string, mode?: "internal" | "external" | "hybrid", options?: CallOptions & {
        session?: string;
        timeoutMs?: number;
    }): Promise<LaneNumbers>;
    /** The tasks that wait for somebody outside, in the order of the line; first those that this client has claimed. */
    pendingExternalTasks(which?: {
        session?: string;
        lane?: string;
    }, options?: CallOptions): Promise<PendingTask[]>;
    /**
     * Says how a task went that was done outside. Claims it first, and no other, whoever stands before it in the line. When the
     * server could not be reached to hear of it, the task stays this client's, and saying it again does.
     */
    completeExternalTask(task: string, outcome?: {
        success: boolean;
        result?: unknown;
        error?: string;
        retryable?: boolean;
    }, options?: CallOptions): Promise<TaskView>;
    /** What waits and runs, lane by lane: of one session's tool lanes, or of all lanes. */
    queueStats(session?: string, options?: CallOptions): Promise<SessionStats>;
    /** What all lanes have seen: counters, and percentiles of waits and runs. */
    queueMetrics(options?: CallOptions): Promise<QueueMetrics>;
    /** The tasks that could not be done, the oldest first. */
    deadLetters(options?: CallOptions): Promise<DeadLetterView[]>;
    /** Runs a dead letter again as a new task, or all of a lane or kind. */
    redrive(which: string | LettersSelector, options?: CallOptions): Promise<RedriveAnswer>;
    /** Throws a dead letter away, or all of a lane or kind. */
    discard(which: string | LettersSelector, options?: CallOptions): Promise<RedriveAnswer>;
}
