// Agents: asking them, and how their lines stand.
import { pathOf } from "./transport.js";
/** A turn that is about to be asked for: await it for the answer, or iterate over it for the events. */
export class Turn {
    transport;
    path;
    message;
    options;
    #answer;
    constructor(transport, path, message, options) {
        this.transport = transport;
        this.path = path;
        this.message = message;
        this.options = options;
    }
    #request() {
        const { sourceAgent, parent, detach, idempotencyKey, signal, traceparent, ...rest } = this.options;
        const headers = {
            "x-source-agent": sourceAgent,
            "x-laneway-parent": parent,
            "x-detach": detach ? "true" : undefined,
            "idempotency-key": idempotencyKey,
        };
        return { method: "POST", body: { message: this.message, ...rest }, headers, signal, traceparent };
    }
    /** Asks, waits for the end, and resolves to the answer. */
    answer() {
        this.#answer ??= this.transport.read(this.path, { ...this.#request(), waits: true });
        return this.#answer;
    }
    /** Asks, and tells what happens from acceptance on. Leaving the loop cancels the run, unless it is detached. */
    events() {
        return this.transport.stream(this.path, this.#request());
    }
    /** Asks, and resolves when it is accepted. */
    accepted() {
        const request = this.#request();
        const headers = { ...request.headers, prefer: "respond-async" };
        return this.transport.read(this.path, { ...request, headers });
    }
    then(done, failed) {
        return this.answer().then(done, failed);
    }
    catch(failed) {
        return this.answer().catch(failed);
    }
    finally(ended) {
        return this.answer().finally(ended);
    }
    [Symbol.asyncIterator]() {
        return this.events();
    }
}
/** Somebody who can run a turn. */
export class Agent {
    transport;
    name;
    constructor(transport, name) {
        this.transport = transport;
        this.name = name;
    }
    /** One turn of a conversation: await it for the answer, or iterate over it for the events. */
    chat(message, options = {}) {
        return new Turn(this.transport, pathOf("agents", this.name, "chat"), message, options);
    }
    /** One stateless task, beside all others; to be awaited or iterated over like a turn. */
    task(message, options = {}) {
        return new Turn(this.transport, pathOf("agents", this.name, "task"), message, options);
    }
    /** One turn of a conversation that is not waited for. */
    submit(message, options = {}) {
        return this.chat(message, options).accepted();
    }
    /** How the agent stands. */
    get(options = {}) {
        return this.transport.read(pathOf("agents", this.name), options);
    }
    /** How its line stands. */
    queue(options = {}) {
        return this.transport.read(pathOf("agents", this.name, "queue"), options);
    }
    /** Cancels what waits in its line. */
    clear(options = {}) {
        return this.transport.read(pathOf("agents", this.name, "queue", "clear"), { ...options, method: "POST" });
    }
    /** Takes its slots away from whatever runs. The old runs may still be going; what they report is refused. */
    release(options = {}) {
        return this.transport.read(pathOf("agents", this.name, "queue", "release"), { ...options, method: "POST" });
    }
}
