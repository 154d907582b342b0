// The cost of a slot, compared with a plain request of the same HTTP client to the same server: `node scripts/bench.mjs`.
//
// It alternates the operations and takes the median of the ratios of all rounds. The exit status is 1 if a bound fails.

import { Laneway } from "../dist/index.js";

const [ROUNDS, EACH, BOUND] = [15, 100, 3];
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

const queue = await Laneway.local();
const client = queue.client();

async function pair() {
  const began = performance.now();
  await client.withSlot(["bench"], () => undefined);
  const between = performance.now();
  await (await fetch(`${queue.url}/api/status`)).text();
  return [between - began, performance.now() - between];
}

// The medians of a round, which ignore other load during a single operation.
async function round() {
  const pairs = [];
  for (let n = 0; n < EACH; n += 1) pairs.push(await pair());
  return [0, 1].map((side) => median(pairs.map((one) => one[side] * 1000)));
}

const pairs = [];
for (let n = 0; n < ROUNDS; n += 1) pairs.push(await round());
await queue.close();

const ratios = pairs.map(([a, b]) => a / b).sort((a, b) => a - b);
const ratio = median(ratios);
const [ours, reference] = [0, 1].map((side) => median(pairs.map((pair) => pair[side])).toFixed(0).padStart(9));
const spread = `(${ratios[0].toFixed(2)} to ${ratios.at(-1).toFixed(2)})`;
const verdict = ratio <= BOUND ? "holds" : "DOES NOT HOLD";
console.log(`${"TypeScript".padEnd(28)} ${ours} us ${reference} us ${ratio.toFixed(2).padStart(7)}  ${spread}  <= ${BOUND}  ${verdict}`);
process.exit(ratio <= BOUND ? 0 : 1);
