// The keyboard: `/` to filter, `j` and `k` to move, `?` for help, `g` and a letter to go to a page.

import { html, useEffect, useLayoutEffect, useRef } from "./view.js";
import { go } from "./route.js";

const PLACES = { o: [], l: ["lanes"], t: ["tasks"], s: ["sessions"], a: ["agents"], d: ["dead-letters"], c: ["schedules"], w: ["workers"], u: ["audit"], e: ["settings"] };

const KEYS = [
  ["/", "filter"], ["j  k", "next, previous row"], ["Enter", "open the row"], ["Esc", "leave the filter"], ["?", "this help"],
  ["g o", "overview"], ["g l", "lanes"], ["g t", "tasks"], ["g s", "sessions"], ["g a", "agents"], ["g d", "dead letters"],
  ["g c", "schedules"], ["g w", "workers"], ["g u", "audit"], ["g e", "settings"],
];

function move(step) {
  const rows = [...document.querySelectorAll("[data-row]")];
  if (rows.length === 0) return;
  const at = rows.indexOf(document.activeElement.closest("[data-row]"));
  const next = rows[at < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + step))];
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

/** Listens as long as it is shown. */
export function useKeys(toggleHelp) {
  useEffect(() => {
    let going = false;
    const pressed = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
      const isWriting = event.target.closest("input, textarea, select");
      if (isWriting) {
        if (event.key === "Escape") event.target.blur();
        return;
      }
      if (going && PLACES[event.key]) go(PLACES[event.key]);
      const was = going;
      going = !was && event.key === "g";
      if (was) return;
      if (event.key === "/") {
        const filter = document.querySelector("[data-filter]");
        filter?.focus();
        filter?.select?.();
        if (filter) event.preventDefault();
      } else if (event.key === "j") move(1);
      else if (event.key === "k") move(-1);
      else if (event.key === "?") toggleHelp();
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, [toggleHelp]);
}

export function Help({ open, close }) {
  const element = useRef(null);
  useLayoutEffect(() => {
    if (open) element.current.showModal();
  }, [open]);
  if (!open) return null;
  return html`<dialog ref=${element} aria-labelledby="help-title" onClose=${close} onKeyDown=${(event) => event.key === "?" && element.current.close()}>
    <h2 id="help-title">Keyboard</h2>
    <dl class="keys-help">${KEYS.map(([key, what]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}</dl>
    <footer><button type="button" class="primary" onClick=${() => element.current.close()}>Close</button></footer></dialog>`;
}
