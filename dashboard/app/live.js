// What happens on the server, as it happens: one stream of events for the whole page, and questions that ask themselves again
// when something happened that could change their answer.

import { headers, send, Refusal } from "./api.js";
import { useCallback, useEffect, useRef, useState } from "./view.js";

const RETRY_FIRST_MS = 300;
const RETRY_MAX_MS = 5000;
/** The server says something every 15 s; a stream that is silent for longer is dead. */
const SILENT_MAX_MS = 40000;
/** A question is asked again this soon after an event, and never more often. */
const ASK_AGAIN_MS = 350;

const hearers = new Set();
const watchers = new Set();
let state = "connecting";
let lastId = null;
let stopped = null;

export const connection = () => state;

function setState(next) {
  if (state === next) return;
  state = next;
  for (const watcher of watchers) watcher(next);
}

function tell(event) {
  for (const hearer of [...hearers]) hearer(event);
}

/** Calls back for every event `{name, data}`; returns how to stop that. */
export function hear(hearer) {
  hearers.add(hearer);
  return () => hearers.delete(hearer);
}

export function useConnection() {
  const [now, setNow] = useState(state);
  useEffect(() => {
    watchers.add(setNow);
    setNow(state);
    return () => watchers.delete(setNow);
  }, []);
  return now;
}

/** Reads a stream of events and calls back for each, until it ends. */
export async function read(response, onEvent, onAlive = () => {}) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    onAlive();
    rest += value;
    let end;
    while ((end = rest.indexOf("\n\n")) >= 0) {
      const event = parse(rest.slice(0, end));
      rest = rest.slice(end + 2);
      if (event) onEvent(event);
    }
  }
}

function parse(block) {
  const event = { name: "message", data: "", id: null };
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    const [field, value] = [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, "")];
    if (field === "event") event.name = value;
    else if (field === "data") event.data += value;
    else if (field === "id") event.id = value;
  }
  if (!event.data) return null;
  try {
    return { ...event, data: JSON.parse(event.data) };
  } catch {
    return null;
  }
}

async function follow(signal) {
  const going = new AbortController();
  signal.addEventListener("abort", () => going.abort(), { once: true });
  let watchdog = setTimeout(() => going.abort(), SILENT_MAX_MS);
  try {
    const more = lastId ? { "last-event-id": lastId } : {};
    const response = await send("GET", "api/events", { headers: headers(more), signal: going.signal });
    setState("live");
    // Events missed while disconnected may have changed any answer.
    tell({ name: "connected", data: {} });
    await read(response, (event) => {
      if (event.id) lastId = event.id;
      tell(event);
    }, () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => going.abort(), SILENT_MAX_MS);
    });
  } finally {
    clearTimeout(watchdog);
  }
}

/** Follows the events of the server until `disconnect`, through every loss of the connection. */
export async function connect() {
  disconnect();
  const stop = new AbortController();
  stopped = stop;
  let delay = RETRY_FIRST_MS;
  while (!stop.signal.aborted) {
    try {
      await follow(stop.signal);
      delay = RETRY_FIRST_MS;
    } catch (error) {
      if (error instanceof Refusal && [401, 403].includes(error.status)) {
        setState("refused");
        return;
      }
    }
    if (stop.signal.aborted) return;
    setState("lost");
    await new Promise((resolve) => setTimeout(resolve, delay));
    delay = Math.min(delay * 1.7, RETRY_MAX_MS);
  }
}

export function disconnect() {
  stopped?.abort();
  stopped = null;
  lastId = null;
}

/**
 * The answer to a question, asked again when `concerns(event)` says so, `pace` ms later, and every `every` ms.
 * `ask(signal)` must be the same function while the question is the same. The last answer stays while a new one is fetched.
 */
export function useAnswer(ask, { concerns = () => true, every = 0, pace = ASK_AGAIN_MS } = {}) {
  const [answer, setAnswer] = useState({ data: null, error: null, of: null });
  const concern = useRef(concerns);
  concern.current = concerns;
  const again = useRef(() => {});
  useEffect(() => {
    const going = new AbortController();
    let timer = null;
    let asking = false;
    let wanted = false;
    const run = async () => {
      asking = true;
      wanted = false;
      try {
        const data = await ask(going.signal);
        if (!going.signal.aborted) setAnswer({ data, error: null, of: ask });
      } catch (error) {
        if (!going.signal.aborted) setAnswer((last) => ({ data: last.of === ask ? last.data : null, error, of: ask }));
      }
      asking = false;
      if (!going.signal.aborted && (wanted || every)) later(wanted ? pace : every);
    };
    const later = (delay) => {
      clearTimeout(timer);
      timer = setTimeout(run, delay);
    };
    again.current = () => {
      if (asking) wanted = true;
      else later(0);
    };
    let due = false;
    const stop = hear((event) => {
      if (event.name !== "connected" && !concern.current(event)) return;
      if (asking) {
        wanted = true;
      } else if (!due) {
        due = true;
        setTimeout(() => {
          due = false;
          if (going.signal.aborted) return;
          if (asking) wanted = true;
          else run();
        }, pace);
      }
    });
    run();
    return () => {
      going.abort();
      clearTimeout(timer);
      stop();
    };
  }, [ask, every]);
  const refresh = useCallback(() => again.current(), []);
  const isCurrent = answer.of === ask;
  return { data: isCurrent ? answer.data : null, error: isCurrent ? answer.error : null, refresh };
}
