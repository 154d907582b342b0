// One lane: who runs since when, the line in order, its limits, and what one can do about it.

import { html, useCallback, useState } from "../view.js";
import { ask, may, pages, part } from "../api.js";
import { useAnswer } from "../live.js";
import { Link } from "../route.js";
import { about, called, count, length, lengthTyped, many, shortId } from "../words.js";
import { Act, note, nothing } from "../parts/dialog.js";
import { Line, Slots, laneWord } from "../parts/lanebar.js";
import { LongList } from "../parts/list.js";
import { Empty, Facts, Priority, TaskLink, Title, Trouble, Waiting } from "../parts/shown.js";
import { Since } from "../parts/time.js";
import { Blockers, explain } from "../parts/why.js";

const LINE_PAGES_MAX = 20;

const path = (lane) => `api/lanes/${part(lane)}`;

const whatRuns = ({ running }, fate) => (running ? `What runs ${fate}: ${many(running, "task")}.` : "Nothing runs here now.");

function Actions({ lane, after }) {
  if (!may("admin")) return null;
  const name = lane.lane;
  const gate = (verb) => async () => {
    await ask("POST", `${path(name)}/${verb}`);
    return { pause: `Lane ${name} is paused.`, resume: `Lane ${name} is open.`, drain: `Lane ${name} drains.` }[verb];
  };
  const now = () => ask("GET", path(name));
  const pause = async () => ({
    title: `Pause ${name}?`, action: "Pause",
    what: ["Nothing more starts in this lane until it is resumed.", `${whatRuns(await now(), "goes on")} New work still joins the line.`],
  });
  const drain = async () => {
    const found = await now();
    const waiting = found.waiting + found.retrying;
    return {
      title: `Drain ${name}?`, action: "Drain", danger: true,
      what: ["New work in this lane is refused until it is resumed.", whatRuns(found, "goes on"), waiting ? `What waits is still done: ${many(waiting, "task")}.` : "No task waits."],
    };
  };
  const clear = async () => {
    const [{ cancelled }, found] = await Promise.all([ask("POST", "api/tasks/cancel", { body: { lane: name, dry_run: true } }), now()]);
    if (cancelled === 0) return nothing(`No task waits in ${name}.`);
    const tasks = many(cancelled, "task");
    return {
      title: `Clear the line of ${name}?`, action: `Cancel ${tasks}`, danger: true,
      what: [`What waits here, for a slot or for its next attempt, is cancelled: ${tasks}. It cannot be brought back.`, whatRuns(found, "is not touched")],
    };
  };
  const doClear = async () => {
    const { cancelled } = await ask("POST", `${path(name)}/clear`);
    return `${many(cancelled, "task")} of ${name} cancelled.`;
  };
  return html`
    ${lane.paused || lane.draining
      ? html`<${Act} label="Resume" primary run=${gate("resume")} after=${after} />`
      : html`<${Act} label="Pause" ask=${pause} run=${gate("pause")} after=${after} />
        <${Act} label="Drain" ask=${drain} run=${gate("drain")} after=${after} />`}
    <${Act} label="Clear" danger ask=${clear} run=${doClear} after=${after} />`;
}

/** What one changes most comes first. */
const FIRST = ["max_concurrency", "max_queued", "rate_limit", "order", "priority"];
const inOrder = (settings) => Object.entries(settings).sort(([one], [other]) => {
  const rank = (key) => (FIRST.includes(key) ? FIRST.indexOf(key) : FIRST.length);
  return rank(one) - rank(other) || one.localeCompare(other);
});

/** A setting that can be changed where it stands. */
function Setting({ lane, name, value, after }) {
  const [edited, setEdited] = useState(null);
  const text = lengthTyped(String(value));
  if (!may("admin")) return html`<tr><th scope="row">${name}</th><td class="num">${text}</td></tr>`;
  const save = async (event) => {
    event.preventDefault();
    try {
      await ask("PATCH", path(lane), { body: { [name]: edited } });
      note(`${name} of ${lane} is ${edited} now.`);
      setEdited(null);
      after();
    } catch (error) {
      note(error.message, "refused");
    }
  };
  return html`<tr><th scope="row">${name}</th><td><form class="inline" onSubmit=${save}>
    <input aria-label=${`${name} of lane ${lane}`} value=${edited ?? text} size="14" spellcheck=${false} autocomplete="off"
      onInput=${(event) => setEdited(event.target.value)} onKeyDown=${(event) => event.key === "Escape" && setEdited(null)} />
    <button type="submit" class=${edited !== null && edited !== text ? "primary" : "primary hidden"}>Save</button></form></td></tr>`;
}

function Running({ tasks }) {
  if (tasks.length === 0) return html`<${Empty} title="Nothing runs here now.">What may run here starts by itself.<//>`;
  return html`<ul class="plain-list">${tasks.map((task) => html`<li key=${task.id}>
    <${Link} to=${["tasks", task.id]} class="row" data-row=""><span class="c-kind name" title=${task.kind}>${called(task)}</span>
      <span class="c-id id wide">${shortId(task.id)}</span><span class="c-lane wide name">${task.worker ? `by ${task.worker}` : ""}</span>
      <span class="c-time num">for <${Since} at=${task.started_at} /></span><//></li>`)}</ul>`;
}

/** What tells a task from the next of its kind. */
function besides(task, lane) {
  const [home] = task.lanes;
  const place = home === lane.lane || home === task.kind ? "" : `at home in ${home}${task.position ? `, #${task.position} there` : ""}`;
  const said = [task.session && `conversation ${task.session}`, place].filter(Boolean).join("; ");
  return said && html`<small class="faint" title=${said}>${said}</small>`;
}

/** Why the line does not move on: what its first waits for. */
function First({ task, why, here }) {
  return html`<div class="first-why" role="group" aria-label="Why the first waits">${why
    ? html`<p>The first, <${TaskLink} id=${task.id} />, waits because</p><${Blockers} blockers=${why.blockers} here=${here} />`
    : html`<p class="faint">The first has started meanwhile.</p>`}</div>`;
}

function Waits({ line, lane, why }) {
  if (line.items.length === 0) {
    const next = lane.running ? "New work starts at once if a slot is free." : "Send a task that names this lane, and it shows here.";
    return html`<${Empty} title="No task waits.">${next}<//>`;
  }
  const row = (task) => html`<${Link} to=${["tasks", task.id]} class="row" data-row="">
    <span class="c-place num">#${task.lane_position ?? "–"}</span>
    <span class="c-kind two" title=${task.id}><span class="name">${called(task)}</span>${besides(task, lane)}</span>
    <span class="c-prio"><${Priority} own=${task.priority} effective=${task.effective_priority} /></span>
    <span class="c-eta wide num">${task.eta_ms === undefined ? "" : about(task.eta_ms)}</span>
    <span class="c-since num">for <${Since} at=${task.submitted_at} /></span><//>`;
  return html`<${First} task=${line.items[0]} why=${why} here=${lane.lane} /><${LongList} items=${line.items} label=${`The line of ${lane.lane}`} row=${row} />
    ${line.more && html`<p class="faint small">Only the first ${count(line.items.length)} are listed.</p>`}`;
}

const LOOKS = { full: "full", "nearly full": "high", idle: "idle", paused: "stopped", draining: "stopped", "held up": "stopped" };

export function Lane({ name }) {
  const question = useCallback(async (signal) => {
    const [lane, running, line] = await Promise.all([
      ask("GET", path(name), { signal }),
      pages("api/tasks", { query: { lane: name, status: "running" }, signal, pagesMax: 1 }),
      pages("api/tasks", { query: { lane: name, status: "queued" }, signal, pagesMax: LINE_PAGES_MAX }),
    ]);
    const [first] = line.items;
    const why = first ? await explain(first.id, signal) : null;
    return { lane, running: running.items, line, why: why?.status === "queued" ? why : null };
  }, [name]);
  const concerns = ({ name: event, data }) => event === "configured" || data.lane === name
    || (event === "changed" && data.lane === "global");
  const { data, error, refresh } = useAnswer(question, { concerns, every: 5000 });
  if (!data) return html`<${Title}><span class="name">${name}</span><//>${error ? html`<${Trouble} error=${error} />` : html`<${Waiting} />`}`;
  const { lane, running, line, why } = data;
  const word = laneWord(lane);
  return html`<${Title} actions=${html`<${Actions} lane=${lane} after=${refresh} />`}>
      <span class="name">${name}</span> ${word && html`<span class=${`lane-word ${LOOKS[word]}`}>${word}</span>`}<//>
    <${Trouble} error=${error} />
    <section class="card lane-head" aria-label="Now">
      <div class="lane-big"><span class="num">${lane.running}<small> / ${lane.max_concurrency ?? "∞"}</small></span><${Slots} lane=${lane} />
        <${Line} waiting=${lane.waiting} known=${line.items} /><span class="num">${count(lane.waiting)} <small>waiting of ${count(lane.max_queued)} places</small></span></div>
      <${Facts} of=${[["retrying", count(lane.retrying)], ["accepted", count(lane.counters.accepted)], ["completed", count(lane.counters.completed)],
        ["failed", count(lane.counters.failed)], ["cancelled", count(lane.counters.cancelled)], ["waited too long", count(lane.counters.timed_out_waiting)],
        ["wait p50", length(lane.wait.p50_ms)], ["wait p95", length(lane.wait.p95_ms)], ["wait p99", length(lane.wait.p99_ms)], ["run p50", length(lane.run.p50_ms)], ["run p95", length(lane.run.p95_ms)], ["run p99", length(lane.run.p99_ms)]]} />
      ${lane.label !== lane.lane && html`<p class="faint small">All but “retrying” is counted for all lanes of <code>${lane.label}</code> together.</p>`}
    </section>
    <div class="columns">
      <div>
        <section class="card flush" aria-label="Running"><h2>Running</h2><${Running} tasks=${running} /></section>
        <section class="card flush" aria-label="Waiting tasks"><h2>Waiting tasks, in order</h2><${Waits} line=${line} lane=${lane} why=${why} /></section>
      </div>
      <section class="card" aria-label="Limits and settings"><h2>Limits and settings</h2>
        ${may("admin") && html`<p class="faint small">Type over a value and press Enter. It holds at once, until the configuration is read again.</p>`}
        <table class="settings"><tbody>${inOrder(lane.settings).map(([key, value]) => html`<${Setting} key=${key} lane=${name} name=${key} value=${value} after=${refresh} />`)}</tbody></table>
      </section>
    </div>`;
}
