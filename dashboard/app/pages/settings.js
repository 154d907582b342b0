// The configuration that holds, where each value comes from, and who has a token.

import { html, useState } from "../view.js";
import { ask, hasToken, may, setToken, subject, withQuery } from "../api.js";
import { useAnswer } from "../live.js";
import { pick, refine, usePlace } from "../route.js";
import { Act } from "../parts/dialog.js";
import { Empty, Filter, Tabs, Title, Trouble, Waiting } from "../parts/shown.js";
import { Time } from "../parts/time.js";

const SCOPES = ["read", "submit", "worker", "admin"];

async function everything(signal) {
  const [config, tokens] = await Promise.all([ask("GET", "api/config", { signal }), ask("GET", "api/tokens", { signal })]);
  return { values: config.values, tokens: tokens.items };
}

function Secret({ made, forget }) {
  if (!made) return null;
  return html`<div class="secret" role="status"><p><strong>The token of ${made.subject}.</strong> It is shown this once; only a hash is kept.</p>
    <pre tabindex="0">${made.token}</pre><button type="button" onClick=${forget}>I have it</button></div>`;
}

function Tokens({ tokens, after }) {
  const [made, setMade] = useState(null);
  const isFirst = async () => (await ask("GET", "api/tokens")).items.length === 0;
  const create = async () => ({
    title: "A new token", action: "Make it",
    what: [(await isFirst()) ? "From then on every request needs a token, this page included." : "Its holder may do what its scopes allow."],
    fields: [{ name: "subject", label: "Who uses it" }, ...SCOPES.map((scope) => ({ name: scope, label: `may ${scope}`, type: "check", checked: scope === "read" }))],
  });
  const doCreate = async ({ subject: who, ...chosen }) => {
    const scopes = SCOPES.filter((scope) => chosen[scope]);
    const isOnly = await isFirst();
    const token = await ask("POST", "api/tokens", { body: { subject: who, scopes } });
    setMade(token);
    if (isOnly && scopes.includes("admin")) setToken(token.token);
    return `${who} has a token.`;
  };
  const remove = (token) => ({ title: `Take the token of ${token.subject} away?`, action: "Take away", danger: true, what: [`Requests with ${token.id} are refused from now on. It cannot be brought back.`] });
  const doRemove = (token) => async () => {
    await ask("DELETE", withQuery("api/tokens", { id: token.id }));
    return `The token of ${token.subject} is gone.`;
  };
  return html`<section class="card" aria-label="Tokens"><div class="section-head"><h2>Tokens</h2><${Act} label="New token…" ask=${create} run=${doCreate} after=${after} /></div>
    <${Secret} made=${made} forget=${() => setMade(null)} />
    ${tokens.length === 0
      ? html`<${Empty} title="No tokens: everybody on this machine may do everything.">Make one before the server listens on another address. The first should have the scope admin.<//>`
      : html`<div class="scroll-x"><table><thead><tr><th>who</th><th>id</th><th>may</th><th>made</th><th></th></tr></thead><tbody>${tokens.map((token) => html`<tr key=${token.id}>
          <th scope="row" class="name">${token.subject}</th><td class="id">${token.id}</td><td>${token.scopes.join(", ")}${token.speaks_for_others ? ", speaks for others" : ""}</td>
          <td><${Time} at=${token.created_at} /></td><td><${Act} label="Take away" danger ask=${remove(token)} run=${doRemove(token)} after=${after} /></td></tr>`)}</tbody></table></div>`}
  </section>`;
}

function Config({ values, wanted, isAll }) {
  const isShown = ({ source }) => isAll || wanted || source !== "default";
  const fitting = values.filter(isShown).filter(({ block, key, value, source }) => `${block} ${key} ${value} ${source}`.toLowerCase().includes(wanted));
  const blocks = [...new Set(fitting.map(({ block }) => block))];
  if (blocks.length === 0) return html`<${Empty} title="No setting fits.">Clear the filter to see all of them.<//>`;
  return blocks.map((block) => html`<section class="card" key=${block} aria-label=${block || "general"}><h2 class="name">${block || "general"}</h2>
    <table class="settings even"><thead><tr><th>setting</th><th>value</th><th>from</th></tr></thead><tbody>${fitting.filter((one) => one.block === block).map(({ key, value, source, configured }) => html`<tr>
      <th scope="row">${key}</th><td class="name">${value}</td><td class=${source === "default" ? "faint" : ""}>${source}${configured && html`<span class="faint"> · ${configured}</span>`}</td></tr>`)}</tbody></table></section>`);
}

export function Settings({ signOut }) {
  const { query } = usePlace();
  const { data, error, refresh } = useAnswer(everything, { concerns: ({ name }) => name === "configured", every: 10000 });
  const who = html`<span class="faint">You are <strong>${subject()}</strong>.</span> ${hasToken() && html`<button type="button" onClick=${signOut}>Sign out</button>`}`;
  if (!may("admin")) return html`<${Title} actions=${who}>Settings<//><${Empty} title="This token may not see the configuration.">It needs the scope admin.<//>`;
  return html`<${Title} actions=${html`${who}<${Filter} label="Filter settings" value=${query.filter} onInput=${(filter) => refine({ filter })} />`}>Settings<//>
    <${Trouble} error=${error} />
    ${!data ? !error && html`<${Waiting} />` : html`<${Tokens} tokens=${data.tokens} after=${refresh} />
      <${Tabs} label="Which settings" of=${[["", "set somewhere"], ["all", "all, defaults too"]]} value=${query.show ?? ""} onPick=${(show) => pick({ show })} />
      <${Config} values=${data.values} wanted=${(query.filter ?? "").toLowerCase()} isAll=${query.show === "all"} />`}`;
}
