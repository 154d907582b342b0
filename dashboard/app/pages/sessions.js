// Conversations: which are busy, and how much waits in each.

import { html } from "../view.js";
import { may, pages } from "../api.js";
import { useAnswer } from "../live.js";
import { Link, go, refine, usePlace } from "../route.js";
import { count, many } from "../words.js";
import { Act } from "../parts/dialog.js";
import { LongList } from "../parts/list.js";
import { Empty, Filter, Title, Trouble, Waiting } from "../parts/shown.js";
import { agentsToAsk, write } from "./session.js";

const everySession = (signal) => pages("api/sessions", { signal, pagesMax: 10 });

function Row({ session }) {
  const [first] = session.messages;
  return html`<${Link} to=${["sessions", session.key]} class="row" data-row="">
    <span class="c-kind name">${session.key}</span>
    <span class="c-word"><span class=${`lane-word ${session.is_busy ? "busy" : "idle"}`}>${session.is_busy ? "▶ busy" : "idle"}</span></span>
    <span class="c-num num">${count(session.messages.length)} wait</span>
    <span class="c-mode wide" title=${`from ${session.settings.mode?.from}`}>${session.settings.mode?.value}</span>
    <span class="c-message wide">${session.set_aside?.length > 0 && html`<span class="bad">✕ ${count(session.set_aside.length)} parked</span> `}${(first ?? session.current_turn?.said?.[0])?.text ?? ""}</span>
  <//>`;
}

const HEAD = html`<span class="c-kind">conversation</span><span class="c-word">turn</span><span class="c-num">messages</span>
  <span class="c-mode wide">mode</span><span class="c-message wide">first that waits, or what is being answered</span>`;

export function Sessions() {
  const { query } = usePlace();
  const { data, error, refresh } = useAnswer(everySession, { concerns: ({ name }) => ["message", "done", "started", "typing", "changed"].includes(name), every: 10000 });
  const wanted = (query.filter ?? "").toLowerCase();
  const shown = (data?.items ?? []).filter((session) => session.key.toLowerCase().includes(wanted))
    .sort((one, other) => other.messages.length - one.messages.length || other.is_busy - one.is_busy || one.key.localeCompare(other.key));
  const start = async () => ({
    title: "Write to a conversation", action: "Send",
    what: ["The message starts a turn now if the conversation is free; else its mode says what becomes of it."],
    fields: [{ name: "key", label: "Conversation" }, { name: "agent", label: "Agent", choices: await agentsToAsk() }, { name: "text", label: "Message", type: "text-long" }],
  });
  const run = async ({ key, agent, text }) => {
    const said = await write(key, { agent, text });
    go(["sessions", key]);
    return said;
  };
  const actions = html`<${Filter} label="Filter conversations" value=${query.filter} onInput=${(filter) => refine({ filter })} />
    ${may("submit") && html`<${Act} label="Write…" primary ask=${start} run=${run} after=${refresh} />`}`;
  return html`<${Title} actions=${actions}>Sessions<//>
    <${Trouble} error=${error} />
    ${!data ? !error && html`<${Waiting} />` : shown.length === 0
      ? html`<${Empty} title=${wanted ? "No conversation fits." : "No conversation is under way."}>
          ${wanted ? "Clear the filter to see all of them." : html`Write to one here, or send to <code>POST /api/sessions/{key}/messages</code>. Those with nothing to remember are not listed.`}<//>`
      : html`<div class="card flush"><${LongList} items=${shown} label="Conversations" head=${HEAD} keyOf=${(session) => session.key} row=${(session) => html`<${Row} session=${session} />`} /></div>
        <p class="faint small">${many(shown.length, "conversation")}.</p>`}`;
}
