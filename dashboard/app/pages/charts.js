// The charts of the overview: load, flow, waits and refusals, of the last five minutes, hour or day.

import { html, useCallback, useMemo } from "../view.js";
import { ask, withQuery } from "../api.js";
import { useAnswer } from "../live.js";
import { pick, usePlace } from "../route.js";
import { length } from "../words.js";
import { Chart } from "../parts/chart.js";
import { Tabs, Trouble } from "../parts/shown.js";
import { useNow } from "../parts/time.js";

const SPANS = { "5m": ["5 min", 300], "1h": ["1 h", 3600], "24h": ["24 h", 86400] };
const METRICS = ["running", "waiting", "completed", "failed", "wait_p50", "wait_p95", "wait_p99", "refused"];
/** How many codes have a line of their own, those with most rejections; the rest share one. */
const CODES_MAX = 4;
const COLOURS = [["--red", "red"], ["--amber", "amber"], ["--blue", "blue"], ["--green", "green"], ["--faint", ""]];

const seconds = (point) => Date.parse(point.at) / 1000;

/** Differences of a counter per minute; `null` where it restarted. */
function rates(points) {
  return points.map((point, index) => {
    if (index === 0) return null;
    const minutes = (Date.parse(point.at) - Date.parse(points[index - 1].at)) / 60000;
    const more = point.value - points[index - 1].value;
    return more < 0 || minutes <= 0 ? null : more / minutes;
  });
}

/** The values of points at given times; `null` where there is none. */
function at(times, points) {
  const known = new Map(points.map((point) => [seconds(point), point.value]));
  return times.map((time) => known.get(time) ?? null);
}

/** Per code its refusals per minute, `[name, values]`, the most frequent first. */
function refusals({ points, by_code: codes = {} }) {
  const last = (list) => list.at(-1)?.value ?? 0;
  const sorted = Object.entries(codes).sort(([, one], [, other]) => last(other) - last(one));
  const lines = sorted.slice(0, CODES_MAX).map(([code, list]) => [code, rates(list)]);
  if (sorted.length <= CODES_MAX) return lines;
  const rest = rates(points).map((all, index) => (all === null ? null : all - lines.reduce((sum, [, values]) => sum + (values[index] ?? 0), 0)));
  return [...lines, ["others", rest]];
}

async function measured(range, signal) {
  const answers = await Promise.all(METRICS.map((metric) => ask("GET", withQuery("api/history", { metric, range }), { signal })));
  return Object.fromEntries(answers.map((answer) => [answer.metric, answer]));
}

export function Charts({ status }) {
  const { query } = usePlace();
  const picked = SPANS[query.span] ? query.span : "5m";
  const span = SPANS[picked][1];
  const now = Math.floor(useNow() / 1000);
  const question = useCallback((signal) => measured(picked, signal), [picked]);
  const { data, error } = useAnswer(question, { concerns: () => false, every: 5000 });
  const drawn = useMemo(() => {
    const of = (metric) => data?.[metric].points ?? [];
    const times = of("running").map(seconds);
    const refused = data ? refusals(data.refused) : [];
    return {
      times,
      load: [times, of("running").map((point) => point.value), of("waiting").map((point) => point.value)],
      flow: [of("completed").map(seconds), rates(of("completed")), rates(of("failed"))],
      waits: [times, ...["wait_p50", "wait_p95", "wait_p99"].map((metric) => at(times, of(metric)).map(inSeconds))],
      refused: [of("refused").map(seconds), ...refused.map(([, values]) => values)],
      codes: refused.map(([name], index) => ({ name, token: COLOURS[index][0], kind: COLOURS[index][1] })),
    };
  }, [data]);
  const load = useMemo(() => {
    const [times, running, waiting] = drawn.load;
    return status ? [[...times, now], [...running, status.running], [...waiting, status.waiting]] : drawn.load;
  }, [drawn, status, now]);
  const oldest = drawn.times.length ? now - drawn.times[0] : 0;
  const quiet = drawn.codes.length === 0;
  return html`<section aria-label="Charts">
    <div class="section-head"><h2>Load</h2>
      <${Tabs} label="Time shown" value=${picked} of=${Object.entries(SPANS).map(([key, [name]]) => [key, name])} onPick=${(key) => pick({ span: key })} />
    </div>
    <${Trouble} error=${error} />
    <div class="charts">
      <${Chart} title="Running and waiting" span=${span} now=${now} data=${load} series=${[
        { name: "running", token: "--green", kind: "green", fill: true, step: true },
        { name: "waiting", token: "--amber", kind: "amber", step: true }]} />
      <${Chart} title="Ended per minute" span=${span} now=${now} data=${drawn.flow} series=${[
        { name: "completed", token: "--blue", kind: "blue", fill: true },
        { name: "failed", token: "--red", kind: "red" }]} />
      <${Chart} title="Waited before starting, seconds" span=${span} now=${now} data=${drawn.waits} dots series=${[
        { name: "p50", token: "--blue", kind: "blue" },
        { name: "p95", token: "--green", kind: "green" },
        { name: "p99", token: "--amber", kind: "amber" }]} />
      <${Chart} title="Refused per minute, by code" span=${span} now=${now} data=${quiet ? [drawn.refused[0], drawn.refused[0].map(() => 0)] : drawn.refused}
        series=${quiet ? [{ name: "none", token: "--green", kind: "green" }] : drawn.codes} />
    </div>
    ${data && oldest < span - data.running.step_ms / 1000 && html`<p class="faint small">The server has points of the last ${length(oldest * 1000)}.</p>`}
  </section>`;
}

const inSeconds = (millis) => (millis === null ? null : millis / 1000);
