// A lane as one sees it: its slots filling up, and the line in front of it, coloured by priority.

import { html } from "../view.js";
import { Link } from "../route.js";
import { count, many, urgency } from "../words.js";

const SLOTS_DRAWN_MAX = 24;
/** How many waiting tasks are drawn; the rest is a number. */
export const WAITING_DRAWN_MAX = 30;

/** How full, in a word that goes with the colour. */
export function fullness({ running, max_concurrency: limit }) {
  if (!limit) return running ? "free" : "idle";
  if (running >= limit) return "full";
  if (running >= limit * 0.8) return "high";
  return running ? "free" : "idle";
}

export function Slots({ lane }) {
  const { running, max_concurrency: limit } = lane;
  const kind = fullness(lane);
  if (limit && limit <= SLOTS_DRAWN_MAX) {
    const slots = Array.from({ length: limit }, (_, index) => html`<i class=${index < running ? "taken" : ""}></i>`);
    return html`<span class=${`slots ${kind}`} aria-hidden="true">${slots}</span>`;
  }
  const share = limit ? Math.min(100, (running / limit) * 100) : running ? 12 : 0;
  return html`<span class=${`slots whole ${kind}`} aria-hidden="true"><b style=${{ width: `${share}%` }}></b></span>`;
}

/** The line, the first at the lane. `known` are the first that wait there, in their order; those beyond are drawn plain. */
export function Line({ waiting, known = [] }) {
  if (!waiting) return html`<span class="line" aria-hidden="true"></span>`;
  const drawn = Math.min(waiting, WAITING_DRAWN_MAX);
  const ticks = Array.from({ length: drawn }, (_, index) => {
    const task = known[index];
    return html`<i class=${task ? urgency(task.effective_priority ?? task.priority) : "unknown"}></i>`;
  });
  return html`<span class="line" aria-hidden="true">${ticks}${waiting > drawn && html`<em>+${count(waiting - drawn)}</em>`}</span>`;
}

const WORDS = { full: "full", high: "nearly full", free: "", idle: "idle" };

/** The state of a lane in a word: first what an operator did, then whether it stands still, then how full it is. */
export function laneWord(lane) {
  if (lane.paused) return "paused";
  if (lane.draining) return "draining";
  return isHeldUp(lane) ? "held up" : WORDS[fullness(lane)];
}

/** Tasks wait and none runs, although the lane is not stopped: something elsewhere blocks them. */
export const isHeldUp = (lane) => lane.running === 0 && lane.waiting > 0 && !lane.paused && !lane.draining;

/** `why` says what a lane that is held up waits for. */
export function LaneRow({ lane, known, why = "" }) {
  const limit = lane.max_concurrency ?? "∞";
  const kind = fullness(lane);
  const word = laneWord(lane);
  const said = `${lane.lane}: ${lane.running} of ${limit} running, ${many(lane.waiting, "task")} waiting${word ? `, ${word}` : ""}${why ? `: ${why}` : ""}`;
  return html`<${Link} to=${["lanes", lane.lane]} class="lane-row" data-row="" aria-label=${said}>
    <span class="lane-name name">${lane.lane}</span>
    <span class="lane-numbers num">${lane.running}/${limit}</span>
    <${Slots} lane=${lane} />
    <span class="lane-wait num">${lane.waiting ? `${count(lane.waiting)} wait` : ""}</span>
    <${Line} waiting=${lane.waiting} known=${known} />
    <span class="lane-state"><span class=${`lane-word ${lane.paused || lane.draining || isHeldUp(lane) ? "stopped" : kind}`}>${word}</span>
      <span class="lane-why" title=${why}>${why}</span></span>
  <//>`;
}
