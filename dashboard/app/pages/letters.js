// Tasks that could not be done: look at why, run them again, throw them away.

import { html } from "../view.js";
import { ask, may, pages, part, withQuery } from "../api.js";
import { useAnswer } from "../live.js";
import { go, refine, usePlace } from "../route.js";
import { count, many } from "../words.js";
import { Act } from "../parts/dialog.js";
import { Empty, Filter, Folded, LaneLink, TaskLink, Title, Trouble, Waiting } from "../parts/shown.js";
import { Time } from "../parts/time.js";

const everyLetter = (signal) => pages("api/dead-letters", { signal });
const SHOWN_MAX = 200;

function Bulk({ letters, query, after }) {
  if (!may("admin")) return null;
  const which = { lane: query.lane, kind: query.kind };
  const said = [query.lane && `lane “${query.lane}”`, query.kind && `kind “${query.kind}”`].filter(Boolean).join(" and ");
  if (!said) return html`<button type="button" disabled title="Filter by a lane or a kind first">All of them…</button>`;
  const number = many(letters.length, "dead letter");
  const redrive = { title: `Run ${number} again?`, action: `Run ${number} again`, what: [`Every dead letter of ${said} becomes a new task with the same payload and joins its line.`, "If a line gets full, the rest stay here."] };
  const discard = { title: `Throw ${number} away?`, action: `Throw ${number} away`, danger: true, what: [`Every dead letter of ${said} is gone for good, payload included.`] };
  const doRedrive = async () => `${many((await ask("POST", "api/dead-letters/redrive", { body: which })).count, "task")} run again.`;
  const doDiscard = async () => `${many((await ask("DELETE", withQuery("api/dead-letters", which))).count, "dead letter")} thrown away.`;
  return html`<${Act} label=${`Run ${count(letters.length)} again`} primary disabled=${!letters.length} ask=${redrive} run=${doRedrive} after=${after} />
    <${Act} label=${`Throw ${count(letters.length)} away`} danger disabled=${!letters.length} ask=${discard} run=${doDiscard} after=${after} />`;
}

function Letter({ letter, after }) {
  const path = `api/dead-letters/${part(letter.id)}`;
  const doRedrive = async () => {
    const { tasks } = await ask("POST", `${path}/redrive`);
    if (tasks[0]) go(["tasks", tasks[0]]);
    return "It runs again, as a new task.";
  };
  const discard = { title: "Throw it away?", action: "Throw away", danger: true, what: ["The dead letter and its payload are gone for good."] };
  const doDiscard = async () => {
    await ask("DELETE", path);
    return "Thrown away.";
  };
  const redrive = { title: "Run it again?", action: "Run again", what: ["A new task with the same payload joins the line. The dead letter goes away."] };
  return html`<article class="card letter" data-row="" tabindex="-1" aria-label=${`Dead letter ${letter.id}`}>
    <header><span class="name">${letter.kind}</span> in <${LaneLink} lane=${letter.lane} /> <${TaskLink} id=${letter.id} />
      <span class="faint">${many(letter.attempts, "attempt")}, <${Time} at=${letter.at} /></span>
      <span class="actions">${may("admin") && html`<${Act} label="Run again" ask=${redrive} run=${doRedrive} after=${after} />
        <${Act} label="Throw away" danger ask=${discard} run=${doDiscard} after=${after} />`}</span></header>
    <pre class="error">${letter.error}</pre>
    <${Folded} name="Payload" value=${letter.payload} />
  </article>`;
}

export function Letters() {
  const { query } = usePlace();
  const { data, error, refresh } = useAnswer(everyLetter, { concerns: ({ name }) => ["dead_lettered", "accepted"].includes(name), every: 10000 });
  const wanted = (query.filter ?? "").toLowerCase();
  const fits = (letter) => (!query.lane || letter.lane === query.lane) && (!query.kind || letter.kind === query.kind);
  const chosen = (data?.items ?? []).filter(fits);
  const shown = chosen.filter((letter) => `${letter.error} ${letter.kind} ${letter.lane} ${letter.id}`.toLowerCase().includes(wanted));
  const choices = (key) => [...new Set((data?.items ?? []).map((letter) => letter[key]))].sort();
  const pick = (key) => html`<label><span>${key}</span><select value=${query[key] ?? ""} onChange=${(event) => refine({ [key]: event.target.value })}>
    <option value="">any</option>${choices(key).map((choice) => html`<option value=${choice}>${choice}</option>`)}</select></label>`;
  return html`<${Title} actions=${html`<${Bulk} letters=${chosen} query=${query} after=${refresh} />`}>Dead letters<//>
    <div class="filters">${pick("lane")}${pick("kind")}<label><span>text</span><${Filter} label="Filter dead letters" value=${query.filter} onInput=${(filter) => refine({ filter })} /></label></div>
    <${Trouble} error=${error} />
    ${!data ? !error && html`<${Waiting} />` : shown.length === 0
      ? html`<${Empty} title=${data.items.length ? "No dead letter fits." : "No dead letters."}>${data.items.length ? "Clear the filters to see all of them." : "A task that fails after its last attempt is kept here, to be run again or thrown away."}<//>`
      : html`${shown.slice(0, SHOWN_MAX).map((letter) => html`<${Letter} key=${letter.id} letter=${letter} after=${refresh} />`)}
        <p class="faint small">${many(Math.min(shown.length, SHOWN_MAX), "dead letter")} of ${count(data.items.length)}${data.more ? " and more" : ""} shown, the oldest first.</p>`}`;
}
