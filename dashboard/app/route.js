// Where we are: the part of the address behind `#`, so that a link shares a view and no server or proxy needs to know the pages.

import { html, useEffect, useState } from "./view.js";

/** `#/tasks/abc?status=queued` is `{parts: ["tasks", "abc"], query: {status: "queued"}}`. */
export function here() {
  const text = location.hash.replace(/^#\/?/, "");
  const [path, query = ""] = [text.split("?")[0], text.split("?").slice(1).join("?")];
  const parts = path.split("/").filter(Boolean).map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return { parts, query: Object.fromEntries(new URLSearchParams(query)) };
}

export function address(parts, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const path = `#/${parts.map(encodeURIComponent).join("/")}`;
  return given.length ? `${path}?${new URLSearchParams(given)}` : path;
}

export function go(parts, query) {
  location.hash = address(parts, query);
}

/** Changes the query of where we are, without a new step in the history: for what is typed. */
export function refine(change) {
  const { parts, query } = here();
  history.replaceState(history.state, "", address(parts, { ...query, ...change }));
  window.dispatchEvent(new HashChangeEvent("hashchange"));
}

/** The same with a step that one can go back: for what is picked. */
export function pick(change) {
  const { parts, query } = here();
  go(parts, { ...query, ...change });
}

export function usePlace() {
  const [place, setPlace] = useState(here);
  useEffect(() => {
    const moved = () => setPlace(here());
    window.addEventListener("hashchange", moved);
    // The reader may have moved on since the first drawing.
    moved();
    return () => window.removeEventListener("hashchange", moved);
  }, []);
  return place;
}

export function Link({ to, query, children, ...rest }) {
  return html`<a href=${address(to, query)} ...${rest}>${children}</a>`;
}
