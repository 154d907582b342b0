// The time limit of an answer, as an option of Node's own fetch. It costs a tenth less than a signal for each request. Without it,
// fetch gives up after five minutes without an answer, but a turn may wait longer in its lane.

const DISPATCHER = Symbol.for("undici.globalDispatcher.1");

interface Dispatcher {
  dispatch(options: object, handler: unknown): boolean;
}

let usual: unknown;
let unhurried: Dispatcher | undefined;
const byLimit = new Map<number, Dispatcher>();

/**
 * The option for Node's own fetch that limits an answer to a number of milliseconds, or lifts the limit with 0. It is undefined in
 * browsers, and if the program has set its own dispatcher.
 */
export function patience(limitMs: number): { dispatcher: object } | undefined {
  // Check each time, because a program may set another dispatcher at any time.
  const now = (globalThis as Record<symbol, unknown>)[DISPATCHER];
  if (now === undefined || now !== usual) consider();
  if (unhurried === undefined) return undefined;
  let dispatcher = byLimit.get(limitMs);
  if (dispatcher === undefined) byLimit.set(limitMs, (dispatcher = limited(unhurried, limitMs)));
  return { dispatcher };
}

function consider(): void {
  // Node loads its fetch at the first use of one of its classes.
  new Headers();
  usual = (globalThis as Record<symbol, unknown>)[DISPATCHER];
  const Agent = (usual as object | undefined)?.constructor as (new (options: object) => Dispatcher) | undefined;
  // Only the default dispatcher is known to accept these options; the program chose another one on purpose.
  unhurried = Agent?.name === "Agent" ? new Agent({ headersTimeout: 0, bodyTimeout: 0 }) : undefined;
  byLimit.clear();
}

/** The same connections, with another limit. */
function limited(all: Dispatcher, limitMs: number): Dispatcher {
  if (limitMs === 0) return all;
  const limits = { headersTimeout: limitMs, bodyTimeout: limitMs };
  return { dispatch: (options, handler) => all.dispatch({ ...options, ...limits }, handler) };
}
