// Lanes: read, change, pause, resume, drain and clear them.

import { type CallOptions, type Transport, pathOf } from "./transport.js";
import type { CancelManyAnswer, LaneNumbers, ReleasedLane } from "./wire.js";

/** Settings of a lane; durations are milliseconds or texts such as `"2s"`. */
export interface LaneSettings {
  max_concurrency?: number | "unlimited";
  max_queued?: number;
  order?: "fair" | "fifo";
  priority?: number | "source";
  weight?: number;
  wait_timeout?: number | string;
  timeout?: number | string;
  lease?: number | string;
  max_redelivery?: number;
  retry?: string | Record<string, string | number | boolean>;
  rate_limit?: string | { per: "second" | "minute" | "hour"; max: number };
  ageing?: string | Record<string, string | number>;
  boost?: string | Record<string, string | number>;
  pressure_threshold?: number;
  alerts?: { warning?: number; critical?: number };
  dead_letters_max?: number;
  notice_after?: number | string;
  handler?: "internal" | "external" | "hybrid";
}

/** A named limit; `change` also takes a pattern such as `session:*`. */
export class Lane {
  constructor(
    readonly transport: Transport,
    readonly name: string,
  ) {}

  /** The state of the lane, whether it exists now or not. */
  get(options: CallOptions = {}): Promise<LaneNumbers> {
    return this.transport.read(pathOf("lanes", this.name), options);
  }

  /** Changes the given settings and keeps the others. Running attempts continue. */
  change(settings: LaneSettings, options: CallOptions = {}): Promise<LaneNumbers> {
    return this.transport.read(pathOf("lanes", this.name), { ...options, method: "PATCH", body: settings });
  }

  /** Starts no further tasks. Running attempts continue. */
  pause(options: CallOptions = {}): Promise<LaneNumbers> {
    return this.#gate("pause", options);
  }

  /** Ends a pause or a drain. */
  resume(options: CallOptions = {}): Promise<LaneNumbers> {
    return this.#gate("resume", options);
  }

  /** Accepts no further tasks. Accepted tasks still run. */
  drain(options: CallOptions = {}): Promise<LaneNumbers> {
    return this.#gate("drain", options);
  }

  /** Cancels all waiting tasks. Resolves to their number. */
  async clear(options: CallOptions = {}): Promise<number> {
    const path = pathOf("lanes", this.name, "clear");
    return (await this.transport.read<CancelManyAnswer>(path, { ...options, method: "POST" })).cancelled;
  }

  /** Frees the slots of running attempts. They may still run, but the server refuses their reports. */
  release(options: CallOptions = {}): Promise<ReleasedLane> {
    return this.transport.read(pathOf("lanes", this.name, "release"), { ...options, method: "POST" });
  }

  #gate(what: string, options: CallOptions): Promise<LaneNumbers> {
    return this.transport.read(pathOf("lanes", this.name, what), { ...options, method: "POST" });
  }
}
