// Who did what, the newest first.

import { html, useCallback, useState } from "../view.js";
import { ask, may, withQuery } from "../api.js";
import { useAnswer } from "../live.js";
import { refine, usePlace } from "../route.js";
import { stateWord } from "../words.js";
import { Empty, Filter, Folded, Title, Trouble, Waiting } from "../parts/shown.js";
import { Exact } from "../parts/time.js";

const SIGNS = { critical: "✕", warning: "▲", info: "·" };

function Entry({ entry }) {
  return html`<tr data-row="" tabindex="-1"><td class="num faint">${entry.id}</td><td><${Exact} at=${entry.at} /></td><td class="name">${entry.actor}</td>
    <td><span class=${`severity ${entry.severity}`}><span aria-hidden="true">${SIGNS[entry.severity] ?? "·"}</span> ${stateWord(entry.action)}</span></td>
    <td class="name">${entry.target}</td><td>${Object.keys(entry.details ?? {}).length > 0 && html`<${Folded} name="details" value=${entry.details} />`}</td></tr>`;
}

export function Audit() {
  const { query } = usePlace();
  const [limit, setLimit] = useState(100);
  const question = useCallback((signal) => ask("GET", withQuery("api/audit", { limit }), { signal }), [limit]);
  const { data, error } = useAnswer(question, { concerns: ({ name }) => ["paused", "resumed", "draining", "configured", "cancelled"].includes(name), every: 3000 });
  if (!may("admin")) return html`<${Title}>Audit<//><${Empty} title="This token may not see the audit log.">It needs the scope admin.<//>`;
  const wanted = (query.filter ?? "").toLowerCase();
  const shown = (data?.items ?? []).filter((entry) => `${entry.actor} ${entry.action} ${entry.target} ${entry.severity} ${JSON.stringify(entry.details)}`.toLowerCase().includes(wanted));
  return html`<${Title} actions=${html`<${Filter} label="Filter the audit log" value=${query.filter} onInput=${(filter) => refine({ filter })} />`}>Audit<//>
    <${Trouble} error=${error} />
    ${!data ? !error && html`<${Waiting} />` : shown.length === 0
      ? html`<${Empty} title=${wanted ? "No entry fits." : "Nothing has been changed yet."}>What is paused, cleared, released, redriven or set is written here, for good.<//>`
      : html`<div class="card scroll-x"><table><thead><tr><th class="num">no.</th><th>when</th><th>who</th><th>did</th><th>to</th><th></th></tr></thead>
          <tbody>${shown.map((entry) => html`<${Entry} key=${entry.id} entry=${entry} />`)}</tbody></table></div>
        ${data.next_cursor && limit < 500 && html`<button type="button" onClick=${() => setLimit(500)}>Show more</button>`}
        <p class="faint small">Each line is chained to the one before: <code>laneway audit verify</code> shows any edit.</p>`}`;
}
