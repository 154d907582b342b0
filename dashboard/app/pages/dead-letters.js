// Tasks that could not be done: look at why, run them again, throw them away.

import { html, useRef, useState } from "../view.js";
import { ask, may, pages, part, withQuery } from "../api.js";
import { useAnswer } from "../live.js";
import { go, pick, refine, usePlace } from "../route.js";
import { count, many } from "../words.js";
import { Act, nothing } from "../parts/dialog.js";
import { Empty, Filter, Folded, LaneLink, TaskLink, Title, Trouble, Waiting } from "../parts/shown.js";
import { Time } from "../parts/time.js";

const everyLetter = (signal) => pages("api/dead-letters", { signal });
const SHOWN_AT_ONCE = 100;

/** The letters that are meant, the newest first: what broke last is looked for first. */
function fitting(letters, query) {
  const wanted = (query.filter ?? "").toLowerCase();
  const fits = (letter) => (!query.lane || letter.lane === query.lane) && (!query.kind || letter.kind === query.kind)
    && `${letter.error} ${letter.kind} ${letter.lane} ${letter.id}`.toLowerCase().includes(wanted);
  return letters.filter(fits).reverse();
}

/**
 * What a bulk action takes, of the letters there are when its button is pressed. What is filtered by lane or kind goes to the server as such,
 * which counts it; everything, kind by kind; what was searched for, letter by letter.
 */
async function chosenBy(query) {
  const shown = fitting((await everyLetter()).items, query);
  const said = [query.lane && `home lane “${query.lane}”`, query.kind && `kind “${query.kind}”`, query.filter && `text “${query.filter}”`].filter(Boolean).join(" and ");
  const kinds = [...new Set(shown.map((letter) => letter.kind))];
  const which = query.lane || query.kind ? [{ lane: query.lane, kind: query.kind }] : kinds.map((kind) => ({ kind }));
  const sum = async (act) => {
    let all = 0;
    for (const one of which) all += (await act(one)).count;
    return all;
  };
  const each = async (act) => {
    let done = 0;
    for (const letter of shown) {
      await act(`api/dead-letters/${part(letter.id)}`);
      done += 1;
    }
    return done;
  };
  if (query.filter) {
    return {
      said, number: async () => shown.length,
      redrive: () => each((path) => ask("POST", `${path}/redrive`)), discard: () => each((path) => ask("DELETE", path)),
    };
  }
  return {
    said,
    number: () => sum((one) => ask("POST", "api/dead-letters/redrive", { body: { ...one, dry_run: true } })),
    redrive: () => sum((one) => ask("POST", "api/dead-letters/redrive", { body: one })),
    discard: () => sum((one) => ask("DELETE", withQuery("api/dead-letters", one))),
  };
}

function Bulk({ shown, query, after }) {
  // The action applies to what the question named, even if the page is redrawn meanwhile.
  const asked = useRef(null);
  if (!may("admin") || shown.length === 0) return null;
  const about = (words) => async () => {
    asked.current = await chosenBy(query);
    const number = await asked.current.number();
    const said = asked.current.said ? ` of ${asked.current.said}` : "";
    return number === 0 ? nothing(`No dead letter${said} is left.`) : words(many(number, "dead letter"), said);
  };
  const again = about((letters, said) => ({
    title: `Run ${letters} again?`, action: `Run ${letters} again`,
    what: [`Every dead letter${said} becomes a new task with the same payload and joins its line.`, "If a line gets full, the rest stay here."],
  }));
  const away = about((letters, said) => ({
    title: `Throw ${letters} away?`, action: `Throw ${letters} away`, danger: true, what: [`Every dead letter${said} is gone for good, payload included.`],
  }));
  return html`<${Act} label=${`Run ${count(shown.length)} again`} primary ask=${again} run=${async () => `${many(await asked.current.redrive(), "task")} run again.`} after=${after} />
    <${Act} label=${`Throw ${count(shown.length)} away`} danger ask=${away} run=${async () => `${many(await asked.current.discard(), "dead letter")} thrown away.`} after=${after} />`;
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
  const [most, setMost] = useState(SHOWN_AT_ONCE);
  const { data, error, refresh } = useAnswer(everyLetter, { concerns: ({ name }) => ["dead_lettered", "accepted"].includes(name), every: 10000 });
  const shown = fitting(data?.items ?? [], query);
  const choices = (key) => [...new Set((data?.items ?? []).map((letter) => letter[key]))].sort();
  const choice = (key) => html`<label><span>${key}</span><select value=${query[key] ?? ""} onChange=${(event) => pick({ [key]: event.target.value })}>
    <option value="">any</option>${choices(key).map((one) => html`<option value=${one}>${one}</option>`)}</select></label>`;
  return html`<${Title} actions=${html`<${Bulk} shown=${shown} query=${query} after=${refresh} />`}>Dead letters<//>
    <div class="filters">${choice("lane")}${choice("kind")}<label><span>text</span><${Filter} label="Filter dead letters" value=${query.filter} onInput=${(filter) => refine({ filter })} /></label></div>
    <${Trouble} error=${error} />
    ${!data ? !error && html`<${Waiting} />` : shown.length === 0
      ? html`<${Empty} title=${data.items.length ? "No dead letter fits." : "No dead letters."}>${data.items.length ? "Clear the filters to see all of them." : "A task that fails after its last attempt is kept here, to be run again or thrown away."}<//>`
      : html`${shown.slice(0, most).map((letter) => html`<${Letter} key=${letter.id} letter=${letter} after=${refresh} />`)}
        ${shown.length > most && html`<p><button type="button" onClick=${() => setMost(most + SHOWN_AT_ONCE)}>Show more</button></p>`}
        <p class="faint small">${many(Math.min(shown.length, most), "dead letter")} of ${count(data.items.length)}${data.more ? " and more" : ""} shown, the newest first.</p>`}`;
}
