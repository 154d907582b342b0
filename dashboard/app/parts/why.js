// Why something waits, as the server explains it.

import { html } from "../view.js";
import { ask, part } from "../api.js";
import { Link } from "../route.js";
import { TaskLink } from "./shown.js";
import { Exact, Since, Time } from "./time.js";

const HOLDERS_SHOWN = 12;

export const explain = (id, signal) => ask("GET", `api/tasks/${part(id)}/explain`, { signal });

function Holders({ tasks }) {
  return html`<span class="holders">by ${tasks.slice(0, HOLDERS_SHOWN).map((holder) => html`<${TaskLink} id=${holder} /> `)}
    ${tasks.length > HOLDERS_SHOWN ? `and ${tasks.length - HOLDERS_SHOWN} more` : ""}</span>`;
}

/** Everything that holds a task up, the first thing first; on the page of the lane `here` there is no link to it. */
export function Blockers({ blockers, here = null }) {
  if (blockers.length === 0) return html`<p>Nothing holds it up: it starts as soon as the server gets to it.</p>`;
  return html`<ol class="blockers">${blockers.map((blocker) => html`<li>
    <span>${blocker.detail}</span>
    ${blocker.lane && blocker.lane !== here && html` <${Link} to=${["lanes", blocker.lane]}>see the lane<//>`}
    ${blocker.until && html`<span class="faint"> until <${Exact} at=${blocker.until} /> (<${Time} at=${blocker.until} />)</span>`}
    ${blocker.since && html`<span class="faint"> for <${Since} at=${blocker.since} /></span>`}
    ${blocker.tasks?.length > 0 && html` <${Holders} tasks=${blocker.tasks} />`}
  </li>`)}</ol>`;
}

/** The first thing that holds it up, in a few words. */
export const reason = (explained) => explained?.blockers[0]?.detail ?? "";
