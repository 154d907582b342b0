// The client.

import { Agent } from "./agents.js";
import { NotFound } from "./errors.js";
import type { EventStream } from "./events.js";
import { External, type PendingTask } from "./external.js";
import { Lane } from "./lanes.js";
import { asChild } from "./running.js";
import { Schedule } from "./schedules.js";
import { Session, sessionLane } from "./sessions.js";
import { Slot, type SlotOptions } from "./slots.js";
import { type CallOptions, type ClientOptions, type Request, Transport, pathOf } from "./transport.js";
import type {
  AcceptedTask,
  AgentView,
  BatchAnswer,
  BatchCall,
  CancelAnswer,
  CancelManyAnswer,
  CancelManyRequest,
  DeadLetterView,
  ExplainView,
  GroupView,
  LaneNumbers,
  LettersSelector,
  PriorityRequest,
  RedriveAnswer,
  ScheduleView,
  SessionStats,
  SessionSummary,
  StatusView,
  TaskRequest,
  TaskView,
  WorkerView,
} from "./wire.js";

/** Counters of all lanes. */
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

const TOOL_LANES = ["control", "query", "execute", "generate"];

/** A client of a Laneway server. */
export class Client {
  readonly transport: Transport;
  readonly #external: External;

  /** `url` is the address of a server, or the addresses of several replicas. If one is away, the next takes its place. */
  constructor(url: string | readonly string[], options: ClientOptions = {}) {
    this.transport = new Transport(url, options);
    this.#external = new External(this.transport);
  }

  get url(): string {
    return this.transport.url;
  }

  /** Stops the heartbeats of claimed tasks. The server offers them again when their leases lapse. */
  close(): void {
    this.#external.close();
  }

  /** Calls any route, in JSON. For routes without their own method. */
  request<T = unknown>(method: NonNullable<Request["method"]>, path: string, request: Omit<Request, "method"> = {}): Promise<T> {
    return this.transport.read<T>(path, { ...request, method });
  }

  // Agents, sessions, lanes, schedules

  agent(name: string): Agent {
    return new Agent(this.transport, name);
  }

  session(key: string): Session {
    return new Session(this.transport, key);
  }

  lane(name: string): Lane {
    return new Lane(this.transport, name);
  }

  schedule(name: string): Schedule {
    return new Schedule(this.transport, name);
  }

  agents(options: CallOptions = {}): AsyncGenerator<AgentView, void, void> {
    return this.transport.pages(pathOf("agents"), options);
  }

  sessions(options: CallOptions = {}): AsyncGenerator<SessionSummary, void, void> {
    return this.transport.pages(pathOf("sessions"), options);
  }

  lanes(options: CallOptions = {}): AsyncGenerator<LaneNumbers, void, void> {
    return this.transport.pages(pathOf("lanes"), options);
  }

  schedules(options: CallOptions = {}): AsyncGenerator<ScheduleView, void, void> {
    return this.transport.pages(pathOf("schedules"), options);
  }

  workers(options: CallOptions = {}): AsyncGenerator<WorkerView, void, void> {
    return this.transport.pages(pathOf("workers"), options);
  }

  /** The numbers of running and waiting tasks of a lane. Default: of all tasks. */
  status(options: CallOptions & { lane?: string } = {}): Promise<StatusView> {
    const { lane, ...call } = options;
    return this.transport.read(pathOf("status"), { ...call, query: { lane } });
  }

  /** Takes a slot in each of the lanes: `await using slot = await client.slot(["main"])`. */
  slot(lanes: string[], options: SlotOptions = {}): Promise<Slot> {
    return Slot.take(this.transport, lanes, options);
  }

  /** Runs a block under a slot in each of the lanes. Rejects with `LeaseLost` as soon as the lease is lost. */
  withSlot<T>(lanes: string[], block: (slot: Slot) => Promise<T> | T): Promise<T>;
  withSlot<T>(lanes: string[], options: SlotOptions, block: (slot: Slot) => Promise<T> | T): Promise<T>;
  async withSlot<T>(
    lanes: string[],
    options: SlotOptions | ((slot: Slot) => Promise<T> | T),
    block?: (slot: Slot) => Promise<T> | T,
  ): Promise<T> {
    const [how, run] = typeof options === "function" ? [{}, options] : [options, block!];
    return (await this.slot(lanes, how)).guard(run);
  }

  // Tasks

  /**
   * Submits a task without waiting for its end. A repeated idempotency key submits nothing. In a worker's handler the new task is a
   * detached child of the handler's task. Pass `parent` to wait for it: then it borrows the slots of that task, and ends with it.
   */
  submit(
    kind: string,
    payload?: unknown,
    options: Omit<TaskRequest, "kind" | "payload"> & CallOptions & { idempotencyKey?: string } = {},
  ): Promise<AcceptedTask> {
    const { idempotencyKey, signal, traceparent, ...rest } = options;
    const body: TaskRequest = { kind, payload: payload ?? null, ...rest };
    const child = asChild(this.transport.addresses);
    const isChild = child["x-laneway-parent"] !== undefined;
    const headers = { "idempotency-key": idempotencyKey, ...child, "x-detach": isChild ? "true" : undefined };
    return this.transport.read(pathOf("tasks"), { method: "POST", body, headers, signal, traceparent });
  }

  /**
   * Runs the tool calls of one model turn: reads together, others one after another. Results are in the order of the calls. The calls
   * are children of `parent`. Default: the task of the worker's handler that makes the call.
   */
  batch(session: string, calls: BatchCall[], options: CallOptions & { group?: string; parent?: string } = {}): Promise<BatchAnswer> {
    const { group, parent, ...call } = options;
    const headers = asChild(this.transport.addresses, parent);
    const body = { session, calls, ...(group === undefined ? {} : { group }) };
    return this.transport.read(pathOf("tasks", "batch"), { ...call, method: "POST", body, headers, waits: true });
  }

  /** A task, live or ended. */
  task(task: string, options: CallOptions = {}): Promise<TaskView> {
    return this.transport.read(pathOf("tasks", task), options);
  }

  tasks(filter: TasksFilter = {}, options: CallOptions = {}): AsyncGenerator<TaskView, void, void> {
    return this.transport.pages(pathOf("tasks"), { ...options, query: { ...filter } });
  }

  /** Waits for the end of a task, also across restarts of the server. Resolves to the task. */
  async wait(task: string, options: CallOptions = {}): Promise<TaskView> {
    for (;;) {
      try {
        for await (const _ of this.taskEvents(task, options));
      } catch (error) {
        // A task that has just ended may no longer have a stream, so read the task itself.
        if (!(error instanceof NotFound)) throw error;
      }
      const view = await this.task(task, options);
      if (view.ended_at != null) return view;
    }
  }

  /** The events of a task, until `done`. Continues after the last event when the connection breaks. */
  taskEvents(task: string, options: CallOptions & { after?: string } = {}): EventStream {
    return this.transport.follow(pathOf("tasks", task, "events"), options);
  }

  /**
   * All events, without end. Await it to open it: nothing that happens later is missed. Continues after the last event when the
   * connection breaks.
   */
  events(
    filter: { lane?: string; session?: string; task?: string } = {},
    options: CallOptions & { after?: string } = {},
  ): EventStream {
    return this.transport.follow(pathOf("events"), { ...options, query: { ...filter } });
  }

  /** Cancels a task. The answer has the status in which the task was. */
  cancel(task: string, options: CallOptions = {}): Promise<CancelAnswer> {
    return this.transport.read(pathOf("tasks", task), { ...options, method: "DELETE" });
  }

  /** Cancels the waiting tasks that match all given filters. Resolves to their number. */
  async cancelWaiting(which: CancelManyRequest, options: CallOptions = {}): Promise<number> {
    const request = { ...options, method: "POST" as const, body: which };
    return (await this.transport.read<CancelManyAnswer>(pathOf("tasks", "cancel"), request)).cancelled;
  }

  /** Explains why a task waits. */
  explain(task: string, options: CallOptions = {}): Promise<ExplainView> {
    return this.transport.read(pathOf("tasks", task, "explain"), options);
  }

  /** Changes the priority of a waiting task. */
  prioritise(task: string, priority: PriorityRequest, options: CallOptions = {}): Promise<TaskView> {
    return this.transport.read(pathOf("tasks", task), { ...options, method: "PATCH", body: { priority } });
  }

  /** The state of the tasks of a group. */
  group(group: string, options: CallOptions = {}): Promise<GroupView> {
    return this.transport.read(pathOf("groups", group), options);
  }

  // Tasks of external lanes

  /**
   * Sets what runs the tasks of a lane from now on. A tool lane (`control`, `query`, `execute`, `generate`) means that of `session`,
   * or that of all sessions. The other settings of the lane stay. A task of an external tool lane ends when it waits or runs
   * longer than `timeoutMs` (60 s by default).
   */
  setLaneHandler(
    lane: string,
    mode: "internal" | "external" | "hybrid" = "external",
    options: CallOptions & { session?: string; timeoutMs?: number } = {},
  ): Promise<LaneNumbers> {
    const { session, timeoutMs, ...call } = options;
    const isOfSession = session !== undefined || TOOL_LANES.includes(lane);
    const name = isOfSession ? `${session === undefined ? "session:*" : sessionLane(session)}/${lane}` : lane;
    const body = { handler: mode, ...(timeoutMs === undefined ? {} : { timeout_ms: timeoutMs }) };
    return this.transport.read(pathOf("lanes", name), { ...call, method: "PATCH", body });
  }

  /** The tasks that wait for a worker, in order. Those that this client has claimed come first. */
  pendingExternalTasks(
    which: { session?: string; lane?: string } = {},
    options: CallOptions = {},
  ): Promise<PendingTask[]> {
    return this.#external.pending(which, options);
  }

  /**
   * Reports the outcome of an external task. Claims exactly that task first, even if other tasks are ahead of it. If the report does
   * not reach the server, the client keeps its claim, and you can call this again.
   */
  completeExternalTask(
    task: string,
    outcome: { success: boolean; result?: unknown; error?: string; retryable?: boolean } = { success: true },
    options: CallOptions = {},
  ): Promise<TaskView> {
    return this.#external.complete(task, outcome, options);
  }

  /** The waiting and running tasks by lane: of one session's tool lanes, or of all lanes. */
  async queueStats(session?: string, options: CallOptions = {}): Promise<SessionStats> {
    if (session !== undefined) return this.session(session).stats(options);
    const status = await this.status(options);
    const lanes: SessionStats["lanes"] = {};
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
    for await (const _ of this.transport.pages(pathOf("external-tasks"), options)) pending += 1;
    return { total_pending: status.waiting, total_active: status.running, external_pending: pending, lanes };
  }

  /** Counters of all lanes, and percentiles of the times of waits and attempts. */
  async queueMetrics(options: CallOptions = {}): Promise<QueueMetrics> {
    const { running, waiting, max_concurrent } = await this.status(options);
    const lanes: Record<string, LaneNumbers> = {};
    const listed = this.transport.pages<LaneNumbers>(pathOf("lanes"), { ...options, query: { patterns: "true" } });
    for await (const lane of listed) lanes[lane.lane] = lane;
    return { running, waiting, maxConcurrent: max_concurrent ?? undefined, lanes };
  }

  /** The dead letters that match, the oldest first. `session` covers its tool lanes. */
  async deadLetters(
    which: { lane?: string; session?: string; kind?: string } = {},
    options: CallOptions = {},
  ): Promise<DeadLetterView[]> {
    const letters: DeadLetterView[] = [];
    const request = { ...options, query: { ...which } };
    for await (const letter of this.transport.pages<DeadLetterView>(pathOf("dead-letters"), request)) letters.push(letter);
    return letters;
  }

  /** Redrives a dead letter as a new task, or all dead letters of a lane, session or kind. */
  redrive(which: string | LettersSelector, options: CallOptions = {}): Promise<RedriveAnswer> {
    const request = { ...options, method: "POST" as const };
    return typeof which === "string"
      ? this.transport.read(pathOf("dead-letters", which, "redrive"), request)
      : this.transport.read(pathOf("dead-letters", "redrive"), { ...request, body: which });
  }

  /** Deletes a dead letter, or all dead letters of a lane, session or kind. */
  discard(which: string | LettersSelector, options: CallOptions = {}): Promise<RedriveAnswer> {
    const request = { ...options, method: "DELETE" as const };
    if (typeof which === "string") return this.transport.read(pathOf("dead-letters", which), request);
    const [lane, session, kind] = [which.lane ?? undefined, which.session ?? undefined, which.kind ?? undefined];
    const query = { lane, session, kind };
    return this.transport.read(pathOf("dead-letters"), { ...request, query });
  }
}
