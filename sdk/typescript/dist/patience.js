// How long an answer may take, told to Node's own fetch in its own way: that costs a tenth less than a signal for each request, and
// without it fetch gives up on an answer that has not begun after five minutes, while a turn may wait in line for longer.
const DISPATCHER = Symbol.for("undici.globalDispatcher.1");
let usual;
let unhurried;
const byLimit = new Map();
/**
 * What to tell Node's own fetch, so that it waits for any answer (0) or for so many milliseconds; undefined, where that is not possible:
 * in browsers, and where the program has set a dispatcher of its own.
 */
export function patience(limitMs) {
    // Looked at each time: a program may set another one at any time.
    const now = globalThis[DISPATCHER];
    if (now === undefined || now !== usual)
        consider();
    if (unhurried === undefined)
        return undefined;
    let dispatcher = byLimit.get(limitMs);
    if (dispatcher === undefined)
        byLimit.set(limitMs, (dispatcher = limited(unhurried, limitMs)));
    return { dispatcher };
}
function consider() {
    // Node brings its fetch in with the first use of one of its classes.
    new Headers();
    usual = globalThis[DISPATCHER];
    const Agent = usual?.constructor;
    // Only the plain one is known to take these options; whoever has set another has said what to do.
    unhurried = Agent?.name === "Agent" ? new Agent({ headersTimeout: 0, bodyTimeout: 0 }) : undefined;
    byLimit.clear();
}
/** The same connections, with another limit. */
function limited(all, limitMs) {
    if (limitMs === 0)
        return all;
    const limits = { headersTimeout: limitMs, bodyTimeout: limitMs };
    return { dispatch: (options, handler) => all.dispatch({ ...options, ...limits }, handler) };
}
