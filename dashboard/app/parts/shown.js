// Small things that many pages show.

import { html, useEffect, useRef, useState } from "../view.js";
import { Link } from "../route.js";
import { SIGNS, called, count, isOver, shortId, stateWord, urgency } from "../words.js";

export function State({ status }) {
  return html`<span class=${`state ${status}`}><span aria-hidden="true">${SIGNS[status] ?? "·"}</span> ${stateWord(status)}</span>`;
}

export function Priority({ own, effective }) {
  const now = effective ?? own;
  const raised = now !== own ? ` (own ${own})` : "";
  return html`<span class=${`priority ${urgency(now)}`} title=${`priority ${now}${raised}; higher goes first`}>p${now}</span>`;
}

export function LaneLink({ lane }) {
  return html`<${Link} to=${["lanes", lane]} class="name">${lane}<//>`;
}

export function TaskLink({ id, whole }) {
  return html`<${Link} to=${["tasks", id]} class="id" title=${id}>${whole ? id : shortId(id)}<//>`;
}

export function Title({ children, actions }) {
  return html`<div class="title"><h1>${children}</h1><div class="actions">${actions}</div></div>`;
}

/** Nothing is there, and what to do next. */
export function Empty({ title, children }) {
  return html`<div class="empty"><strong>${title}</strong><div>${children}</div></div>`;
}

/** What stands in place of data that did not come. */
export function Trouble({ error }) {
  if (!error) return null;
  const words = {
    403: "This token may not see this. Sign in with one that has the scope it names.",
    404: "It is not there, or no longer.",
  };
  return html`<div class="trouble" role="alert"><span aria-hidden="true">▲</span><div><strong>${error.message}</strong>
    ${words[error.status] && html`<div>${words[error.status]}</div>`}</div></div>`;
}

export function Waiting() {
  return html`<div class="loading" aria-busy="true">Loading…</div>`;
}

/** Data, folded until the reader opens it. */
export function Folded({ name, value, open = false }) {
  const [isOpen, setOpen] = useState(open);
  if (value === undefined || value === null) return null;
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return html`<details open=${isOpen} onToggle=${(event) => setOpen(event.target.open)}>
    <summary>${name} <small>${count(text.length)} characters</small></summary>
    ${isOpen && html`<pre tabindex="0">${text}</pre>`}
  </details>`;
}

/** Pairs of name and value; those without a value are left out. */
export function Facts({ of }) {
  const given = of.filter(([, value]) => value !== null && value !== undefined && value !== false);
  return html`<dl class="facts">${given.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

export function Filter({ value, onInput, label, placeholder }) {
  return html`<input class="filter" type="search" data-filter aria-label=${label} placeholder=${placeholder ?? "Filter  ( / )"}
    value=${value ?? ""} onInput=${(event) => onInput(event.target.value)} spellcheck=${false} autocomplete="off" />`;
}

/** Scrolls a row sideways until the one that is meant stands in its middle. */
export function showWithin(row, which) {
  const one = row.querySelector(which);
  if (one) row.scrollTo({ left: one.offsetLeft - row.offsetLeft - (row.clientWidth - one.clientWidth) / 2 });
}

/** One of them is picked, with the pointer or with the arrows. */
export function Tabs({ of, value, onPick, label }) {
  const row = useRef(null);
  // Where not all have room, the one that is picked is among those that one sees.
  useEffect(() => showWithin(row.current, "[aria-selected=true]"), [value]);
  const pressed = (event) => {
    // From where the focus is, which moves at once: the one that is picked is drawn a moment later.
    const at = [...event.currentTarget.children].indexOf(event.target.closest("[role=tab]"));
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: of.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = (to + of.length) % of.length;
    onPick(of[next][0]);
    event.currentTarget.children[next].focus();
  };
  return html`<div class="tabs" role="tablist" ref=${row} aria-label=${label} onKeyDown=${pressed}>${of.map(([key, name]) => html`
    <button role="tab" type="button" aria-selected=${key === value} tabindex=${key === value ? 0 : -1} onClick=${() => onPick(key)}>${name}</button>`)}</div>`;
}

/** One row of a list of tasks. */
export function TaskRow({ task, time }) {
  const [home, ...others] = task.lanes;
  return html`<${Link} to=${["tasks", task.id]} class="row" data-row="">
    <span class="c-state"><${State} status=${task.status} /></span>
    <span class="c-place num">${task.position ? `#${task.position}` : ""}</span>
    <span class="c-kind name" title=${task.kind}>${called(task)}</span>
    <span class="c-lane wide name" title=${task.lanes.join(", ")}>${home}${others.length ? html` <small>+${others.length}</small>` : ""}</span>
    <span class="c-prio wide"><${Priority} own=${task.priority} effective=${task.effective_priority} /></span>
    <span class="c-id wide id">${shortId(task.id)}</span>
    <span class="c-time num">${time(task)}</span>
  <//>`;
}

export const TASK_HEAD = html`<span class="c-state">state</span><span class="c-place">place</span><span class="c-kind">kind</span>
  <span class="c-lane wide">lanes</span><span class="c-prio wide">prio</span><span class="c-id wide">task</span><span class="c-time">when</span>`;

export { isOver };
