// A list of any length of which only what is seen is drawn.

import { html, useEffect, useLayoutEffect, useRef, useState } from "../view.js";

const BEYOND = 8;

/** `row(item, index)` draws one row, all `height` high. `onEnd` is called when the end comes near. */
export function LongList({ items, height = 44, row, label, onEnd, head, keyOf = (item) => item.id }) {
  const box = useRef(null);
  const [range, setRange] = useState({ from: 0, to: 40 });
  const look = () => {
    // As high as the window leaves room for below what stands above it.
    const above = box.current.getBoundingClientRect().top + window.scrollY;
    box.current.style.maxHeight = `max(20rem, calc(100vh - ${Math.round(above)}px - 4.5rem))`;
    const { scrollTop, clientHeight } = box.current;
    const from = Math.max(0, Math.floor(scrollTop / height) - BEYOND);
    const to = Math.ceil((scrollTop + clientHeight) / height) + BEYOND;
    setRange((last) => (last.from === from && last.to === to ? last : { from, to }));
  };
  // After every drawing: what stands above may have grown or shrunk since.
  useLayoutEffect(look);
  useEffect(() => {
    window.addEventListener("resize", look);
    return () => window.removeEventListener("resize", look);
  }, [height]);
  useEffect(() => {
    if (onEnd && range.to >= items.length - BEYOND) onEnd();
  }, [range.to, items.length, onEnd]);
  const shown = items.slice(range.from, range.to);
  return html`<div class="long">
    <div class="scroll" ref=${box} onScroll=${look} tabindex="-1">
      ${head && html`<div class="row head">${head}</div>`}
      <div role="list" aria-label=${label} style=${{ height: `${items.length * height}px` }}>
        <div style=${{ transform: `translateY(${range.from * height}px)` }}>
          ${shown.map((item, index) => html`<div role="listitem" key=${keyOf(item)} aria-setsize=${items.length}
            aria-posinset=${range.from + index + 1} style=${{ height: `${height}px` }}>${row(item, range.from + index)}</div>`)}
        </div>
      </div>
    </div>
  </div>`;
}
