// The frame: who we are, where we can go, whether the server is there.

import { html, render, useCallback, useEffect, useRef, useState } from "./view.js";
import { hasToken, introduce, may, setToken } from "./api.js";
import { connect, disconnect, useConnection } from "./live.js";
import { Link, usePlace } from "./route.js";
import { Help, useKeys } from "./keys.js";
import { useScroll } from "./scroll.js";
import { Dialogs, Notes } from "./parts/dialog.js";
import { Empty, Title, showWithin } from "./parts/shown.js";
import { Agents } from "./pages/agents.js";
import { Audit } from "./pages/audit.js";
import { Lane } from "./pages/lane.js";
import { Lanes } from "./pages/lanes.js";
import { Letters } from "./pages/dead-letters.js";
import { Overview } from "./pages/overview.js";
import { Schedules } from "./pages/schedules.js";
import { Session } from "./pages/session.js";
import { Sessions } from "./pages/sessions.js";
import { Settings } from "./pages/settings.js";
import { Task } from "./pages/task.js";
import { Tasks } from "./pages/tasks.js";
import { Workers } from "./pages/workers.js";

const PAGES = [
  ["", "Overview"], ["lanes", "Lanes"], ["tasks", "Tasks"], ["sessions", "Sessions"], ["agents", "Agents"], ["dead-letters", "Dead letters"],
  ["schedules", "Schedules"], ["workers", "Workers"], ["audit", "Audit"], ["settings", "Settings"],
];

function Page({ parts: [page = "", name], signOut }) {
  if (page === "lanes" && name) return html`<${Lane} key=${name} name=${name} />`;
  if (page === "tasks" && name) return html`<${Task} key=${name} id=${name} />`;
  if (page === "sessions" && name) return html`<${Session} key=${name} name=${name} />`;
  const known = {
    "": Overview, lanes: Lanes, tasks: Tasks, sessions: Sessions, agents: Agents, "dead-letters": Letters,
    schedules: Schedules, workers: Workers, audit: Audit, settings: Settings,
  };
  const Found = known[page];
  if (Found) return html`<${Found} key=${page} signOut=${signOut} />`;
  return html`<${Title}>No such page<//><${Empty} title="Nothing is at this address."><${Link} to=${[]}>To the overview<//><//>`;
}

const CONNECTION = { live: ["●", "live"], connecting: ["○", "connecting"], lost: ["▲", "connection lost, trying again"], refused: ["✕", "not signed in"] };

function Connection() {
  const state = useConnection();
  const [sign, word] = CONNECTION[state];
  return html`<span class=${`connection ${state}`} role="status"><span aria-hidden="true">${sign}</span> ${word}</span>`;
}

function Frame({ me, signOut }) {
  const { parts } = usePlace();
  const state = useConnection();
  const [help, setHelp] = useState(false);
  const isLater = useRef(false);
  useKeys(useCallback(() => setHelp((open) => !open), []));
  const [page = ""] = parts;
  const name = PAGES.find(([key]) => key === page)?.[1] ?? "Laneway";
  const place = parts.join("/");
  useScroll(place);
  useEffect(() => {
    document.title = parts[1] ? `${parts[1]} · ${name} · Laneway` : `${name} · Laneway`;
    showWithin(document.querySelector("nav"), "[aria-current]");
    // The focused element is gone with its page, so keyboard focus moves to the new one.
    if (document.activeElement === document.body && isLater.current) document.getElementById("main").focus({ preventScroll: true });
    isLater.current = true;
  }, [place]);
  const isReader = !may("submit") && !may("admin");
  return html`<a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.getElementById("main").focus(); }}>To the content</a>
    <header class="bar"><${Link} to=${[]} class="brand"><span class="mark" aria-hidden="true"><i></i><i></i><i></i></span>Laneway<//>
      <nav aria-label="Pages">${PAGES.map(([key, title]) => html`<${Link} to=${key ? [key] : []} aria-current=${key === page ? "page" : null}>${title}<//>`)}</nav>
      <div class="bar-end">${isReader && html`<span class="reader" title="This token may look, and change nothing">read only</span>`}
        <${Connection} /><button type="button" class="plain" aria-label="Keyboard help" title="Keyboard help ( ? )" onClick=${() => setHelp(true)}>?</button></div>
    </header>
    ${state === "lost" && html`<div class="banner" role="alert">The connection to the server is lost. What you see may be old; it is tried again by itself.</div>`}
    <main id="main" tabindex="-1" data-subject=${me.subject} data-place=${place}><${Page} parts=${parts} signOut=${signOut} /></main>
    <${Help} open=${help} close=${() => setHelp(false)} />`;
}

function SignIn({ why, enter }) {
  const submit = (event) => {
    event.preventDefault();
    enter(new FormData(event.target).get("token").trim());
  };
  return html`<main class="sign-in"><form class="card" onSubmit=${submit}>
    <h1><span class="mark" aria-hidden="true"><i></i><i></i><i></i></span>Laneway</h1>
    <p>This server asks for a token. Make one with <code>laneway token create</code> on its machine.</p>
    ${why && html`<p class="bad" role="alert">${why}</p>`}
    <label class="field"><span>Token</span><input type="password" name="token" required autocomplete="off" spellcheck=${false} autofocus /></label>
    <footer><button type="submit" class="primary">Sign in</button></footer>
    <p class="faint small">It is kept for this tab only, and forgotten when you close it.</p></form></main>`;
}

function Unreachable() {
  return html`<main class="sign-in"><div class="card" role="status"><h1>Laneway</h1><p>The server does not answer. It is tried again by itself.</p></div></main>`;
}

function App() {
  const [state, setState] = useState({ name: "starting" });
  const start = useCallback(async () => {
    try {
      const me = await introduce();
      connect();
      setState({ name: "in", me });
    } catch (error) {
      if (error.status === 401 || error.status === 403) setState({ name: "out", why: hasToken() ? error.message : "" });
      else {
        setState({ name: "away" });
        setTimeout(start, 1000);
      }
    }
  }, []);
  const connection = useConnection();
  useEffect(() => {
    start();
  }, []);
  // The token was taken away meanwhile: say so instead of showing old numbers.
  useEffect(() => {
    if (connection === "refused" && state.name === "in") start();
  }, [connection]);
  const signOut = useCallback(() => {
    setToken(null);
    disconnect();
    start();
  }, []);
  const enter = (token) => {
    setToken(token);
    start();
  };
  const shown = {
    starting: () => html`<p class="boot">Laneway</p>`,
    away: () => html`<${Unreachable} />`,
    out: () => html`<${SignIn} why=${state.why} enter=${enter} />`,
    in: () => html`<${Frame} me=${state.me} signOut=${signOut} />`,
  };
  return html`${shown[state.name]()}<${Dialogs} /><${Notes} />`;
}

const root = document.getElementById("app");
root.replaceChildren();
render(html`<${App} />`, root);
