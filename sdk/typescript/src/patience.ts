// How long an answer may take, told to Node's own fetch in its own way: that costs a tenth less than a signal for each request, and
// without it fetch gives up on an answer that has not begun after five minutes, while a turn may wait in line for longer.

const DISPATCHER = Symbol.for("undici.globalDispatcher.1");

interface Dispatcher {
  dispatch(options: object, handler: unknown): boolean;
}

let usual: unknown;
let unhurried: Dispatcher | undefined;
const byLimit = new Map<number, Dispatcher>();

/**
 * What to tell Node's own fetch, so that it waits for any answer (0) or for this many milliseconds; undefined, where that is not possible:
 * in browsers, and where the program has set a dispatcher of its own.
 */
export function patience(limitMs: number): { dispatcher: object } | undefined {
  // Looked at each time: a program may set another one at any time.
  const now = (globalThis as Record<symbol, unknown>)[DISPATCHER];
  if (now === undefined || now !== usual) consider();
  if (unhurried === undefined) return undefined;
  let dispatcher = byLimit.get(limitMs);
  if (dispatcher === undefined) byLimit.set(limitMs, (dispatcher = limited(unhurried, limitMs)));
  return { dispatcher };
}

function consider(): void {
  // Node brings its fetch in with the first use of one of its classes.
  new Headers();
  usual = (globalThis as Record<symbol, unknown>)[DISPATCHER];
  const Agent = (usual as object | undefined)?.constructor as (new (options: object) => Dispatcher) | undefined;
  // Only the plain one is known to take these options; another one was chosen on purpose.
  unhurried = Agent?.name === "Agent" ? new Agent({ headersTimeout: 0, bodyTimeout: 0 }) : undefined;
  byLimit.clear();
}

/** The same connections, with another limit. */
function limited(all: Dispatcher, limitMs: number): Dispatcher {
  if (limitMs === 0) return all;
  const limits = { headersTimeout: limitMs, bodyTimeout: limitMs };
  return { dispatch: (options, handler) => all.dispatch({ ...options, ...limits }, handler) };
}
