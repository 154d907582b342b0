/// <reference lib="esnext.disposable" preserve="true" />
// Lanes for agent work: they decide which tasks run and which wait.

import type { Local, LocalOptions } from "./local.js";

export { Agent, type AgentSettings, Turn, type TurnOptions } from "./agents.js";
export { Client, type QueueMetrics, type TasksFilter } from "./client.js";
export * from "./errors.js";
export type { EventStream, LanewayEvent, QueueEvent, TaskEvent } from "./events.js";
export { PendingTask } from "./external.js";
export { Lane, type LaneSettings } from "./lanes.js";
export type { Local, LocalOptions } from "./local.js";
export type { Retry } from "./retry.js";
export { Schedule } from "./schedules.js";
export { Session, sessionLane } from "./sessions.js";
export { Slot, type SlotOptions } from "./slots.js";
export { TaskRun } from "./task-run.js";
export type { CallOptions, ClientOptions } from "./transport.js";
export type * as wire from "./wire.js";
export { type Handler, Worker, type WorkerOptions } from "./worker.js";

/** Starts a local server. */
export const Laneway = {
  /** Starts the program `laneway` on a free loopback port and resolves when it is ready. It ends with this program. Node only. */
  async local(options: LocalOptions = {}): Promise<Local> {
    const { Local } = await import("./local.js");
    return Local.start(options);
  },
};
