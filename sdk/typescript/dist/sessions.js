// Sessions and their messages.
import { pathOf } from "./transport.js";
/** The lane of a conversation: its key, with what has a meaning in lane names percent-encoded. */
export function sessionLane(key) {
    const chars = [...key];
    const encoded = chars.map((char, place) => {
        const atTheEnd = place === 0 || place === chars.length - 1;
        if (!/[%/*\p{Cc}]/u.test(char) && !(atTheEnd && /\s/.test(char)))
            return char;
        return Array.from(new TextEncoder().encode(char), (byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join("");
    });
    return `session:${encoded.join("")}`;
}
/** A conversation: one turn at a time, and messages that wait. */
export class Session {
    transport;
    key;
    constructor(transport, key) {
        this.transport = transport;
        this.key = key;
    }
    #read(parts, request) {
        return this.transport.read(pathOf("sessions", this.key, ...parts), request);
    }
    /** A message; the answer says what became of it. */
    send(text, message, options = {}) {
        return this.#read(["messages"], { ...options, method: "POST", body: { text, ...message } });
    }
    /** How it stands. */
    get(options = {}) {
        return this.#read([], options);
    }
    /** How its tool lanes stand. */
    stats(options = {}) {
        return this.#read(["stats"], options);
    }
    /** Sets its own mode, debounce, cap or drop rule. */
    change(settings, options = {}) {
        return this.#read([], { ...options, method: "PATCH", body: settings });
    }
    /** What became of a message. */
    receipt(message, options = {}) {
        return this.#read(["messages", message], options);
    }
    /** Takes back a message that waits. */
    withdraw(message, options = {}) {
        return this.#read(["messages", message], { ...options, method: "DELETE" });
    }
    /** Puts a waiting message before another, or last. */
    move(message, before, options = {}) {
        const body = before === undefined ? {} : { before };
        return this.#read(["messages", message, "move"], { ...options, method: "POST", body });
    }
    /** Makes a waiting message the next one. */
    sendNow(message, options = {}) {
        return this.#read(["messages", message, "send-now"], { ...options, method: "POST" });
    }
    /** Sends a message that was set aside once more, as a new one. */
    resend(message, options = {}) {
        return this.#read(["messages", message, "resend"], { ...options, method: "POST" });
    }
    /** Tells the running turn to stop. */
    interrupt(options = {}) {
        return this.#read(["interrupt"], { ...options, method: "POST" });
    }
    /** Takes back what waits; resolves to how many messages. */
    async clear(options = {}) {
        return (await this.#read(["clear"], { ...options, method: "POST" })).cancelled;
    }
    /** Says something to the running turn. */
    steer(text, options = {}) {
        return this.#read(["steer"], { ...options, method: "POST", body: { text } });
    }
    /** What happens in it, without end. */
    events(options = {}) {
        return this.transport.follow(pathOf("sessions", this.key, "events"), options);
    }
}
