// What needs attention now, worst first, from the current state.

import { count, many } from "./words.js";

const SHOWN_MAX = 8;

/** Each `{level, text, next, to, query}`: how bad, what, and where to go. */
export function troubles({ status, lanes, external, workers }) {
  const found = [];
  if (status.store_warning) {
    found.push({ level: "critical", text: `The store may lose accepted work: ${status.store_warning}`, next: "see the lanes", to: ["lanes"] });
  }
  if (status.dead_letters) {
    found.push({ level: "critical", text: `${many(status.dead_letters, "task")} could not be done`, next: "dead letters", to: ["dead-letters"] });
  }
  if (external.items.length && workers.length === 0) {
    found.push({ level: "warning", text: "Tasks wait for a worker, and no worker holds a lease", next: "workers", to: ["workers"] });
  }
  const worst = [...lanes].sort((one, other) => other.waiting - one.waiting);
  for (const lane of worst) {
    const to = ["lanes", lane.lane];
    const share = lane.max_queued ? lane.waiting / lane.max_queued : 0;
    if (lane.paused && lane.waiting) {
      found.push({ level: "warning", text: `Lane ${lane.lane} is paused while ${many(lane.waiting, "task")} wait`, next: "resume", to });
    } else if (lane.paused) {
      found.push({ level: "notice", text: `Lane ${lane.lane} is paused`, next: "resume", to });
    } else if (lane.draining) {
      found.push({ level: "notice", text: `Lane ${lane.lane} drains: it takes no new work`, next: "see the lane", to });
    } else if (share >= 1) {
      found.push({ level: "critical", text: `The line of lane ${lane.lane} is full: new work is refused`, next: "see the lane", to });
    } else if (lane.alert) {
      found.push({ level: lane.alert, text: `The line of lane ${lane.lane} is long: ${many(lane.waiting, "task")} wait`, next: "see the lane", to });
    } else if (share >= 0.8) {
      found.push({ level: "warning", text: `The line of lane ${lane.lane} is nearly full: ${count(lane.waiting)} of ${count(lane.max_queued)} places`, next: "see the lane", to });
    }
  }
  const rank = { critical: 0, warning: 1, notice: 2 };
  found.sort((one, other) => rank[one.level] - rank[other.level]);
  return found.slice(0, SHOWN_MAX);
}
