import type { Problem } from "./wire.js";
interface Told<Name extends string, Data> {
    event: Name;
    /** Where it stands in its stream. */
    id?: string;
    data: Data & {
        task_id?: string;
        at?: string;
    };
}
type Empty = Record<never, never>;
interface Place {
    position: number | null;
    eta_ms: number | null;
}
/** Events of a task; `done` is the last one. */
export type TaskEvent = Told<"accepted", {
    kind: string;
    lanes?: string[];
    priority?: number;
}> | Told<"queued", Place> | Told<"position", Place> | Told<"notice", {
    waited_ms: number;
    ahead: number;
}> | Told<"typing", Empty> | Told<"started", {
    attempt: number;
    fence?: number;
    worker?: string | null;
}> | Told<"delta", {
    text: string;
}> | Told<"progress", {
    progress: unknown;
}> | Told<"steered", Empty> | Told<"boosted", {
    levels?: number;
    priority?: number;
    by: string;
}> | Told<"retrying", {
    delay_ms: number;
    error: string;
    attempt?: number;
}> | Told<"completed", {
    result: unknown;
}> | Told<"failed", {
    error: string;
    code: string;
}> | Told<"timed_out", {
    code: string;
}> | Told<"cancelled", {
    reason: string;
}> | Told<"expired", Empty> | Told<"done", Empty>;
/** Events of lanes and the rest. */
export type QueueEvent = Told<"changed", {
    lane: string;
    running: number;
    waiting: number;
    max_concurrent: number | null;
}> | Told<"pressure", {
    lane: string;
    waiting: number;
}> | Told<"idle", {
    lane: string;
}> | Told<"alert", {
    lane: string;
    level: string;
    waiting: number;
}> | Told<"paused", {
    lane: string;
}> | Told<"resumed", {
    lane: string;
}> | Told<"draining", {
    lane: string;
}> | Told<"drained", {
    lane: string;
}> | Told<"external_task_pending", Record<string, unknown>> | Told<"external_task_completed", Record<string, unknown>> | Told<"dead_lettered", {
    error: string;
    attempts: number;
}> | Told<"message", {
    outcome: string;
} & Record<string, unknown>> | Told<"schedule_fired", Record<string, unknown>> | Told<"group", {
    group: string;
    done: number;
    total: number;
    failed: number;
}> | Told<"configured", Record<string, unknown>> | Told<"gap", {
    missed: number | null;
}> | Told<"error", Problem>;
/** Everything that can be told. A newer server may tell of more: pass over what you do not know. */
export type LanewayEvent = TaskEvent | QueueEvent;
/** Reads the events of a stream (`text/event-stream`). */
export declare function readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<LanewayEvent, void, void>;
export {};
