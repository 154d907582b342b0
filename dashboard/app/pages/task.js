// One task: the story of its life, why it waits, what it says, and what one can do about it.

import { html, useCallback, useEffect, useState } from "../view.js";
import { ask, may, part, send, withQuery } from "../api.js";
import { read, useAnswer } from "../live.js";
import { Link, go } from "../route.js";
import { about, called, isOver, length, many, stateWord } from "../words.js";
import { Act, nothing } from "../parts/dialog.js";
import { Empty, Facts, Folded, LaneLink, Priority, State, TaskLink, Title, Trouble, Waiting } from "../parts/shown.js";
import { Exact, Time } from "../parts/time.js";
import { Blockers, explain } from "../parts/why.js";

const TEXT_MAX = 200000;
const EVENTS_MAX = 200;
const CHILDREN_SHOWN = 100;
const QUIET = new Set(["done", "delta", "position", "queued", "accepted", "typing"]);
const isWaiting = (status) => ["queued", "retrying"].includes(status);
const DEAD = ["failed", "timed_out", "lost"];

/** The text and the events of a task, as they come. */
function useStory(id, isLive) {
  const [story, setStory] = useState({ text: "", events: [] });
  useEffect(() => {
    setStory({ text: "", events: [] });
    if (!isLive) return undefined;
    const going = new AbortController();
    const hear = ({ name, data }) => setStory((last) => {
      if (name === "delta") return { ...last, text: (last.text + data.text).slice(-TEXT_MAX) };
      if (QUIET.has(name)) return last;
      return { ...last, events: [...last.events, { name, ...data, at: data.at ?? new Date().toISOString() }].slice(-EVENTS_MAX) };
    });
    send("GET", `api/tasks/${part(id)}/events`, { signal: going.signal })
      .then((response) => response.status === 200 && read(response, hear))
      .catch(() => {});
    return () => going.abort();
  }, [id, isLive]);
  return story;
}

function saidOf(event) {
  switch (event.name) {
    case "started": return `attempt ${event.attempt} started${event.worker ? `, by ${event.worker}` : ""}`;
    case "retrying": return `attempt failed: ${event.error}; the next in ${length(event.delay_ms)}`;
    case "boosted": return `priority raised${event.by ? ` by ${event.by}` : ""}`;
    case "notice": return `waited ${length(event.waited_ms)}, ${many(event.ahead, "task")} ahead`;
    case "progress": return `progress: ${typeof event.progress === "string" ? event.progress : JSON.stringify(event.progress)}`;
    case "failed": return `failed: ${event.error ?? event.code}`;
    case "cancelled": return `cancelled (${event.reason})`;
    default: return stateWord(event.name);
  }
}

/** What the server remembers of the attempts, as steps; what has been heard as it happened is not told twice. */
function attemptSteps(task, events) {
  const heard = new Set(events.filter((event) => event.name === "started").map((event) => event.attempt));
  return (task.attempt_list ?? []).flatMap((attempt) => {
    const by = attempt.worker ? `, by ${attempt.worker}` : "";
    const begun = attempt.started_at && !heard.has(attempt.number)
      ? [{ at: attempt.started_at, said: `attempt ${attempt.number} started${by}`, kind: "started" }] : [];
    const isFollowed = attempt.number < task.attempts || !isOver(task.status);
    const isTold = events.some((event) => event.name === "retrying" && Math.abs(Date.parse(event.at) - Date.parse(attempt.ended_at)) < 2);
    const failed = attempt.ended_at && isFollowed && !isTold
      ? [{ at: attempt.ended_at, said: `attempt ${attempt.number} failed: ${attempt.error}`, kind: "retrying" }] : [];
    return [...begun, ...failed];
  });
}

function Timeline({ task, events }) {
  const told = events.map((event) => ({ at: event.at, said: saidOf(event), kind: event.name }));
  const steps = [{ at: task.submitted_at, said: `accepted from ${task.source}`, kind: "accepted" }, ...attemptSteps(task, events), ...told];
  if (task.ended_at && !told.some((step) => step.kind === task.status)) {
    steps.push({ at: task.ended_at, said: `${stateWord(task.status)}${task.error ? `: ${task.error}` : task.reason ? ` (${task.reason})` : ""}`, kind: task.status });
  }
  steps.sort((one, other) => one.at.localeCompare(other.at));
  return html`<ol class="timeline">${steps.map((step, index) => {
    const before = index ? Date.parse(step.at) - Date.parse(steps[index - 1].at) : 0;
    return html`<li class=${step.kind}><span class="said">${step.said}</span>
      <span class="faint"><${Exact} at=${step.at} />${index ? html` · ${length(before)} later` : ""}</span></li>`;
  })}</ol>`;
}

function Why({ id, task }) {
  const question = useCallback((signal) => explain(id, signal), [id]);
  const { data, error } = useAnswer(question, { concerns: ({ name }) => name === "changed", every: 3000 });
  if (error) return html`<${Trouble} error=${error} />`;
  if (!data) return html`<${Waiting} />`;
  const place = data.position ? `Place ${data.position} in line` : "In no line";
  return html`<p class="place"><strong>${place}</strong>${data.eta_ms !== undefined && data.eta_ms !== null ? `, starts ${data.eta_ms < 1000 ? "any moment" : about(data.eta_ms)}` : ""}.
      ${task.wait_until && html` It gives up <${Time} at=${task.wait_until} />.`}</p>
    <${Blockers} blockers=${data.blockers} />`;
}

function Actions({ task, isDead, after }) {
  const id = task.id;
  const path = `api/tasks/${part(id)}`;
  const cancel = async () => {
    const { status } = await ask("GET", path);
    if (isOver(status)) return nothing(`There is nothing to cancel: the task is over (${stateWord(status)}).`);
    return {
      title: "Cancel this task?", danger: true, action: "Cancel it",
      what: [status === "running" ? "It gets a signal to stop now. What it has done so far is not undone." : "It leaves the line and never runs. It cannot be brought back."],
    };
  };
  const doCancel = async () => {
    const { status } = await ask("DELETE", path);
    return `The task: ${stateWord(status)}.`;
  };
  const raise = async () => {
    const { status, priority } = await ask("GET", path);
    if (!isWaiting(status)) return nothing(`It no longer waits (${stateWord(status)}): a priority changes nothing.`);
    return {
      title: "Change its priority?", action: "Change",
      what: ["A task of a higher priority goes before those of a lower one in every lane it waits for."],
      fields: [{ name: "priority", label: "Priority, 0 to 9", type: "number", value: priority }],
    };
  };
  const doRaise = async ({ priority }) => {
    await ask("PATCH", path, { body: { priority: Number(priority) } });
    return `Its priority is ${priority} now.`;
  };
  const redrive = { title: "Run it again?", action: "Run again", what: ["A new task with the same payload joins the line. The dead letter goes away."] };
  const doRedrive = async () => {
    const { tasks } = await ask("POST", `api/dead-letters/${part(id)}/redrive`);
    if (tasks[0]) go(["tasks", tasks[0]]);
    return "It runs again, as a new task.";
  };
  return html`
    ${!isOver(task.status) && may("submit") && html`<${Act} label="Priority…" ask=${raise} run=${doRaise} after=${after} />`}
    ${!isOver(task.status) && may("submit") && html`<${Act} label="Cancel" danger ask=${cancel} run=${doCancel} after=${after} disabled=${task.cancel_requested} />`}
    ${isDead && may("admin") && html`<${Act} label="Run again" primary ask=${redrive} run=${doRedrive} />`}`;
}

async function whole(id, signal) {
  const task = await ask("GET", `api/tasks/${part(id)}`, { signal });
  const deadLetters = DEAD.includes(task.status) ? await ask("GET", "api/dead-letters?limit=500", { signal }) : { items: [] };
  const children = await ask("GET", withQuery("api/tasks", { parent: id, limit: CHILDREN_SHOWN }), { signal });
  const deadLetter = deadLetters.items.find((one) => one.id === task.id);
  return { task, deadLetter, children };
}

export function Task({ id }) {
  const question = useCallback((signal) => whole(id, signal), [id]);
  const { data, error, refresh } = useAnswer(question, { concerns: ({ data: about }) => about.task_id === id, every: 5000 });
  const isLive = data ? !isOver(data.task.status) : false;
  const { text, events } = useStory(id, isLive);
  if (!data) return html`<${Title}>Task<//>${error ? html`<${Trouble} error=${error} />` : html`<${Waiting} />`}`;
  const { task, deadLetter, children } = data;
  return html`<${Title} actions=${html`<${Actions} task=${task} isDead=${Boolean(deadLetter)} after=${refresh} />`}>
      <span class="name">${called(task)}</span> <${State} status=${task.status} /><//>
    <p class="id selectable">${task.id}</p>
    <${Trouble} error=${error} />
    ${isWaiting(task.status) && html`<section class="card why" aria-label="Why it waits"><h2>Why it waits</h2><${Why} id=${id} task=${task} /></section>`}
    <div class="columns">
      <div>
        <section class="card" aria-label="Timeline"><h2>Timeline</h2><${Timeline} task=${task} events=${events} /></section>
        ${(text || task.status === "running") && html`<section class="card" aria-label="What it says"><h2>What it says</h2>
          <pre class="stream" tabindex="0">${text || "Nothing yet."}</pre></section>`}
        <section class="card" aria-label="Data"><h2>Data</h2>
          ${task.error && html`<pre class="error">${task.error}</pre>`}
          <${Folded} name="Payload" value=${task.payload ?? deadLetter?.payload} /><${Folded} name="Result" value=${task.result} />
          ${task.payload === undefined && !deadLetter && html`<p class="faint small">The payload is not remembered: the task ended without a run, or it is too long.</p>`}
        </section>
      </div>
      <section class="card" aria-label="Facts"><h2>Facts</h2><${Facts} of=${[
        ["lanes", html`<span class="list">${task.lanes.map((lane) => html`<${LaneLink} lane=${lane} />`)}</span>`],
        ["kind", task.label && task.kind], ["conversation", task.session && html`<${Link} to=${["sessions", task.session]} class="name">${task.session}<//>`],
        ["attempts", task.attempts], ["priority", html`<${Priority} own=${task.priority} effective=${task.effective_priority} />`],
        ["asked by", task.source], ["worker", task.worker], ["submitted", html`<${Time} at=${task.submitted_at} />`],
        ["started", task.started_at && html`<${Time} at=${task.started_at} />`], ["ended", task.ended_at && html`<${Time} at=${task.ended_at} />`],
        ["lease until", task.lease_until && html`<${Time} at=${task.lease_until} />`], ["deadline", task.deadline_at && html`<${Time} at=${task.deadline_at} />`],
        ["may run for", task.timeout_ms && length(task.timeout_ms)], ["group", task.group && html`<${Link} to=${["tasks"]} query=${{ group: task.group }} class="name">${task.group}<//>`],
        ["parent", task.parent && html`<${TaskLink} id=${task.parent} />`],
        ["stop requested", task.cancel_requested && "yes"]]} />
        <h2>Children</h2>
        ${children.items.length === 0
          ? html`<${Empty} title="None.">A task that names this one as its parent shows here.<//>`
          : html`<ul class="plain-list" aria-label="Children">${children.items.map((child) => html`<li key=${child.id}><${TaskLink} id=${child.id} /> <span class="name">${called(child)}</span> <${State} status=${child.status} /></li>`)}</ul>
            ${children.next_cursor && html`<p><${Link} to=${["tasks"]} query=${{ parent: task.id }}>All its children →<//></p>`}`}
      </section>
    </div>`;
}
