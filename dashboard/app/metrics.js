// Reads what Prometheus reads.

const LINE = /^([a-z_]+)(?:\{(.*)\})? ([^ ]+)$/;
const LABEL = /([a-z]+)="((?:[^"\\]|\\.)*)"/g;

/** Every sample as `{name, labels, value}`. */
export function parseMetrics(text) {
  const samples = [];
  for (const line of text.split("\n")) {
    const found = line.startsWith("#") ? null : LINE.exec(line);
    if (!found) continue;
    const labels = {};
    for (const [, key, value] of (found[2] ?? "").matchAll(LABEL)) {
      labels[key] = value.replace(/\\(.)/g, (_, escaped) => (escaped === "n" ? "\n" : escaped));
    }
    samples.push({ name: found[1], labels, value: Number(found[3]) });
  }
  return samples;
}
