// All lanes, to filter and sort.

import { html } from "../view.js";
import { pages } from "../api.js";
import { useAnswer } from "../live.js";
import { Link, pick, refine, usePlace } from "../route.js";
import { count, length } from "../words.js";
import { Slots, isHeldUp, laneWord } from "../parts/lanebar.js";
import { Empty, Filter, Title, Trouble, Waiting } from "../parts/shown.js";
import { LongList } from "../parts/list.js";

const everyLane = (signal) => pages("api/lanes", { signal, pagesMax: 10 });
const concerns = ({ name }) => ["changed", "paused", "resumed", "draining", "drained", "configured"].includes(name);

/** What each column sorts by; numbers start with the largest, names with the first. */
const COLUMNS = [
  ["lane", "lane", "c-lane-name", (lane) => lane.lane], ["running", "running", "c-slots", (lane) => lane.running],
  ["waiting", "waiting", "c-num", (lane) => lane.waiting], ["wait", "p99 wait", "c-num wide", (lane) => lane.wait.p99_ms ?? -1],
  ["run", "p50 run", "c-num wide", (lane) => lane.run.p50_ms ?? -1], ["completed", "completed", "c-num wide", (lane) => lane.counters.completed],
  ["failed", "failed", "c-num wide", (lane) => lane.counters.failed],
];

/** `waiting`, or `-waiting` the other way round; among equals by name. */
function sorted(lanes, asked) {
  const isTurned = asked.startsWith("-");
  const [key, , , value] = COLUMNS.find(([name]) => name === asked.replace("-", "")) ?? COLUMNS[2];
  const names = (one, other) => one.lane.localeCompare(other.lane);
  const compare = key === "lane" ? names : (one, other) => value(other) - value(one);
  return { key, isTurned, items: lanes.sort((one, other) => (isTurned ? -1 : 1) * compare(one, other) || names(one, other)) };
}

function Row({ lane }) {
  const limit = lane.max_concurrency ?? "∞";
  // Lanes under one pattern are counted together; what is said of one is true of all of them.
  const together = lane.label === lane.lane ? null : `of all lanes of ${lane.label}`;
  const known = laneWord(lane);
  const word = known === "idle" ? "" : known;
  return html`<${Link} to=${["lanes", lane.lane]} class="row" data-row="">
    <span class="c-lane-name name">${lane.lane}</span>
    <span class="c-slots"><span class="num">${lane.running}/${limit}</span> <${Slots} lane=${lane} /></span>
    <span class="c-num num">${count(lane.waiting)}</span>
    ${[length(lane.wait.p99_ms), length(lane.run.p50_ms), count(lane.counters.completed), count(lane.counters.failed)].map((text) => html`
      <span class=${`c-num wide num ${together ? "faint" : ""}`} title=${together}>${text}</span>`)}
    <span class="c-word"><span class=${`lane-word ${word === "full" ? "full" : isHeldUp(lane) || lane.paused || lane.draining ? "stopped" : "high"}`}>${word}</span></span>
  <//>`;
}

export function Lanes() {
  const { query } = usePlace();
  const { data, error } = useAnswer(everyLane, { concerns, every: 10000 });
  const wanted = (query.filter ?? "").toLowerCase();
  const { key: sort, isTurned, items: shown } = sorted((data?.items ?? []).filter((lane) => lane.lane.toLowerCase().includes(wanted)), query.sort ?? "waiting");
  const arrow = (key) => (sort !== key ? "" : (key === "lane") === isTurned ? " ↓" : " ↑");
  const head = html`${COLUMNS.map(([key, name, kind]) => html`<span class=${kind}>
      <button class="sort" type="button" aria-pressed=${sort === key} title=${sort === key ? "Sort the other way round" : `Sort by ${name}`}
        onClick=${() => pick({ sort: sort === key && !isTurned ? `-${key}` : key })}>${name}${arrow(key)}</button></span>`)}<span class="c-word"></span>`;
  return html`<${Title} actions=${html`<${Filter} label="Filter lanes" value=${query.filter} onInput=${(filter) => refine({ filter })} />`}>Lanes<//>
    <${Trouble} error=${error} />
    ${!data ? !error && html`<${Waiting} />` : shown.length === 0
      ? html`<${Empty} title=${wanted ? `No lane has “${query.filter}” in its name.` : "No lane yet."}>
          ${wanted ? "Clear the filter to see all of them." : "Declare lanes in laneway.hcl, or submit a task that names one."}<//>`
      : html`<div class="card flush"><${LongList} items=${shown} label="Lanes" head=${head} keyOf=${(lane) => lane.lane} row=${(lane) => html`<${Row} lane=${lane} />`} /></div>
        ${data.more && html`<p class="faint small">Only the first ${count(data.items.length)} lanes are listed, by name.</p>`}`}`;
}
