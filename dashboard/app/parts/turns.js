// The turns of a conversation: what was asked, and what was answered.

import { html } from "../view.js";
import { ask, part } from "../api.js";
import { Link } from "../route.js";
import { isOver } from "../words.js";
import { State, TaskLink } from "./shown.js";
import { Time } from "./time.js";

/** How many turns are shown. */
const TOLD = 8;
const TEXT_MAX = 1500;

/** What is over does not change: it is asked for once. */
const known = new Map();
const KNOWN_MAX = 200;

async function told(turn, signal) {
  if (known.has(turn.id)) return known.get(turn.id);
  const whole = await ask("GET", `api/tasks/${part(turn.id)}`, { signal });
  if (isOver(whole.status)) {
    if (known.size >= KNOWN_MAX) known.delete(known.keys().next().value);
    known.set(turn.id, whole);
  }
  return whole;
}

/** The newest turns that are over, with what was said in them. */
export async function pastTurns(turns, signal) {
  const over = turns.filter((turn) => isOver(turn.status));
  return Promise.all(over.slice(0, TOLD).map((turn) => told(turn, signal)));
}

function Said({ text, by, kind }) {
  return html`<div class=${`said-by ${kind}`}><p class="message">${text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}…` : text}</p>
    ${by && html`<span class="faint small"><bdi>${by}</bdi></span>`}</div>`;
}

const inWords = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

function Turn({ turn }) {
  const { payload, result } = turn;
  const messages = payload?.messages ?? [];
  const asked = messages.length > 0 ? messages : payload?.message ? [{ text: payload.message }] : [];
  return html`<li class="turn"><p><${State} status=${turn.status} /> <${TaskLink} id=${turn.id} /> <span class="faint"><${Time} at=${turn.ended_at ?? turn.submitted_at} /></span></p>
    ${asked.map((message) => html`<${Said} text=${message.text} by=${message.sender_name} kind="asked" />`)}
    ${turn.error && html`<pre class="error">${turn.error}</pre>`}
    ${result !== undefined && result !== null && html`<${Said} text=${inWords(result).trim()} by=${payload?.agent} kind="answered" />`}</li>`;
}

export function Turns({ turns, name }) {
  return html`<section class="card" aria-label="Turns"><h2>Turns</h2>
    ${turns.length === 0 ? html`<p class="faint">None is over yet.</p>` : html`<ol class="plain-list">${turns.map((turn) => html`<${Turn} key=${turn.id} turn=${turn} />`)}</ol>`}
    <p><${Link} to=${["tasks"]} query=${{ session: name }}>All its tasks →<//></p></section>`;
}
