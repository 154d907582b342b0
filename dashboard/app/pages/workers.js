// The workers, until when their leases hold, and the tasks that wait for a claim.

import { html } from "../view.js";
import { ask, pages } from "../api.js";
import { useAnswer } from "../live.js";
import { Link } from "../route.js";
import { count, length, many, shortId } from "../words.js";
import { LongList } from "../parts/list.js";
import { Empty, LaneLink, TaskLink, Title, Trouble, Waiting } from "../parts/shown.js";
import { Time } from "../parts/time.js";

const HELD_SHOWN = 12;

async function everyWorker(signal) {
  const [workers, pending] = await Promise.all([ask("GET", "api/workers", { signal }), pages("api/external-tasks", { signal, pagesMax: 4 })]);
  return { workers: workers.items, pending };
}

function Worker({ worker }) {
  return html`<tr><th scope="row" class="name">${worker.worker}</th><td class="num">${count(worker.tasks.length)}</td>
    <td class="when"><${Time} at=${worker.last_heartbeat} /></td><td class="when"><${Time} at=${worker.lease_until} /></td>
    <td class="holds"><ul class="plain-list">${worker.leases.slice(0, HELD_SHOWN).map((lease) => html`<li key=${lease.task}><${TaskLink} id=${lease.task} /> <span class="name">${lease.kind}</span>${" "}
      <span class="faint small">heard <${Time} at=${lease.last_heartbeat} />, lease until <${Time} at=${lease.lease_until} /></span></li>`)}</ul>
      ${worker.leases.length > HELD_SHOWN ? `and ${worker.leases.length - HELD_SHOWN} more` : ""}</td></tr>`;
}

function Pending({ task }) {
  return html`<${Link} to=${["tasks", task.id]} class="row" data-row=""><span class="c-kind name" title=${task.kind}>${task.kind}</span>
    <span class="c-lane wide name" title=${task.lane}>${task.lane}</span><span class="c-id wide id">${shortId(task.id)}</span>
    <span class="c-place num">${task.attempt}</span><span class="c-since num">${task.remaining_ms === undefined || task.remaining_ms === null ? "–" : `in ${length(task.remaining_ms)}`}</span><//>`;
}

const HEAD = html`<span class="c-kind">kind</span><span class="c-lane wide">lane</span><span class="c-id wide">task</span>
  <span class="c-place">attempt</span><span class="c-since">gives up</span>`;

export function Workers() {
  const { data, error } = useAnswer(everyWorker, { concerns: ({ name }) => name.startsWith("external_task") || ["changed", "started", "done"].includes(name), every: 3000 });
  return html`<${Title}>Workers<//><${Trouble} error=${error} />
    ${!data ? !error && html`<${Waiting} />` : html`
      <section class="card" aria-label="Workers with leases"><h2>Workers with leases</h2>
        ${data.workers.length === 0
          ? html`<${Empty} title="No worker holds a task.">Start one: <code>laneway worker</code>, or claim over <code>POST /api/claim</code>.<//>`
          : html`<div class="scroll-x"><table class="workers"><thead><tr><th>worker</th><th class="num">tasks</th><th>last heartbeat</th><th>first lease until</th><th>holds</th></tr></thead>
              <tbody>${data.workers.map((worker) => html`<${Worker} key=${worker.worker} worker=${worker} />`)}</tbody></table></div>`}
      </section>
      <section class="card flush" aria-label="Waiting for a worker"><h2>Waiting for a worker</h2>
        ${data.pending.items.length === 0
          ? html`<${Empty} title="Nothing waits for a worker.">Tasks of external lanes and agents show here until a worker claims them.<//>`
          : html`<${LongList} items=${data.pending.items} label="Tasks that wait for a worker" head=${HEAD} row=${(task) => html`<${Pending} task=${task} />`} />
            <p class="faint small">${many(data.pending.items.length, "task")}${data.pending.more ? " and more" : ""}, in the order of the line. First lane: <${LaneLink} lane=${data.pending.items[0].lane} /></p>`}
      </section>`}`;
}
