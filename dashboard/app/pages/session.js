// One conversation: the turn that runs, the messages that wait, how it is set, and a box to write or steer.

import { html, useCallback, useEffect, useState } from "../view.js";
import { ask, may, pages, part } from "../api.js";
import { useAnswer } from "../live.js";
import { Link } from "../route.js";
import { isOver, many, stateWord } from "../words.js";
import { Act, note } from "../parts/dialog.js";
import { Empty, State, TaskLink, Title, Trouble, Waiting } from "../parts/shown.js";
import { Time } from "../parts/time.js";

const MODES = ["collect", "followup", "steer", "steer-backlog", "interrupt", "queue"];

export const agentsToAsk = async () => (await ask("GET", "api/agents")).items.map((agent) => agent.name);

const path = (key) => `api/sessions/${part(key)}`;

export async function write(key, message) {
  const answer = await ask("POST", `${path(key)}/messages`, { body: message });
  return answer.reply ?? `The message: ${stateWord(answer.outcome)}${answer.position ? `, place ${answer.position}` : ""}.`;
}

function Said({ message, kind }) {
  return html`<div class=${`said-by ${kind}`}><p class="message">${message.text}</p>
    <span class="faint small">${message.sender_name ?? ""} ${message.channel ? `via ${message.channel}` : ""} ${message.at && html`<${Time} at=${message.at} />`}</span></div>`;
}

function Now({ session, after }) {
  const turn = session.current_turn;
  if (!turn) return html`<${Empty} title="No turn runs.">The next message starts one.<//>`;
  const interrupt = { title: "Interrupt the turn?", action: "Interrupt", danger: true, what: ["The turn that runs is cancelled. What it has done so far is not undone.", "The messages that wait go on."] };
  const run = async () => {
    await ask("POST", `${path(session.key)}/interrupt`);
    return "The turn was told to stop.";
  };
  const said = turn.said ?? [];
  const late = new Set([...turn.steered, ...turn.pending]);
  return html`<p>Turn <${TaskLink} id=${turn.task_id} /> <${State} status="running" /> with ${many(said.length, "message")}
      ${may("submit") && html`<${Act} label="Interrupt" danger ask=${interrupt} run=${run} after=${after} />`}</p>
    ${said.map((message) => html`<${Said} key=${message.id} message=${message} kind=${late.has(message.id) ? "steered" : "asked"} />`)}`;
}

function Line({ session, after }) {
  const { key, messages } = session;
  if (messages.length === 0) return html`<${Empty} title="No message waits.">What is written while a turn runs waits here.<//>`;
  const of = (message) => `${path(key)}/messages/${part(message.id)}`;
  const withdraw = (message) => ({ title: "Withdraw the message?", action: "Withdraw", danger: true, what: ["It never reaches the agent.", `“${message.text.slice(0, 200)}”`] });
  const move = (message, before) => async () => {
    await ask("POST", `${of(message)}/move`, { body: before ? { before: before.id } : {} });
  };
  return html`<ol class="messages">${messages.map((message, index) => html`<li key=${message.id} data-row="" tabindex="-1">
    <span class="num">#${index + 1}</span><div><p class="message">${message.text}</p>
      <span class="faint small">to ${message.agent} <${Time} at=${message.at} /></span></div>
    ${may("submit") && html`<span class="actions">
      <${Act} label="↑" title="Earlier" aria-label="Earlier" disabled=${index === 0} run=${move(message, messages[index - 1])} after=${after} />
      <${Act} label="↓" title="Later" aria-label="Later" disabled=${index === messages.length - 1} run=${move(message, messages[index + 2])} after=${after} />
      <${Act} label="Send now" run=${async () => { await ask("POST", `${of(message)}/send-now`); return "It is next."; }} after=${after} />
      <${Act} label="Withdraw" danger ask=${withdraw(message)} run=${async () => { await ask("DELETE", of(message)); return "Withdrawn."; }} after=${after} /></span>`}
  </li>`)}</ol>`;
}

function Box({ session, name, after }) {
  const [text, setText] = useState("");
  const [agents, setAgents] = useState([]);
  const [agent, setAgent] = useState(null);
  useEffect(() => {
    agentsToAsk().then(setAgents, () => setAgents([]));
  }, []);
  if (!may("submit")) return null;
  const usual = session?.messages[0]?.agent ?? session?.current_turn?.said?.[0]?.agent;
  const chosen = agent ?? usual ?? agents[0];
  const send = (how) => async (event) => {
    event.preventDefault();
    try {
      if (how === "steer") await ask("POST", `${path(name)}/steer`, { body: { text } });
      note(how === "steer" ? "Said to the turn that runs." : await write(name, { agent: chosen, text }));
      setText("");
      after();
    } catch (error) {
      note(error.message, "refused");
    }
  };
  return html`<form class="write" onSubmit=${send("message")}>
    <textarea rows="2" required aria-label="Message" placeholder="Write a message" value=${text} onInput=${(event) => setText(event.target.value)}></textarea>
    <div class="actions"><label>to <select aria-label="Agent" value=${chosen} onChange=${(event) => setAgent(event.target.value)}>
        ${agents.map((one) => html`<option value=${one}>${one}</option>`)}</select></label>
      ${session?.current_turn && html`<button type="button" disabled=${!text} onClick=${send("steer")} title="Say it to the turn that runs">Steer</button>`}
      <button type="submit" class="primary" disabled=${!text || !chosen}>Send</button></div>
  </form>`;
}

function Settings({ session, after }) {
  const values = session.settings;
  const change = {
    title: "Change how messages are queued?", action: "Change", what: ["It holds for this conversation only, from the next message on."],
    fields: [{ name: "mode", label: "Mode", choices: [...new Set([values.mode?.value, ...MODES])].filter(Boolean), value: values.mode?.value },
      { name: "debounce_ms", label: "Debounce, ms", type: "number", value: values.debounce_ms?.value },
      { name: "cap", label: "Messages that may wait", type: "number", value: values.cap?.value }],
  };
  const run = async ({ mode, debounce_ms: debounce, cap }) => {
    await ask("PATCH", path(session.key), { body: { mode, debounce_ms: Number(debounce), cap: Number(cap) } });
    return "Changed.";
  };
  return html`<table class="settings"><thead><tr><th>setting</th><th>value</th><th>from</th></tr></thead>
    <tbody>${Object.entries(values).map(([key, { value, from }]) => html`<tr><th scope="row">${key}</th><td>${value}</td><td class="faint">${from}</td></tr>`)}</tbody></table>
    ${may("admin") && html`<div class="actions"><${Act} label="Change…" ask=${change} run=${run} after=${after} /></div>`}`;
}

export function Session({ name }) {
  const question = useCallback(async (signal) => {
    const [{ items: turns }, { items, more }] = await Promise.all([
      ask("GET", `api/tasks?session=${part(name)}&limit=20`, { signal }), pages("api/sessions", { signal, pagesMax: 1 })]);
    // A conversation of which there is nothing to remember is not there, and that is no error: it is asked for only if it must be there.
    const known = items.find((one) => one.key === name) ?? null;
    const isThere = known ? known.is_busy : more || turns.some((turn) => !isOver(turn.status));
    const session = isThere ? await ask("GET", path(name), { signal }) : known;
    return { session, turns };
  }, [name]);
  const { data, error, refresh } = useAnswer(question, { every: 5000 });
  if (!data) return html`<${Title}><span class="name">${name}</span><//>${error ? html`<${Trouble} error=${error} />` : html`<${Waiting} />`}`;
  const { session, turns } = data;
  const clear = session && { title: "Cancel all messages that wait?", danger: true, action: `Cancel ${many(session.messages.length, "message")}`, what: [`The ${many(session.messages.length, "message")} that wait are cancelled. The turn that runs is not touched.`] };
  const doClear = async () => `${many((await ask("POST", `${path(name)}/clear`)).cancelled, "message")} cancelled.`;
  const actions = session && may("submit") && html`<${Act} label="Clear" danger disabled=${session.messages.length === 0} ask=${clear} run=${doClear} after=${refresh} />`;
  return html`<${Title} actions=${actions}><span class="name">${name}</span><//>
    <${Trouble} error=${error} />
    <div class="columns"><div>
      <section class="card" aria-label="The turn that runs"><h2>Now</h2>${session ? html`<${Now} session=${session} after=${refresh} />`
        : html`<${Empty} title="The queue has nothing to remember of this conversation.">Write to it, and it starts.<//>`}</section>
      <section class="card" aria-label="Messages that wait"><h2>Waiting messages</h2>${session && html`<${Line} session=${session} after=${refresh} />`}
        <${Box} session=${session} name=${name} after=${refresh} /></section>
    </div><div>
      ${session && html`<section class="card" aria-label="Settings"><h2>How messages are queued</h2><${Settings} session=${session} after=${refresh} /></section>`}
      <section class="card" aria-label="Turns"><h2>Turns</h2>${turns.length === 0 ? html`<p class="faint">None yet.</p>` : html`<ul class="plain-list">${turns.map((task) => html`<li key=${task.id}>
        <${State} status=${task.status} /> <${TaskLink} id=${task.id} /> <span class="faint"><${Time} at=${task.ended_at ?? task.started_at ?? task.submitted_at} /></span></li>`)}</ul>`}
        <p><${Link} to=${["tasks"]} query=${{ session: name }}>All its tasks →<//></p></section>
    </div></div>`;
}
