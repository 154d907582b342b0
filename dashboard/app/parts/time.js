// Times that stay true while one looks at them: relative in the text, exact in the title.

import { html, useEffect, useState } from "../view.js";
import { exact, length, relative } from "../words.js";

const tickers = new Set();
setInterval(() => {
  for (const tick of tickers) tick(Date.now());
}, 1000);

/** Now, to the second. */
export function useNow() {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    tickers.add(setNow);
    return () => tickers.delete(setNow);
  }, []);
  return now;
}

export function Time({ at }) {
  const now = useNow();
  if (!at) return html`<span class="faint">–</span>`;
  return html`<time datetime=${at} title=${exact(at)}>${relative(at, now)}</time>`;
}

/** How long something has been going on. */
export function Since({ at }) {
  const now = useNow();
  if (!at) return html`<span class="faint">–</span>`;
  const whole = Math.floor(Math.max(0, now - Date.parse(at)) / 1000) * 1000;
  return html`<time datetime=${at} title=${exact(at)}>${whole < 10000 ? `${whole / 1000} s` : length(whole)}</time>`;
}

/** The exact time in the text, the relative in the title. */
export function Exact({ at }) {
  if (!at) return html`<span class="faint">–</span>`;
  const options = { dateStyle: "medium", timeStyle: "medium" };
  const text = new Intl.DateTimeFormat(undefined, options).format(new Date(at));
  return html`<time datetime=${at} title=${`${relative(at)}, ${at}`}>${text}</time>`;
}
