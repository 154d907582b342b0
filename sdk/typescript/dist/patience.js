// Node's fetch gives up on an answer that has not begun after five minutes; a turn may wait in line for longer. How long an answer may
// take is told to each request instead.
const DISPATCHER = Symbol.for("undici.globalDispatcher.1");
let [usual, unhurried] = [];
/** What to tell Node's own fetch so that it waits for any answer; nothing, where it is patient by itself. */
export function patient() {
    // Looked at each time: a program may set another one at any time.
    const now = globalThis[DISPATCHER];
    if (now === undefined || now !== usual)
        consider();
    return unhurried === undefined ? {} : { dispatcher: unhurried };
}
function consider() {
    // Node brings its fetch in with the first use of one of its classes.
    new Headers();
    usual = globalThis[DISPATCHER] ?? undefined;
    const Agent = usual?.constructor;
    // Only the plain one is known to take these options; whoever has set another has said what to do.
    unhurried = Agent?.name === "Agent" ? new Agent({ headersTimeout: 0, bodyTimeout: 0 }) : undefined;
}
