/// <reference lib="esnext.disposable" preserve="true" />
// Lanes for agent work: what may run now, what waits, and for how long.
export { Agent, Turn } from "./agents.js";
export { Client } from "./client.js";
export * from "./errors.js";
export { PendingTask } from "./external.js";
export { Lane } from "./lanes.js";
export { Session, sessionLane } from "./sessions.js";
export { Slot } from "./slots.js";
export { TaskRun } from "./task-run.js";
export { Worker } from "./worker.js";
/** The way in to a queue of one's own. */
export const Laneway = {
    /** Starts the program `laneway` on a free loopback port and resolves when it takes work. It ends with this program. Node only. */
    async local(options = {}) {
        const { Local } = await import("./local.js");
        return Local.start(options);
    },
};
