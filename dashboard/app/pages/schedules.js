// What starts by itself: in words, with its next runs in the reader's time zone.

import { html, useState } from "../view.js";
import { ask, may, part } from "../api.js";
import { useAnswer } from "../live.js";
import { cronWords } from "../words.js";
import { Act, note } from "../parts/dialog.js";
import { Empty, Facts, TaskLink, Title, Trouble, Waiting } from "../parts/shown.js";
import { Exact, Time } from "../parts/time.js";
import { agentsToAsk } from "./session.js";

const everySchedule = async (signal) => (await ask("GET", "api/schedules", { signal })).items;

const capital = (text) => text[0].toUpperCase() + text.slice(1);

function Runs({ name }) {
  const [runs, setRuns] = useState(null);
  const load = async (event) => {
    if (!event.target.open) return;
    try {
      setRuns((await ask("GET", `api/schedules/${part(name)}/runs`)).items);
    } catch (error) {
      note(error.message, "refused");
    }
  };
  return html`<details onToggle=${load}><summary>Past runs</summary>${runs && (runs.length === 0 ? html`<p class="faint">It has not fired yet.</p>`
    : html`<ul class="plain-list">${runs.slice(0, 20).map((run) => html`<li>${run.status} · ${run.trigger} · <${Time} at=${run.fired_at} />
      ${run.task_id && html` <${TaskLink} id=${run.task_id} />`}${run.error && html` <span class="bad">${run.error}</span>`}</li>`)}</ul>`)}</details>`;
}

function Card({ schedule, after }) {
  const path = `api/schedules/${part(schedule.name)}`;
  const toggle = async () => {
    await ask("PATCH", path, { body: { enabled: !schedule.enabled } });
    return schedule.enabled ? `${schedule.name} is paused.` : `${schedule.name} is on.`;
  };
  const pause = schedule.enabled && { title: `Pause ${schedule.name}?`, action: "Pause", what: ["It does not fire until it is switched on. What it has started goes on."] };
  const runNow = { title: `Run ${schedule.name} now?`, action: "Run now", what: [`“${schedule.message}” is sent to ${schedule.agent} at once. Its next times stay as they are.`] };
  const doRun = async () => {
    const run = await ask("POST", `${path}/run`);
    return run.error ? `It fired, but: ${run.error}` : `${schedule.name} has fired.`;
  };
  const remove = { title: `Remove ${schedule.name}?`, action: "Remove", danger: true, what: ["The schedule is gone for good. What it has started goes on."] };
  const doRemove = async () => {
    await ask("DELETE", path);
    return `${schedule.name} is removed.`;
  };
  const last = schedule.last_run;
  return html`<article class="card" aria-label=${`Schedule ${schedule.name}`}>
    <header><h2 class="name">${schedule.name}</h2><span class=${`lane-word ${schedule.enabled ? "busy" : "stopped"}`}>${schedule.enabled ? "on" : "paused"}</span></header>
    <p><strong>${capital(cronWords(schedule.cron) ?? schedule.words ?? schedule.cron)}</strong> <span class="faint">${schedule.timezone} · <code>${schedule.cron}</code></span></p>
    <p>“<bdi>${schedule.message}</bdi>” to ${schedule.agent}</p>
    <${Facts} of=${[["next, your time", schedule.next_runs.length > 0 && html`<ol class="plain-list">${schedule.next_runs.map((at) => html`<li><${Exact} at=${at} /> <span class="faint">(<${Time} at=${at} />)</span></li>`)}</ol>`],
      ["last", last && html`${last.status} <${Time} at=${last.fired_at} /> ${last.task_id && html`<${TaskLink} id=${last.task_id} />`} ${last.error && html`<span class="bad">${last.error}</span>`}`],
      ["if missed", schedule.catch_up === "one" ? "runs once" : "is skipped"], ["from", schedule.origin === "file" ? "the configuration file" : "the API"]]} />
    <${Runs} name=${schedule.name} />
    ${may("admin") && html`<footer class="actions"><${Act} label="Run now" ask=${runNow} run=${doRun} after=${after} />
      <${Act} label=${schedule.enabled ? "Pause" : "Switch on"} ask=${pause} run=${toggle} after=${after} />
      ${schedule.origin !== "file" && html`<${Act} label="Remove" danger ask=${remove} run=${doRemove} after=${after} />`}</footer>`}
  </article>`;
}

export function Schedules() {
  const { data, error, refresh } = useAnswer(everySchedule, { concerns: ({ name }) => name === "schedule_fired" || name === "configured", every: 5000 });
  const make = async () => ({
    title: "A new schedule", action: "Make it", what: ["It sends a message to an agent whenever its time comes."],
    fields: [{ name: "name", label: "Name" }, { name: "cron", label: "When (cron)", value: "0 9 * * 1-5", hint: "minute hour day month weekday" },
      { name: "timezone", label: "Time zone", value: Intl.DateTimeFormat().resolvedOptions().timeZone },
      { name: "agent", label: "Agent", choices: await agentsToAsk() }, { name: "message", label: "Message", type: "text-long" }],
  });
  const run = async (body) => {
    await ask("POST", "api/schedules", { body });
    return `${body.name} is made.`;
  };
  return html`<${Title} actions=${may("admin") && html`<${Act} label="New schedule…" primary ask=${make} run=${run} after=${refresh} />`}>Schedules<//>
    <${Trouble} error=${error} />
    ${!data ? !error && html`<${Waiting} />` : data.length === 0
      ? html`<${Empty} title="No schedule.">Make one here, or in laneway.hcl: <code>schedule "standup" { cron = "0 9 * * 1-5" … }</code><//>`
      : html`<div class="cards">${data.map((schedule) => html`<${Card} key=${schedule.name} schedule=${schedule} after=${refresh} />`)}</div>`}`;
}
