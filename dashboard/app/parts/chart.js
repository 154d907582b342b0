// A chart over time. It takes its colours from the style sheet, so that it follows the scheme of the system.

import uPlot from "../vendor/uplot.js";
import { html, useEffect, useRef } from "../view.js";

const HEIGHT = 168;

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function options(series, width, span, dots) {
  const axis = {
    stroke: colour("--faint"), font: "11px system-ui, sans-serif",
    grid: { stroke: colour("--grid"), width: 1 }, ticks: { show: false },
  };
  const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", ...(span <= 300 ? { second: "2-digit" } : {}) });
  return {
    width, height: HEIGHT, legend: { show: false }, padding: [8, 8, 0, 0],
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
    scales: { y: { range: (_, low, high) => [0, Math.max(high * 1.15, dots && high ? 0.01 : 1)] }, x: { time: true } },
    axes: [
      { ...axis, size: 28, space: 80, values: (_, splits) => splits.map((at) => clock.format(new Date(at * 1000))) },
      { ...axis, size: 44, space: 32, values: (_, splits) => splits.map((value) => (dots || Number.isInteger(value) ? value : "")) },
    ],
    series: [{}, ...series.map(({ name, token, fill, step }) => ({
      label: name, stroke: colour(token), width: 2, spanGaps: false, points: { show: Boolean(dots), size: 5, fill: colour(token) },
      fill: fill ? `${colour(token)}2b` : undefined,
      paths: step ? uPlot.paths.stepped({ align: 1 }) : undefined,
    }))],
  };
}

/** `data` is `[times, values, values…]`, times in seconds; `span` the seconds shown; `dots` marks points that may stand alone. */
export function Chart({ title, series, data, span, now, dots = false }) {
  const box = useRef(null);
  const chart = useRef(null);
  useEffect(() => {
    const make = () => {
      chart.current?.destroy();
      chart.current = new uPlot(options(series, box.current.clientWidth || 300, span, dots), data, box.current);
    };
    make();
    const drawn = box.current;
    const sizes = new ResizeObserver(() => chart.current?.setSize({ width: drawn.clientWidth, height: HEIGHT }));
    sizes.observe(drawn);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", make);
    return () => {
      sizes.disconnect();
      scheme.removeEventListener("change", make);
      chart.current.destroy();
      chart.current = null;
    };
  }, [span, series.map(({ name }) => name).join()]);
  useEffect(() => {
    chart.current.setData(data, false);
    chart.current.setScale("x", { min: now - span, max: now });
  }, [data, now, span]);
  const last = (index) => data[index + 1]?.findLast((value) => value !== null);
  const said = series.map(({ name }, index) => `${name} ${last(index) ?? "unknown"}`).join(", ");
  return html`<figure class="chart">
    <figcaption>${title}<span class="keys">${series.map(({ name, kind }) => html`<span class=${`key ${kind}`}>${name}</span>`)}</span></figcaption>
    <div ref=${box} role="img" aria-label=${`${title}: ${said}`}></div>
  </figure>`;
}
