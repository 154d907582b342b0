// Node's fetch gives up on an answer that has not begun after five minutes; a turn may wait in line for longer.
const DISPATCHER = Symbol.for("undici.globalDispatcher.1");
let unhurried;
/** What to tell fetch about an answer that may take any time; nothing, where fetch is patient by itself. */
export function patient(waits) {
    if (!waits)
        return {};
    if (unhurried !== undefined)
        return { dispatcher: unhurried };
    // Node brings its fetch in with the first use of one of its classes.
    new Headers();
    const usual = globalThis[DISPATCHER];
    if (typeof usual === "object" && usual !== null) {
        const Agent = usual.constructor;
        // Only the plain one is known to take these options; whoever has set another has said what to do.
        if (Agent.name === "Agent")
            unhurried = new Agent({ headersTimeout: 0, bodyTimeout: 0 });
    }
    return unhurried === undefined ? {} : { dispatcher: unhurried };
}
