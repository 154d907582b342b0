// What runs, what waits, why, and what is wrong: in three seconds.

import { html, useCallback, useRef } from "../view.js";
import { ask, pages, withQuery } from "../api.js";
import { useAnswer } from "../live.js";
import { Link } from "../route.js";
import { URGENCIES, brief, count } from "../words.js";
import { Charts } from "./charts.js";
import { LaneRow, WAITING_DRAWN_MAX, isHeldUp } from "../parts/lanebar.js";
import { explain, reason } from "../parts/why.js";
import { Empty, Title, Trouble, Waiting } from "../parts/shown.js";
import { troubles } from "../troubles.js";
import { parseMetrics } from "../metrics.js";

const LANES_SHOWN = 10;
/** The waiting tasks are redrawn at most this often. */
const LINES_PACE_MS = 1000;
/** Throughput is that of about the last minute. */
const FLOW_MS = 60000;

const inLanes = ({ name }) => ["changed", "paused", "resumed", "draining", "drained", "configured", "done"].includes(name);

async function standing(signal) {
  const [status, lanes, external, workers] = await Promise.all([
    ask("GET", "api/status", { signal }),
    pages("api/lanes", { signal }),
    ask("GET", "api/external-tasks?limit=1", { signal }),
    ask("GET", "api/workers", { signal }),
  ]);
  return { status, lanes: lanes.items, external, workers: workers.items };
}

/** Of each lane the first that wait, in its own order, and of one that is held up why its first does not start. */
async function linesOf(names, signal) {
  const lines = await Promise.all(names.map(async ([lane, isStuck]) => {
    const { items } = await ask("GET", withQuery("api/tasks", { status: "queued", lane, limit: WAITING_DRAWN_MAX }), { signal });
    const why = isStuck && items.length ? reason(await explain(items[0].id, signal)) : "";
    return [lane, { items, why }];
  }));
  return new Map(lines);
}

async function measured(signal) {
  const [text, completed] = await Promise.all([ask("GET", "metrics", { signal }), ask("GET", "api/history?metric=completed&range=5m", { signal })]);
  return { samples: parseMetrics(text), flow: perMinute(completed.points) };
}

/** How many more a counter has counted lately, per minute; `null` while that is not known. */
function perMinute(points) {
  const last = points.at(-1);
  const first = last && points.find((point) => Date.parse(last.at) - Date.parse(point.at) <= FLOW_MS);
  const minutes = first && (Date.parse(last.at) - Date.parse(first.at)) / 60000;
  return minutes ? Math.max(0, last.value - first.value) / minutes : null;
}

function Tile({ name, value, unit, note, kind = "", to }) {
  const body = html`<span class="tile-name">${name}</span><span class="tile-value num">${value}<small>${unit}</small></span>
    <span class="tile-note">${note}</span>`;
  return to ? html`<${Link} class=${`tile ${kind}`} to=${to.parts} query=${to.query}>${body}<//>` : html`<div class=${`tile ${kind}`}>${body}</div>`;
}

function Wrong({ standing: found }) {
  const wrong = troubles(found);
  const isNew = found.lanes.every((lane) => lane.counters.accepted === 0);
  return html`<section aria-label="What is wrong" class="wrong">
    ${wrong.length === 0
      ? html`<p class="all-well"><span aria-hidden="true">✓</span> Nothing needs you.${isNew && html` Nothing was ever asked for: try <code>laneway chat echo hello</code>, and watch it here.`}</p>`
      : wrong.map(({ level, text, to, query, next }) => html`<${Link} class=${`alert ${level}`} to=${to} query=${query} data-row="">
          <span aria-hidden="true">${level === "critical" ? "✕" : "▲"}</span><span><span class="sr">${level}: </span>${text}</span>
          <span class="alert-next">${next} →</span><//>`)}
  </section>`;
}

function Tiles({ found, metrics }) {
  const { status, lanes } = found;
  const global = lanes.find((lane) => lane.lane === "global");
  const oldest = metrics ? Math.max(0, ...metrics.samples.filter((one) => one.name === "laneway_oldest_waiting_seconds").map((one) => one.value)) : null;
  const share = status.max_concurrent ? status.running / status.max_concurrent : 0;
  const kind = share >= 1 ? "red" : share >= 0.8 ? "amber" : "";
  const flow = metrics?.flow;
  const ended = global?.counters.completed ?? 0;
  return html`<div class="tiles">
    <${Tile} name="Running" value=${count(status.running)} unit=${`/ ${status.max_concurrent ?? "∞"}`} kind=${kind}
      note=${share >= 1 ? "every slot is taken" : "slots of everything"} to=${{ parts: ["tasks"], query: { status: "running" } }} />
    <${Tile} name="Waiting" value=${count(status.waiting)} note=${status.waiting ? "see the line" : "no task waits"}
      to=${{ parts: ["tasks"], query: { status: "queued" } }} />
    <${Tile} name="Oldest waiting" value=${oldest === null ? "–" : oldest ? brief(oldest * 1000) : "–"} note="first in any line" />
    <${Tile} name="Throughput" value=${flow === null || flow === undefined ? "–" : count(flow < 10 ? Math.round(flow * 10) / 10 : Math.round(flow))} unit="/ min"
      note=${`${count(ended)} done, ${count(global?.counters.failed ?? 0)} failed`} to=${{ parts: ["tasks"], query: { status: "completed" } }} />
    <${Tile} name="Wait p50" value=${brief(global?.wait.p50_ms)} note="half wait less" />
    <${Tile} name="Wait p99" value=${brief(global?.wait.p99_ms)} note="1 in 100 waits longer" />
  </div>`;
}

function Refused({ metrics }) {
  const codes = new Map();
  for (const { name, labels, value } of metrics?.samples ?? []) {
    if (name === "laneway_rejected_total") codes.set(labels.code, (codes.get(labels.code) ?? 0) + value);
  }
  const sorted = [...codes].sort((one, other) => other[1] - one[1]);
  const most = sorted[0]?.[1] ?? 1;
  return html`<section aria-label="Refused requests" class="card">
    <h2>Refused, by code</h2>
    ${sorted.length === 0
      ? html`<p class="faint">Nothing was refused since the server started.</p>`
      : html`<table class="bars"><tbody>${sorted.map(([code, number]) => html`<tr>
          <th scope="row" class="name">${code}</th><td class="num">${count(number)}</td>
          <td aria-hidden="true"><b style=${{ width: `${Math.max(2, (number / most) * 100)}%` }}></b></td></tr>`)}</tbody></table>`}
  </section>`;
}

function Lanes({ found }) {
  const sorted = [...found.lanes].sort((one, other) =>
    (other.lane === "global") - (one.lane === "global") || other.waiting - one.waiting || other.running - one.running || one.lane.localeCompare(other.lane));
  const shown = sorted.slice(0, LANES_SHOWN);
  const wanted = JSON.stringify(shown.filter((lane) => lane.waiting > 0).map((lane) => [lane.lane, isHeldUp(lane)]));
  const question = useCallback((signal) => linesOf(JSON.parse(wanted), signal), [wanted]);
  const { data } = useAnswer(question, { concerns: inLanes, every: 5000, pace: LINES_PACE_MS });
  // While those of other lanes are asked for, what is known of these stays.
  const lines = useRef(new Map());
  if (data) lines.current = data;
  return html`<section aria-label="Lanes" class="card">
    <div class="section-head"><h2>Lanes</h2><span class="keys">${URGENCIES.map(([kind, name]) => html`<span class=${`key ${kind}`}>${name}</span>`)}</span></div>
    ${shown.length === 0
      ? html`<${Empty} title="No lane yet.">Declare one in laneway.hcl, or send work: lanes appear as tasks name them.<//>`
      : html`<div class="lane-rows">${shown.map((lane) => html`<${LaneRow} key=${lane.lane} lane=${lane} known=${lines.current.get(lane.lane)?.items} why=${isHeldUp(lane) ? lines.current.get(lane.lane)?.why : ""} />`)}</div>`}
    ${sorted.length > shown.length && html`<p><${Link} to=${["lanes"]}>All ${count(sorted.length)} lanes →<//></p>`}
  </section>`;
}

export function Overview() {
  const { data, error } = useAnswer(standing, { concerns: inLanes, every: 10000 });
  const { data: metrics } = useAnswer(measured, { concerns: () => false, every: 3000 });
  return html`<${Title}>Overview<//>
    <${Trouble} error=${error} />
    ${!data ? !error && html`<${Waiting} />` : html`
      <${Wrong} standing=${data} />
      <${Tiles} found=${data} metrics=${metrics} />
      <${Lanes} found=${data} />
      <${Charts} status=${data.status} />
      <${Refused} metrics=${metrics} />`}`;
}
