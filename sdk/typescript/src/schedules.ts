// Schedules: create, read, change, fire and remove them.

import { type CallOptions, type Transport, pathOf } from "./transport.js";
import type { NewSchedule, ScheduleChange, ScheduleRun, ScheduleView } from "./wire.js";

/** A schedule, which asks an agent at certain times. */
export class Schedule {
  constructor(
    readonly transport: Transport,
    readonly name: string,
  ) {}

  /** Creates the schedule, which all replicas know, also after a restart. */
  create(schedule: Omit<NewSchedule, "name">, options: CallOptions = {}): Promise<ScheduleView> {
    const body = { name: this.name, ...schedule };
    return this.transport.read(pathOf("schedules"), { ...options, method: "POST", body });
  }

  /** The schedule, with its next firings and its last one. */
  get(options: CallOptions = {}): Promise<ScheduleView> {
    return this.transport.read(pathOf("schedules", this.name), options);
  }

  /** Changes the given settings and keeps the others. A schedule of the configuration file can only be enabled and disabled. */
  change(settings: ScheduleChange, options: CallOptions = {}): Promise<ScheduleView> {
    return this.transport.read(pathOf("schedules", this.name), { ...options, method: "PATCH", body: settings });
  }

  /** Removes a schedule that `create` made, and its firings. */
  remove(options: CallOptions = {}): Promise<void> {
    return this.transport.read(pathOf("schedules", this.name), { ...options, method: "DELETE" });
  }

  /** Fires the schedule now. */
  run(options: CallOptions = {}): Promise<ScheduleRun> {
    return this.transport.read(pathOf("schedules", this.name, "run"), { ...options, method: "POST" });
  }

  /** The firings, the newest first. */
  runs(options: CallOptions = {}): AsyncGenerator<ScheduleRun, void, void> {
    return this.transport.pages(pathOf("schedules", this.name, "runs"), options);
  }
}
