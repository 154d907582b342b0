// A card for each agent: busy or idle, how full, what it does now, which tasks wait for it.

import { html, useCallback } from "../view.js";
import { ask, may, part } from "../api.js";
import { useAnswer } from "../live.js";
import { usePlace, refine } from "../route.js";
import { count, many } from "../words.js";
import { Act, nothing } from "../parts/dialog.js";
import { Slots } from "../parts/lanebar.js";
import { Empty, Filter, LaneLink, Priority, TaskLink, Title, Trouble, Waiting } from "../parts/shown.js";
import { Since } from "../parts/time.js";
import { explain, reason } from "../parts/why.js";

const QUEUE_SHOWN = 5;
const RUNS_SHOWN = 8;

async function everyAgent(signal) {
  const { items } = await ask("GET", "api/agents", { signal });
  const queues = await Promise.all(items.map((agent) => ask("GET", `api/agents/${part(agent.name)}/queue`, { signal })));
  // For an idle agent with waiting tasks: what the first task waits for.
  const whys = await Promise.all(items.map((agent, index) => {
    const [first] = queues[index].queued_executions;
    return first && agent.running === 0 ? explain(first.id, signal) : null;
  }));
  return items.map((agent, index) => ({ agent, queue: queues[index], why: whys[index] }));
}

const RUNNERS = { command: "a program", url: "an HTTP service", external: "workers elsewhere", echo: "says what it hears" };

function Runs({ runs }) {
  return runs.slice(0, RUNS_SHOWN).map((run) => html`<div key=${run.id}><strong>Now</strong> <${TaskLink} id=${run.id} /> for <${Since} at=${run.started_at} />
    <p class="message">${run.message}</p></div>`);
}

function Card({ agent, queue, why, after }) {
  const path = `api/agents/${part(agent.name)}`;
  const clear = async () => {
    const { cancelled } = await ask("POST", "api/tasks/cancel", { body: { lane: agent.lane, dry_run: true } });
    if (cancelled === 0) return nothing(`No task waits for ${agent.name}.`);
    const turns = many(cancelled, "turn");
    return {
      title: `Clear the queue of ${agent.name}?`, danger: true, action: `Cancel ${turns}`,
      what: [`What waits for ${agent.name} is cancelled: ${turns}. Each caller gets the answer that it was cancelled.`, "What runs is not touched."],
    };
  };
  const doClear = async () => `${many((await ask("POST", `${path}/queue/clear`)).cleared_count, "turn")} of ${agent.name} cancelled.`;
  const release = async () => {
    const { running } = await ask("GET", path);
    if (running === 0) return nothing(`${agent.name} is not busy.`);
    return {
      title: `Force release of ${agent.name}?`, danger: true, action: "Force release",
      what: [
        `The slots of ${many(running, "turn")} are taken away at once, and the next in line starts.`,
        "The old attempt gets a signal to stop, but may still be going: two could work at once for a while. Reports of the old one are refused.",
        "Use it when a run hangs and does not heed Cancel.",
      ],
    };
  };
  const doRelease = async () => {
    const { released } = await ask("POST", `${path}/queue/release`);
    return released.length ? `${many(released.length, "run")} of ${agent.name} released.` : `${agent.name} was not busy.`;
  };
  const talk = {
    title: `Ask ${agent.name}`, action: "Send", what: ["The message joins the agent's own conversation and runs when it is its turn."],
    fields: [{ name: "message", label: "Message", type: "text-long" }],
  };
  const doTalk = async ({ message }) => {
    const { execution } = await ask("POST", `${path}/chat`, { body: { message }, headers: { prefer: "respond-async" } });
    return execution.position ? `Accepted, place ${execution.position} in line.` : "Accepted, it starts now.";
  };
  const remove = {
    title: `Remove ${agent.name}?`, danger: true, action: "Remove",
    what: [`The agent takes no new turns, and the tasks that wait for it are cancelled.`, "What runs may end."],
  };
  const doRemove = async () => {
    await ask("DELETE", path);
    return `${agent.name} removed.`;
  };
  const lane = { running: agent.running, max_concurrency: agent.max_concurrency };
  const runs = queue.running_executions ?? [];
  const isStuck = runs.length === 0 && agent.waiting > 0;
  return html`<article class="card agent" aria-label=${`Agent ${agent.name}`}>
    <header><h2 class="name">${agent.name}</h2><span class=${`lane-word ${agent.is_busy ? "busy" : isStuck ? "stopped" : "idle"}`}>${agent.is_busy ? "▶ busy" : isStuck ? "held up" : "idle"}</span></header>
    <p class="faint small">${RUNNERS[agent.runner] ?? agent.runner} ${agent.origin === "api" ? " · added while running" : ""} · lanes <${LaneLink} lane=${agent.lane} />${agent.lanes.map((name) => html` <${LaneLink} lane=${name} />`)}</p>
    <div class="meter"><span class="num">${agent.running}/${agent.max_concurrency ?? "∞"} running</span><${Slots} lane=${lane} />
      <span class="num">${count(agent.waiting)} of ${count(agent.max_queued)} places in line</span></div>
    <div class="current">${runs.length
      ? html`<${Runs} runs=${runs} />${runs.length > RUNS_SHOWN && html`<p class="faint small">and ${count(runs.length - RUNS_SHOWN)} more: <${LaneLink} lane=${agent.lane} /></p>`}`
      : isStuck
        ? html`<strong>Nothing runs:</strong> ${reason(why) || "the first is about to start"}.`
        : html`<span class="faint">Nothing runs, and no task waits.</span>`}</div>
    ${queue.queued_executions.length > 0 && html`<ol class="queue">${queue.queued_executions.slice(0, QUEUE_SHOWN).map((one) => html`<li key=${one.id}>
      <span class="num">#${one.position}</span> <${Priority} own=${one.priority} effective=${one.effective_priority} />
      <${TaskLink} id=${one.id} /> <span class="message">${one.message}</span></li>`)}</ol>`}
    ${queue.queue_length > QUEUE_SHOWN && html`<p class="faint small">and ${count(queue.queue_length - QUEUE_SHOWN)} more: <${LaneLink} lane=${agent.lane} /></p>`}
    <footer class="actions">
      ${may("submit") && html`<${Act} label="Ask…" ask=${talk} run=${doTalk} after=${after} />`}
      ${may("admin") && html`<${Act} label="Clear queue" danger ask=${clear} run=${doClear} after=${after} />
        <${Act} label="Force release" danger ask=${release} run=${doRelease} after=${after} />`}
      ${may("admin") && agent.origin === "api" && html`<${Act} label="Remove" danger ask=${remove} run=${doRemove} after=${after} />`}
    </footer>
  </article>`;
}

export function Agents() {
  const { query } = usePlace();
  const concerns = useCallback(({ name }) => name === "changed" || name === "configured", []);
  const { data, error, refresh } = useAnswer(everyAgent, { concerns, every: 10000 });
  const wanted = (query.filter ?? "").toLowerCase();
  const shown = (data ?? []).filter(({ agent }) => agent.name.toLowerCase().includes(wanted));
  return html`<${Title} actions=${html`<${Filter} label="Filter agents" value=${query.filter} onInput=${(filter) => refine({ filter })} />`}>Agents<//>
    <${Trouble} error=${error} />
    ${!data ? !error && html`<${Waiting} />` : shown.length === 0
      ? html`<${Empty} title="No agent.">${wanted ? "Clear the filter to see all of them." : html`Add one to laneway.hcl: <code>agent "coder" { command = ["…"] }</code>`}<//>`
      : html`<div class="cards">${shown.map((one) => html`<${Card} key=${one.agent.name} ...${one} after=${refresh} />`)}</div>`}`;
}
