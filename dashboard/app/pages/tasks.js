// Tasks by state; every filter is in the address, so that a link shares the view.

import { html, useCallback, useEffect, useRef, useState } from "../view.js";
import { ask, may, pages, withQuery } from "../api.js";
import { useAnswer } from "../live.js";
import { Link, refine, usePlace } from "../route.js";
import { count, length, many } from "../words.js";
import { Act } from "../parts/dialog.js";
import { LongList } from "../parts/list.js";
import { Empty, TASK_HEAD, Tabs, TaskRow, Title, Trouble, Waiting, isOver } from "../parts/shown.js";
import { Since, Time } from "../parts/time.js";

const PAGE = 200;
const COUNT_PAGES_MAX = 40;
const TABS = [
  ["", "all"], ["running", "running"], ["queued", "waiting"], ["retrying", "retrying"], ["completed", "completed"],
  ["failed", "failed"], ["timed_out", "timed out"], ["cancelled", "cancelled"], ["expired", "expired"],
  ["wait_timeout", "waited too long"], ["lost", "lost"],
];
const FILTERS = ["lane", "session", "kind", "group", "parent"];

const chosen = (query) => Object.fromEntries(FILTERS.map((key) => [key, query[key]]).filter(([, value]) => value));

function when(task) {
  if (isOver(task.status)) return html`<${Time} at=${task.ended_at} />`;
  if (task.status === "running") return html`for <${Since} at=${task.started_at} />`;
  return html`${task.eta_ms === undefined ? "" : html`<span class="faint wide">in ~${length(task.eta_ms)} · </span>`}waits <${Since} at=${task.submitted_at} />`;
}

/** The first page asks itself again; further pages come as one scrolls, and are merged behind it. */
function useTasks(query) {
  const [older, setOlder] = useState({ of: null, items: [], cursor: null });
  const loading = useRef(false);
  const path = withQuery("api/tasks", { status: query.status, ...chosen(query), limit: PAGE });
  const question = useCallback((signal) => ask("GET", path, { signal }), [path]);
  const first = useAnswer(question, { concerns: ({ name }) => name === "changed" || name === "done", every: 10000 });
  useEffect(() => setOlder({ of: path, items: [], cursor: null }), [path]);
  const head = first.data?.items ?? [];
  const isOf = older.of === path;
  const cursor = isOf && older.items.length ? older.cursor : first.data?.next_cursor;
  const more = useCallback(async () => {
    if (!cursor || loading.current) return;
    loading.current = true;
    try {
      const page = await ask("GET", withQuery("api/tasks", { status: query.status, ...chosen(query), limit: PAGE, cursor }));
      setOlder((last) => (last.of === path ? { of: path, items: [...last.items, ...page.items], cursor: page.next_cursor ?? null } : last));
    } finally {
      loading.current = false;
    }
  }, [path, cursor]);
  const seen = new Set(head.map((task) => task.id));
  const items = [...head, ...(isOf ? older.items.filter((task) => !seen.has(task.id)) : [])];
  if (query.status === "queued" && !cursor) items.sort((one, other) => (one.lane_position ?? one.position ?? 1e9) - (other.lane_position ?? other.position ?? 1e9));
  return { ...first, items, cursor, more };
}

function BulkCancel({ query, after }) {
  const which = chosen(query);
  if (!may("admin") || (query.status && query.status !== "queued")) return null;
  const said = Object.entries(which).map(([key, value]) => `${key} “${value}”`).join(" and ");
  if (!said) return html`<button type="button" disabled title="Filter by a lane, session, kind or group first">Cancel all…</button>`;
  const question = async () => {
    const found = await pages("api/tasks", { query: { status: "queued", ...which }, pagesMax: COUNT_PAGES_MAX });
    const number = `${found.more ? "at least " : ""}${many(found.items.length, "task")}`;
    return {
      title: `Cancel ${number}?`, action: `Cancel ${number}`, danger: true,
      what: [`Every task of ${said} that waits is cancelled: ${number} now. They cannot be brought back.`, "What runs is not touched."],
    };
  };
  const run = async () => `${many((await ask("POST", "api/tasks/cancel", { body: which })).cancelled, "task")} cancelled.`;
  return html`<${Act} label="Cancel all…" danger ask=${question} run=${run} after=${after} />`;
}

function FilterBar({ query }) {
  const change = (key) => (event) => refine({ [key]: event.target.value.trim() });
  return html`<div class="filters">${FILTERS.map((key, index) => html`<label key=${key}><span>${key}</span>
    <input type="search" value=${query[key] ?? ""} data-filter=${index === 0 ? "" : null} onChange=${change(key)} spellcheck=${false} autocomplete="off"
      placeholder=${index === 0 ? "any  ( / )" : "any"} /></label>`)}</div>`;
}

export function Tasks() {
  const { query } = usePlace();
  const { data, error, items, cursor, more, refresh } = useTasks(query);
  const isFiltered = Object.keys(chosen(query)).length > 0 || query.status;
  return html`<${Title} actions=${html`<${BulkCancel} query=${query} after=${refresh} />`}>Tasks<//>
    <${Tabs} label="State" of=${TABS} value=${query.status ?? ""} onPick=${(status) => refine({ status })} />
    <${FilterBar} query=${query} />
    <${Trouble} error=${error} />
    ${!data ? !error && html`<${Waiting} />` : items.length === 0
      ? html`<${Empty} title=${isFiltered ? "No task fits." : "No task yet."}>${isFiltered
          ? html`<${Link} to=${["tasks"]}>Show all tasks<//>`
          : html`Ask an agent: <code>laneway chat echo hello</code>, and the task shows here.`}<//>`
      : html`<div class="card flush"><${LongList} items=${items} label="Tasks" head=${TASK_HEAD} onEnd=${cursor ? more : undefined}
          row=${(task) => html`<${TaskRow} task=${task} time=${when} />`} /></div>
        <p class="faint small" role="status">${count(items.length)} shown${cursor ? "; scroll for more" : ""}.</p>`}`;
}
