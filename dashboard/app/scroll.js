// A new page starts at its top; going back restores the scroll position.

import { useEffect } from "./view.js";

/** How long a page that is gone back to may take until it is as long as it was. */
const GROWS_MAX_MS = 60000;
/** How long it is held where it was left from then on, while the rest of it comes. */
const SETTLES_MAX_MS = 3000;

history.scrollRestoration = "manual";

function keep() {
  history.replaceState({ ...history.state, top: window.scrollY }, "");
}

/** `page` is what is shown: another one has another place. */
export function useScroll(page) {
  useEffect(() => {
    let timer = null;
    const moved = () => {
      clearTimeout(timer);
      timer = setTimeout(keep, 150);
    };
    const top = history.state?.top ?? 0;
    window.scrollTo(0, top);
    // The content arrives later; wait for it until the reader scrolls.
    let hasGrown = false;
    const grown = new ResizeObserver(() => {
      window.scrollTo(0, top);
      if (hasGrown || window.scrollY < top) return;
      hasGrown = true;
      clearTimeout(waited);
      waited = setTimeout(enough, SETTLES_MAX_MS);
    });
    const enough = () => grown.disconnect();
    let waited = setTimeout(enough, top ? GROWS_MAX_MS : 0);
    if (top) grown.observe(document.getElementById("main"));
    for (const sign of ["wheel", "touchmove", "keydown", "pointerdown"]) window.addEventListener(sign, enough, { once: true, passive: true });
    window.addEventListener("scroll", moved, { passive: true });
    return () => {
      clearTimeout(timer);
      clearTimeout(waited);
      enough();
      for (const sign of ["wheel", "touchmove", "keydown", "pointerdown"]) window.removeEventListener(sign, enough);
      window.removeEventListener("scroll", moved);
    };
  }, [page]);
}
