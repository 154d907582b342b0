// Tasks by state; every filter is in the address, so that a link shares the view.

import { html, useCallback, useEffect, useRef, useState } from "../view.js";
import { ask, may, withQuery } from "../api.js";
import { useAnswer } from "../live.js";
import { Link, pick, usePlace } from "../route.js";
import { about, count, many } from "../words.js";
import { Act, nothing } from "../parts/dialog.js";
import { LongList } from "../parts/list.js";
import { Empty, TASK_HEAD, Tabs, TaskRow, Title, Trouble, Waiting, isOver } from "../parts/shown.js";
import { Since, Time } from "../parts/time.js";

const PAGE = 200;
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
  return html`${task.eta_ms === undefined ? "" : html`<span class="faint wide">${about(task.eta_ms, "in ~")} · </span>`}waits <${Since} at=${task.submitted_at} />`;
}

/** As many pages as one has scrolled to ask themselves again, so that none shows what is over. */
function useTasks(query) {
  const path = withQuery("api/tasks", { status: query.status, ...chosen(query) });
  const [wanted, setWanted] = useState({ of: path, pages: 1 });
  const number = wanted.of === path ? wanted.pages : 1;
  const asked = useRef(number);
  asked.current = number;
  const question = useCallback(async (signal) => {
    const items = [];
    let cursor;
    for (let page = 0; page < asked.current; page += 1) {
      const found = await ask("GET", withQuery("api/tasks", { status: query.status, ...chosen(query), limit: PAGE, cursor }), { signal });
      items.push(...found.items);
      cursor = found.next_cursor;
      if (!cursor) break;
    }
    // A task may move from one page to the next while they are asked for.
    return { items: [...new Map(items.map((task) => [task.id, task])).values()], cursor, pages: asked.current };
  }, [path]);
  const found = useAnswer(question, { concerns: ({ name }) => name === "changed" || name === "done", every: 10000 });
  const more = () => {
    if (found.data?.cursor && found.data.pages === number) setWanted({ of: path, pages: number + 1 });
  };
  useEffect(() => {
    if (number > 1) found.refresh();
  }, [number]);
  return { ...found, items: found.data?.items ?? [], cursor: found.data?.cursor, more };
}

/** Dead letters of what is filtered, run again; the server counts them first. */
function BulkRedrive({ query, after }) {
  const which = { lane: query.lane, kind: query.kind };
  if (!may("admin") || !["failed", "timed_out", "lost"].includes(query.status)) return null;
  if (query.session || query.group || query.parent || !(query.lane || query.kind)) {
    return html`<span class="hint">To run many again, filter by a home lane or a kind alone, or see <${Link} to=${["dead-letters"]}>the dead letters<//>.</span>`;
  }
  const said = Object.entries(which).filter(([, value]) => value).map(([key, value]) => `${key === "lane" ? "home lane" : key} “${value}”`).join(" and ");
  const question = async () => {
    const { count: found } = await ask("POST", "api/dead-letters/redrive", { body: { ...which, dry_run: true } });
    if (found === 0) return nothing(`No dead letter of ${said} is kept: there is nothing to run again.`);
    const number = many(found, "dead letter");
    return {
      title: `Run ${number} again?`, action: `Run ${number} again`,
      what: [`Every dead letter of ${said}, however it ended, becomes a new task with the same payload and joins its line: ${number} now.`, "If a line gets full, the rest stay."],
    };
  };
  const run = async () => `${many((await ask("POST", "api/dead-letters/redrive", { body: which })).count, "task")} run again.`;
  return html`<${Act} label="Run all again…" ask=${question} run=${run} after=${after} />`;
}

function BulkCancel({ query, after }) {
  const which = chosen(query);
  if (!may("admin") || !["", "queued", "retrying"].includes(query.status ?? "")) return null;
  const given = Object.entries(which).map(([key, value]) => `${key} “${value}”`).join(" and ");
  const said = given ? `task of ${given}` : "task";
  // Every task names the lane `global`.
  if (!given) which.lane = "global";
  const question = async () => {
    const { cancelled } = await ask("POST", "api/tasks/cancel", { body: { ...which, dry_run: true } });
    if (cancelled === 0) return nothing(`No ${said} waits.`);
    const number = many(cancelled, "task");
    return {
      title: `Cancel ${number}?`, action: `Cancel ${number}`, danger: true,
      what: [`Every ${said} that waits${given ? "" : ", in whatever lane"}, for a slot or for its next attempt, is cancelled: ${number} now. They cannot be brought back.`, "What runs is not touched."],
    };
  };
  const run = async () => `${many((await ask("POST", "api/tasks/cancel", { body: which })).cancelled, "task")} cancelled.`;
  return html`<${Act} label="Cancel all…" danger ask=${question} run=${run} after=${after} />`;
}

function FilterField({ name, value, isFirst }) {
  // What is being typed stays, although the page is drawn again with every change on the server.
  const [typed, setTyped] = useState(null);
  const done = (event) => {
    setTyped(null);
    pick({ [name]: event.target.value.trim() });
  };
  return html`<label><span>${name}</span><input type="search" value=${typed ?? value ?? ""} data-filter=${isFirst ? "" : null}
    onInput=${(event) => setTyped(event.target.value)} onChange=${done} spellcheck=${false} autocomplete="off" placeholder=${isFirst ? "any  ( / )" : "any"} /></label>`;
}

function FilterBar({ query }) {
  return html`<div class="filters">${FILTERS.map((name, index) => html`<${FilterField} key=${name} name=${name} value=${query[name]} isFirst=${index === 0} />`)}</div>`;
}

export function Tasks() {
  const { query } = usePlace();
  const { data, error, items, cursor, more, refresh } = useTasks(query);
  const isFiltered = Object.keys(chosen(query)).length > 0 || query.status;
  return html`<${Title} actions=${html`<${BulkCancel} query=${query} after=${refresh} /><${BulkRedrive} query=${query} after=${refresh} />`}>Tasks<//>
    <${Tabs} label="State" of=${TABS} value=${query.status ?? ""} onPick=${(status) => pick({ status })} />
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
