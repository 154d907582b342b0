// One conversation: the turn that runs, the messages that wait, how it is set, and a box to write or steer.

import { html, useCallback, useEffect, useState } from "../view.js";
import { ask, may, pages, part } from "../api.js";
import { useAnswer } from "../live.js";
import { isOver, many, stateWord } from "../words.js";
import { Act, note, nothing } from "../parts/dialog.js";
import { Empty, State, TaskLink, Title, Trouble, Waiting } from "../parts/shown.js";
import { Time } from "../parts/time.js";
import { Turns, pastTurns } from "../parts/turns.js";

const MODES = ["collect", "followup", "steer", "steer-backlog", "interrupt", "queue", "reject", "latest"];
const DROPS = ["old", "new", "summarize"];

export const agentsToAsk = async () => (await ask("GET", "api/agents")).items.map((agent) => agent.name);

const path = (key) => `api/sessions/${part(key)}`;

export async function write(key, message) {
  const answer = await ask("POST", `${path(key)}/messages`, { body: message });
  return answer.reply ?? `The message: ${stateWord(answer.outcome)}${answer.position ? `, place ${answer.position}` : ""}.`;
}

function Said({ message, kind }) {
  return html`<div class=${`said-by ${kind}`}><p class="message">${message.text}</p>
    <span class="faint small"><bdi>${message.sender_name ?? ""}</bdi> ${message.channel ? `via ${message.channel}` : ""} ${message.at && html`<${Time} at=${message.at} />`}</span></div>`;
}

function Now({ session, turns, after }) {
  const turn = session?.current_turn;
  if (!turn) return html`<${Empty} title="No turn runs.">The next message starts one.<//>`;
  const interrupt = { title: "Interrupt the turn?", action: "Interrupt", danger: true, what: ["The turn that is under way is cancelled. What it has done so far is not undone.", "The messages that wait go on."] };
  const run = async () => {
    await ask("POST", `${path(session.key)}/interrupt`);
    return "The turn got a signal to stop.";
  };
  const said = turn.said ?? [];
  const late = new Set([...turn.steered, ...turn.pending]);
  // It may wait for a slot: what it is called is what the server calls it.
  const status = turns.find((one) => one.id === turn.task_id)?.status ?? "queued";
  return html`<p>Turn <${TaskLink} id=${turn.task_id} /> <${State} status=${status} /> with ${many(said.length, "message")}${" "}
      ${may("submit") && html`<${Act} label="Interrupt" danger ask=${interrupt} run=${run} after=${after} />`}</p>
    ${said.map((message) => html`<${Said} key=${message.id} message=${message} kind=${late.has(message.id) ? "steered" : "asked"} />`)}`;
}

function Line({ name: key, turn, messages, after }) {
  if (messages.length === 0) return html`<${Empty} title="No message waits.">What is written while a turn runs waits here.<//>`;
  const of = (message) => `${path(key)}/messages/${part(message.id)}`;
  const withdraw = (message) => ({ title: "Withdraw the message?", action: "Withdraw", danger: true, what: ["It never reaches the agent.", `“${message.text.slice(0, 200)}”`] });
  const move = (message, before) => async () => {
    await ask("POST", `${of(message)}/move`, { body: before ? { before: before.id } : {} });
  };
  const promote = (message) => async () => {
    const { outcome } = await ask("POST", `${of(message)}/promote`);
    return `The message: ${stateWord(outcome)}.`;
  };
  return html`<ol class="messages">${messages.map((message, index) => html`<li key=${message.id} data-row="" tabindex="-1">
    <span class="num">#${index + 1}</span><div><p class="message">${message.text}</p>
      <span class="faint small">to ${message.agent} <${Time} at=${message.at} /></span></div>
    ${may("submit") && html`<span class="actions">
      <${Act} label="↑" title="Earlier" aria-label="Earlier" disabled=${index === 0} run=${move(message, messages[index - 1])} after=${after} />
      <${Act} label="↓" title="Later" aria-label="Later" disabled=${index === messages.length - 1} run=${move(message, messages[index + 2])} after=${after} />
      <${Act} label="Send now" run=${async () => { await ask("POST", `${of(message)}/send-now`); return "It is next."; }} after=${after} />
      ${turn && html`<${Act} label="Into the turn" title="Pass it into the running turn" run=${promote(message)} after=${after} />`}
      <${Act} label="Withdraw" danger ask=${withdraw(message)} run=${async () => { await ask("DELETE", of(message)); return "Withdrawn."; }} after=${after} /></span>`}
  </li>`)}</ol>`;
}

/** Messages whose turns failed too often: no turn has answered them. */
function Parked({ name: key, messages, after }) {
  if (messages.length === 0) return null;
  const of = (message) => `${path(key)}/messages/${part(message.id)}`;
  const again = (message) => ({ title: "Send the message again?", action: "Send again", what: ["It becomes a new message that says the same, and is queued as if it came now.", `“${message.text.slice(0, 200)}”`] });
  const doAgain = (message) => async () => {
    const { outcome, position } = await ask("POST", `${of(message)}/resend`);
    return `The message: ${stateWord(outcome)}${position ? `, place ${position}` : ""}.`;
  };
  const away = (message) => ({ title: "Throw the message away?", action: "Throw away", danger: true, what: ["It is gone for good, and never reaches the agent.", `“${message.text.slice(0, 200)}”`] });
  return html`<section class="card" aria-label="Parked messages"><h2>Parked messages</h2>
    <p class="faint small">Their turns failed again and again. The others went on without them.</p>
    <ol class="messages">${messages.map((message) => html`<li key=${message.id} data-row="" tabindex="-1"><div><p class="message">${message.text}</p>
      ${message.error && html`<pre class="error">${message.error}</pre>`}<span class="faint small">to ${message.agent} <${Time} at=${message.at} /></span></div>
      ${may("submit") && html`<span class="actions"><${Act} label="Send again" ask=${again(message)} run=${doAgain(message)} after=${after} />
        <${Act} label="Throw away" danger ask=${away(message)} run=${async () => { await ask("DELETE", of(message)); return "Thrown away."; }} after=${after} /></span>`}
    </li>`)}</ol></section>`;
}

function Box({ session, name, usual: before, after }) {
  const [text, setText] = useState("");
  const [agents, setAgents] = useState([]);
  const [agent, setAgent] = useState(null);
  useEffect(() => {
    agentsToAsk().then(setAgents, () => setAgents([]));
  }, []);
  if (!may("submit")) return null;
  const usual = session?.messages[0]?.agent ?? session?.current_turn?.said?.[0]?.agent ?? before;
  const chosen = agent ?? usual ?? agents[0];
  const send = (how) => async (event) => {
    event.preventDefault();
    try {
      if (how === "steer") await ask("POST", `${path(name)}/steer`, { body: { text } });
      note(how === "steer" ? "Said to the turn that runs." : await write(name, { agent: chosen, text }));
      // Text written meanwhile is kept.
      setText((now) => (now === text ? "" : now));
      after();
    } catch (error) {
      note(error.message, "refused");
    }
  };
  return html`<form class="write" onSubmit=${send("message")}>
    <textarea rows="2" required aria-label="Message" placeholder="Write a message" value=${text} onInput=${(event) => setText(event.target.value)}></textarea>
    <div class="actions"><label>to <select aria-label="Agent" value=${chosen} onChange=${(event) => setAgent(event.target.value)}>
        ${agents.map((one) => html`<option value=${one}>${one}</option>`)}</select></label>
      ${session?.current_turn && html`<button type="button" disabled=${!text} onClick=${send("steer")} title="Pass it into the running turn">Steer</button>`}
      <button type="submit" class="primary" disabled=${!text || !chosen}>Send</button></div>
  </form>`;
}

function Settings({ name, values, after }) {
  const change = {
    title: "Change how messages are queued?", action: "Change", what: ["It holds for this conversation only, from the next message on."],
    fields: [{ name: "mode", label: "Mode", choices: [...new Set([values.mode?.value, ...MODES])].filter(Boolean), value: values.mode?.value },
      { name: "debounce_ms", label: "Quiet before a turn starts, ms", type: "number", value: values.debounce_ms?.value },
      { name: "max_wait_ms", label: "At most so long, ms", type: "number", value: values.max_wait_ms?.value },
      { name: "cap", label: "Messages that may wait", type: "number", value: values.cap?.value },
      { name: "drop", label: "When there are more", choices: DROPS, value: values.drop?.value }],
  };
  const run = async (given) => {
    // What was left as it was goes on coming from where it came from.
    const changed = Object.entries(given).filter(([key, value]) => value !== String(values[key]?.value));
    if (changed.length === 0) return "Nothing was changed.";
    const body = Object.fromEntries(changed.map(([key, value]) => [key, ["mode", "drop"].includes(key) ? value : Number(value)]));
    await ask("PATCH", path(name), { body });
    return `${changed.map(([key, value]) => `${key} is ${value} now`).join(", ")}.`;
  };
  return html`<table class="settings"><thead><tr><th>setting</th><th>value</th><th>from</th></tr></thead>
    <tbody>${Object.entries(values).map(([key, { value, from }]) => html`<tr><th scope="row">${key}</th><td>${value}</td><td class="faint">${from}</td></tr>`)}</tbody></table>
    ${may("admin") && html`<div class="actions"><${Act} label="Change…" ask=${change} run=${run} after=${after} /></div>`}`;
}

function Tools({ lanes }) {
  const used = Object.entries(lanes).filter(([, lane]) => lane.pending || lane.active);
  if (used.length === 0) return null;
  return html`<section class="card" aria-label="Tool calls"><h2>Tool calls</h2><table><thead><tr><th>lane</th><th class="num">running</th><th class="num">waiting</th></tr></thead>
    <tbody>${used.map(([word, lane]) => html`<tr><th scope="row">${word}</th><td class="num">${lane.active} / ${lane.max_concurrency ?? "∞"}</td><td class="num">${lane.pending}</td></tr>`)}</tbody></table></section>`;
}

async function conversation(name, signal) {
  const [{ items: turns }, { items, more }, stats] = await Promise.all([
    ask("GET", `api/tasks?session=${part(name)}&limit=20`, { signal }), pages("api/sessions", { signal, pagesMax: 1 }),
    ask("GET", `${path(name)}/stats`, { signal })]);
  // A conversation of which there is nothing to remember is not there, and that is no error: it is asked for only if it must be there.
  const known = items.find((one) => one.key === name) ?? null;
  const isThere = known ? known.is_busy : more || turns.some((turn) => !isOver(turn.status));
  const [session, past] = await Promise.all([isThere ? ask("GET", path(name), { signal }) : known, pastTurns(turns, signal)]);
  return { session, turns, past, stats };
}

/**
 * What a clear would cancel now: the messages that wait, and a turn of messages that waits for its slot or its next attempt with those that are
 * its own. A message that was said to the turn and waits in line as well is one.
 */
async function clearing(name) {
  const { session, turns } = await conversation(name);
  const turn = session?.current_turn;
  const isTurnToo = turn?.messages.length > 0 && ["queued", "retrying"].includes(turns.find(({ id }) => id === turn.task_id)?.status);
  const told = isTurnToo ? [...turn.messages, ...turn.pending, ...turn.steered] : [];
  const found = new Set([...(session?.messages ?? []).map(({ id }) => id), ...told]).size;
  if (found === 0) return nothing("No message waits.");
  const number = many(found, "message");
  const ofTurn = isTurnToo ? "The turn that has not started yet is cancelled with its own." : "A turn that is under way is not touched.";
  return { title: "Cancel all messages that wait?", danger: true, action: `Cancel ${number}`, what: [`What waits is cancelled and never reaches the agent: ${number}.`, ofTurn] };
}

export function Session({ name }) {
  const question = useCallback((signal) => conversation(name, signal), [name]);
  const { data, error, refresh } = useAnswer(question, { every: 5000 });
  if (!data) return html`<${Title}><span class="name">${name}</span><//>${error ? html`<${Trouble} error=${error} />` : html`<${Waiting} />`}`;
  const { session, turns, past, stats } = data;
  const messages = session?.messages ?? [];
  const doClear = async () => `${many((await ask("POST", `${path(name)}/clear`)).cancelled, "message")} cancelled.`;
  const actions = may("submit") && html`<${Act} label="Clear" danger ask=${() => clearing(name)} run=${doClear} after=${refresh} />`;
  return html`<${Title} actions=${actions}><span class="name">${name}</span><//>
    <${Trouble} error=${error} />
    <div class="columns"><div>
      <section class="card" aria-label="The turn that runs"><h2>Now</h2><${Now} session=${session} turns=${turns} after=${refresh} /></section>
      <section class="card" aria-label="Messages that wait"><h2>Waiting messages</h2><${Line} name=${name} turn=${session?.current_turn} messages=${messages} after=${refresh} />
        <${Box} session=${session} name=${name} usual=${past[0]?.payload?.agent} after=${refresh} /></section>
      <${Parked} name=${name} messages=${session?.set_aside ?? []} after=${refresh} />
      <${Turns} turns=${past} name=${name} />
    </div><div>
      <section class="card" aria-label="Settings"><h2>How messages are queued</h2><${Settings} name=${name} values=${session?.settings ?? stats.settings ?? {}} after=${refresh} /></section>
      <${Tools} lanes=${stats.lanes} />
    </div></div>`;
}
