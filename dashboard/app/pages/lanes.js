// All lanes, to filter and sort.

import { html } from "../view.js";
import { pages } from "../api.js";
import { useAnswer } from "../live.js";
import { Link, refine, usePlace } from "../route.js";
import { count, length } from "../words.js";
import { Slots, fullness } from "../parts/lanebar.js";
import { Empty, Filter, Title, Trouble, Waiting } from "../parts/shown.js";
import { LongList } from "../parts/list.js";

const everyLane = (signal) => pages("api/lanes", { signal, pagesMax: 10 });
const concerns = ({ name }) => ["changed", "paused", "resumed", "draining", "drained", "configured"].includes(name);

const SORTS = {
  lane: (one, other) => one.lane.localeCompare(other.lane),
  running: (one, other) => other.running - one.running,
  waiting: (one, other) => other.waiting - one.waiting,
  wait: (one, other) => (other.wait.p99_ms ?? 0) - (one.wait.p99_ms ?? 0),
};
const COLUMNS = [
  ["lane", "lane", "c-lane-name"], ["running", "running", "c-slots"], ["waiting", "waiting", "c-num"], ["wait", "p99 wait", "c-num wide"],
];

function Row({ lane }) {
  const limit = lane.max_concurrency ?? "∞";
  const word = lane.paused ? "paused" : lane.draining ? "draining" : fullness(lane) === "full" ? "full" : "";
  return html`<${Link} to=${["lanes", lane.lane]} class="row" data-row="">
    <span class="c-lane-name name">${lane.lane}</span>
    <span class="c-slots"><span class="num">${lane.running}/${limit}</span> <${Slots} lane=${lane} /></span>
    <span class="c-num num">${count(lane.waiting)}</span>
    <span class="c-num wide num">${length(lane.wait.p99_ms)}</span>
    <span class="c-num wide num">${length(lane.run.p50_ms)}</span>
    <span class="c-num wide num">${count(lane.counters.completed)}</span>
    <span class="c-num wide num">${count(lane.counters.failed)}</span>
    <span class="c-word"><span class=${`lane-word ${word === "full" ? "full" : "stopped"}`}>${word}</span></span>
  <//>`;
}

export function Lanes() {
  const { query } = usePlace();
  const { data, error } = useAnswer(everyLane, { concerns, every: 10000 });
  const sort = SORTS[query.sort] ? query.sort : "waiting";
  const wanted = (query.filter ?? "").toLowerCase();
  const shown = (data?.items ?? []).filter((lane) => lane.lane.toLowerCase().includes(wanted)).sort(SORTS.lane).sort(SORTS[sort]);
  const head = html`${COLUMNS.map(([key, name, kind]) => html`<span class=${kind}>
      <button class="sort" type="button" aria-pressed=${sort === key} onClick=${() => refine({ sort: key })}>${name}${sort === key ? " ↓" : ""}</button></span>`)}
    <span class="c-num wide">p50 run</span><span class="c-num wide">completed</span><span class="c-num wide">failed</span><span class="c-word"></span>`;
  return html`<${Title} actions=${html`<${Filter} label="Filter lanes" value=${query.filter} onInput=${(filter) => refine({ filter })} />`}>Lanes<//>
    <${Trouble} error=${error} />
    ${!data ? !error && html`<${Waiting} />` : shown.length === 0
      ? html`<${Empty} title=${wanted ? `No lane has “${query.filter}” in its name.` : "No lane yet."}>
          ${wanted ? "Clear the filter to see all of them." : "Declare lanes in laneway.hcl, or submit a task that names one."}<//>`
      : html`<div class="card flush"><${LongList} items=${shown} label="Lanes" head=${head} keyOf=${(lane) => lane.lane} row=${(lane) => html`<${Row} lane=${lane} />`} /></div>
        ${data.more && html`<p class="faint small">Only the first ${count(data.items.length)} lanes are listed, by name.</p>`}`}`;
}
